// SPDX-License-Identifier: BSD-2-Clause
// GNU as is the judge of AT&T syntax: it assembles our operands, and the bytes it makes must name the base, index,
// scale, displacement and constant that we read. Symbols are defined as fixed numbers, so an addend shows in the
// displacement.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "parsers/args.hpp"
#include "tests/places.hpp"

namespace usdt::parsers {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSlot = 32;  // every instruction starts at a multiple of this
constexpr std::int64_t kSymbol = 0x1000;
constexpr std::array kNames = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                               "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

using Bytes = std::vector<std::uint8_t>;

/// A folder that is removed with its files.
class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "usdt-as-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Scratch() { fs::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] std::string operator/(const char* name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

bool runs(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

/// `as` that makes x86-64 code, or "" where there is none.
std::string assembler() {
  for (const char* name : {"as", "x86_64-linux-gnu-as"}) {
    if (runs(std::string(name) + " --64 -o /dev/null /dev/null")) return std::string(name) + " --64";
  }
  return "";
}

/// The machine code of `lines`, each at its own slot; empty where as refuses one.
Bytes assemble(const std::string& as, const std::vector<std::string>& lines) {
  const Scratch scratch;
  std::ofstream source(scratch / "in.s");
  source << ".set sym, " << kSymbol << "\n";
  for (const std::string& line : lines) source << ".p2align 5\n" << line << "\n";
  source.close();
  if (!runs(as + " -o " + (scratch / "out.o") + " " + (scratch / "in.s"))) return {};
  if (!runs("objcopy -O binary -j .text " + (scratch / "out.o") + " " + (scratch / "out.bin"))) return {};
  std::ifstream code(scratch / "out.bin", std::ios::binary);
  return {std::istreambuf_iterator<char>(code), {}};
}

template <class T>
T read_as(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// The memory operand of `mov r/m64, r64` (Intel SDM volume 2, tables 2-2 and 2-3).
MemOperand decode_mov(const std::uint8_t* at) {
  MemOperand mem;
  if (*at == 0x64 || *at == 0x65) mem.segment = *at++ == 0x64 ? "fs" : "gs";
  const unsigned rex = *at++;
  EXPECT_EQ(rex & 0xf8u, 0x48u);
  EXPECT_EQ(*at++, 0x8b);
  const unsigned modrm = *at++;
  const unsigned mod = modrm >> 6;
  unsigned base = modrm & 7u;
  if (base == 4) {
    const unsigned sib = *at++;
    base = sib & 7u;
    const unsigned index = ((sib >> 3) & 7u) | ((rex & 2u) << 2);
    if (index != 4) {
      mem.index = kNames.at(index);
      mem.scale = 1u << (sib >> 6);
    }
  } else if (mod == 0 && base == 5) {
    mem.base = "rip";
  }
  const bool no_base = mod == 0 && base == 5;
  if (!no_base) mem.base = kNames.at(base | ((rex & 1u) << 3));
  if (mod == 1) mem.disp = (*at ^ 0x80) - 0x80;  // sign-extends the byte
  if (mod == 2 || no_base) mem.disp = read_as<std::int32_t>(at);
  return mem;
}

std::vector<std::string> every_address_form() {
  std::vector<std::string> operands;
  for (const char* disp :
       {"",        "8",      "-8",    "0x10",   "-0x10", "017",    "+8",       "-16+24",  "1+2+3-4", "(8+4)",
        "4+(8-2)", "8*4",    "4-2*3", "-(8+4)", "--4",   "4+-4",   "100000",   "-100000", "~7",      "8|4",
        "1<<4",    "-100/3", "sym",   "sym+4",  "4+sym", "-4+sym", "sym-4+16", "(sym+4)"}) {
    for (const char* address :
         {"(%rax)", "(%rsp)", "(%rbp)", "(%r12)", "(%r13)", "(%rax,%rcx)", "(%rbp,%rax,4)", "(%r8,%r15,8)", "(,%rdi,8)",
          "(,%rax)", "(,%r12,2)", "( %rax , %rcx , 1 )", "(%rdx,1)", "(%rdx,%rsi,)"}) {
      operands.push_back(std::string(disp) + address);
      operands.push_back("%fs:" + operands.back());
    }
    if (*disp != '\0') operands.push_back(disp);
  }
  return operands;
}

/// The x86-64 memory operands of the golden file that need no symbol of another file.
std::vector<std::string> real_operands() {
  std::vector<std::string> operands;
  std::ifstream file(test::source_dir() / "tests/parsers/corpus/x86_64.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("# ") || line.starts_with("  ")) continue;
    for (const ParsedArg& arg : parse_x86_att(line)) {
      const auto* mem = std::get_if<MemOperand>(&arg.operand);
      if (mem != nullptr && !mem->symbol) operands.emplace_back(arg.text.substr(arg.text.find('@') + 1));
    }
  }
  return operands;
}

void expect_agreement(const std::vector<std::string>& operands) {
  const std::string as = assembler();
  if (as.empty() || !runs("objcopy --version")) GTEST_SKIP() << "needs GNU as for x86-64 and objcopy (binutils)";
  std::vector<std::string> lines;
  lines.reserve(operands.size());
  for (const std::string& operand : operands) lines.push_back("movq " + operand + ", %rax");
  const Bytes code = assemble(as, lines);
  ASSERT_GT(code.size(), (operands.size() - 1) * kSlot) << "as refused an operand";
  for (std::size_t i = 0; i < operands.size(); ++i) {
    SCOPED_TRACE(operands[i]);
    const std::string text = "8@" + operands[i];
    const ParsedArg arg = parse_x86_att(text).at(0);
    const auto* ours = std::get_if<MemOperand>(&arg.operand);
    ASSERT_NE(ours, nullptr);
    const MemOperand theirs = decode_mov(&code[i * kSlot]);
    EXPECT_EQ(ours->base, theirs.base);
    EXPECT_EQ(ours->index, theirs.index);
    EXPECT_EQ(ours->scale, theirs.scale);
    EXPECT_EQ(ours->disp + (ours->symbol ? kSymbol : 0), theirs.disp);
    EXPECT_EQ(ours->segment, theirs.segment);
  }
}

TEST(Assembler, agrees_on_every_address_form) { expect_agreement(every_address_form()); }

TEST(Assembler, agrees_on_the_memory_operands_of_real_programs) {
  const std::vector<std::string> operands = real_operands();
  ASSERT_GT(operands.size(), 100u);
  expect_agreement(operands);
}

/// The words of `constants` as `as` makes them are ours.
void expect_constants(const std::vector<std::string>& constants) {
  const std::string as = assembler();
  if (as.empty() || !runs("objcopy --version")) GTEST_SKIP() << "needs GNU as for x86-64 and objcopy (binutils)";
  std::vector<std::string> lines;
  lines.reserve(constants.size());
  for (const std::string& constant : constants) lines.push_back("movabsq $" + constant + ", %rax");
  const Bytes code = assemble(as, lines);
  ASSERT_GT(code.size(), (constants.size() - 1) * kSlot) << "as refused a constant";
  for (std::size_t i = 0; i < constants.size(); ++i) {
    const std::string text = "8@$" + constants[i];
    const ParsedArg arg = parse_x86_att(text).at(0);
    const auto* ours = std::get_if<ConstOperand>(&arg.operand);
    ASSERT_NE(ours, nullptr) << constants[i];
    const std::uint64_t value = ours->bits() + (ours->symbol ? static_cast<std::uint64_t>(kSymbol) : 0);
    EXPECT_EQ(value, read_as<std::uint64_t>(&code[i * kSlot + 2])) << constants[i];
  }
}

TEST(Assembler, agrees_on_constants) {
  const std::vector<std::string> constants = {"0",
                                              "5",
                                              "-9",
                                              "0x10",
                                              "-0x10",
                                              "017",
                                              "(8+4)",
                                              "2*8",
                                              "-(3-5)",
                                              "sym",
                                              "sym+4",
                                              "4+sym",
                                              "-4+sym",
                                              "sym-4",
                                              "4294967295",
                                              "0xffffffffffffffff",
                                              "18446744073709551614",
                                              "-9223372036854775808",
                                              "9223372036854775807"};
  expect_constants(constants);
}

TEST(Assembler, agrees_on_constants_of_every_operator) {
  std::vector<std::string> constants = {"~5",
                                        "~-1",
                                        "!5",
                                        "!!7",
                                        "!(0+1)",
                                        "-(3+4)",
                                        "~(3|4)",
                                        "3+~4*2",
                                        "(- 5)",
                                        "(~ 5)",
                                        "128&128",
                                        "8|4",
                                        "7^2|8",
                                        "(3&5|8)",
                                        "5&~4",
                                        "-8>>1",
                                        "-1>>4",
                                        "1<<63",
                                        "1<<64",
                                        "1<<-1",
                                        "-7/2",
                                        "-7%4",
                                        "6/4",
                                        "(1 << 3 +1)",
                                        "(1<<2)+(~3&7)",
                                        "0xffffffffffffffff&0xff",
                                        "~0x8000000000000000",
                                        "0xfffffffffffffffe|1",
                                        "0xffffffffffffffff^1",
                                        "0x8000000000000000>>63",
                                        "100-(  (8+10) -50)+3"};
  // How tightly each binds, beside each other and alone.
  const std::array operators = {"+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^"};
  for (const std::string first : operators) {
    for (const std::string second : operators) constants.push_back("1234" + first + "5" + second + "3");
  }
  expect_constants(constants);
}

/// What as refuses cannot be in a note of a compiled file; we refuse it too.
TEST(Assembler, refuses_what_we_refuse) {
  const std::string as = assembler();
  if (as.empty()) GTEST_SKIP() << "needs GNU as for x86-64 (binutils)";
  for (const std::string operand :
       {"a-b(%rax)", "-a(%rax)", "4-a(%rax)", "()", "(,)", "(%rax,)", "(%rax,,)", "(%rax,,4)", "(%rax,%rcx,3)",
        "(%rax,%rcx,16)", "(%rax", "8(%rax))", "sym@@V1(%rip)", "%rax:8", "08(%rax)", "~a(%rax)", "a*2(%rax)"}) {
    EXPECT_TRUE(assemble(as, {"movq " + operand + ", %rax"}).empty()) << operand;
    EXPECT_TRUE(parse_x86_att("8@" + operand).at(0).unreadable) << operand;
  }
}

}  // namespace
}  // namespace usdt::parsers
