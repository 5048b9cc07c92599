// SPDX-License-Identifier: BSD-2-Clause
// How functions are left, by their instructions; objdump says what is right.
#include "elf/function_flow.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "base/symbol_name.hpp"
#include "elf/functions.hpp"
#include "elf/return_address.hpp"
#include "toolchain.hpp"

namespace usdt::test {
namespace {

using testing::HasSubstr;

/// What objdump has of one symbol.
struct Disassembled {
  std::set<std::uint64_t> rets;
  std::size_t jumps_by_value = 0;
  std::multiset<std::string> jumps_to;  ///< symbols, also its own
  std::set<std::string> led_to_by;      ///< symbols that jump to it, or "call"
};

/// By symbol, with what is of its pieces.
std::map<std::string, Disassembled> disassemble(const TempDir& dir, const std::string& file) {
  std::map<std::string, Disassembled> found;
  std::istringstream text(run_in(dir, "objdump -d --no-show-raw-insn " + file).output);
  static const std::regex head("^[0-9a-f]+ <(.*)>:$");
  static const std::regex code("^ *([0-9a-f]+):\\t(?:bnd |notrack |repz )*([a-z]+)(?:,p[nt])? *(.*)$");
  static const std::regex to("<([^+>]*)(?:\\+0x[0-9a-f]+)?>");
  std::string symbol;
  for (std::string line; std::getline(text, line);) {
    std::smatch match;
    if (std::regex_match(line, match, head)) {
      const std::string whole(other_half(match[1].str()));
      symbol = whole.empty() ? match[1].str() : whole;
    } else if (std::regex_match(line, match, code)) {
      Disassembled& in = found[symbol];
      const std::string name = match[2];
      const std::string operand = match[3];
      if (name.starts_with("ret")) in.rets.insert(std::stoull(match[1], nullptr, 16));
      const bool calls = name.starts_with("call");
      if (name.front() != 'j' && !calls) continue;
      if (operand.find('*') != operand.npos) {
        in.jumps_by_value += calls ? 0 : 1;
      } else if (std::regex_search(operand, match, to)) {
        const std::string whole(other_half(match[1].str()));
        const std::string target = whole.empty() ? match[1].str() : whole;
        found[target].led_to_by.insert(calls ? "call" : symbol);
        if (!calls) in.jumps_to.insert(target);
      }
    }
  }
  return found;
}

/// Each function of the file that `names` mean, with its flow; functions of one symbol are not among them.
void compare_with_objdump(const TempDir& dir, const std::string& file, const std::vector<std::string>& names) {
  const auto opened = ElfFile::open(dir / file);
  ASSERT_TRUE(opened) << opened.error().message;
  const elf::FunctionPieces pieces(*opened);
  auto told = disassemble(dir, file);
  for (const std::string& name : names) {
    const std::vector wanted{elf::FunctionName(name)};
    const auto functions = elf::find_functions(*opened, wanted);
    ASSERT_TRUE(functions && functions->size() == 1) << file << " " << name;
    const auto flow = elf::flow_of(*opened, functions->front(), &pieces);
    ASSERT_TRUE(flow) << file << " " << name << ": " << flow.error().message;
    Disassembled right = told[functions->front().symbol];
    // Copies that nobody else leads to are parts of it.
    for (const std::string& target : std::set(right.jumps_to.begin(), right.jumps_to.end())) {
      const std::set<std::string> own{name, target};
      if (!is_clone(target) || !std::ranges::includes(own, told[target].led_to_by)) continue;
      right.jumps_to.erase(target);
      right.rets.merge(std::set(told[target].rets));
      for (const std::string& each : told[target].jumps_to)
        if (each != target) right.jumps_to.insert(each);
      right.jumps_by_value += told[target].jumps_by_value;
    }
    std::set<std::uint64_t> rets;
    for (const VirtAddr at : flow->returns) rets.insert(at.value);
    EXPECT_EQ(rets, right.rets) << file << " " << name;
    right.jumps_to.erase(functions->front().symbol);
    EXPECT_EQ(flow->jumps_away, right.jumps_to.size()) << file << " " << name;
    EXPECT_EQ(flow->jumps_by_value + flow->jumps_by_table, right.jumps_by_value) << file << " " << name;
  }
}

constexpr std::string_view kFunctions = R"(
#include <stdio.h>
#include <stdlib.h>
#ifdef __cplusplus
extern "C" {
#endif
volatile int sink;
__attribute__((noinline, cold)) void complain(const char* what, int x) { if (x > sink) { puts(what); ++sink; } }
__attribute__((noinline)) int other(int x) { sink += x; return x + 1; }
int plain(int x) { return other(x) + 2; }
int seldom(int x) {
  if (__builtin_expect(x > 1000, 0)) { complain("much", x); if (x > 5000) return other(other(x)) - 1; complain("more", x); return 7 + other(x); }
  return other(x) * 2 + plain(x);
}
int always_away(int x) { return other(2 * x); }
int sometimes_away(int x) { return x > 2 ? other(x) : x * 3 - sink; }
int switches(int x) {
  switch (x) {
    case 0: return other(5) + 1;
    case 1: return plain(8) * 3;
    case 2: sink = 4; return x + sink;
    case 3: return plain(other(x)) - 2;
    case 4: sink += 9; break;
    case 5: return other(7) * other(9);
    case 6: sink -= 3; return sink * 77;
    case 7: complain("seven", x); break;
    case 8: return other(11) + 11;
    case 9: return seldom(3) / 3;
  }
  return sink + x;
}
typedef int (*handler)(int);
extern handler handlers[16];
handler handlers[16] = {other, plain};
int by_pointer(handler f, int x) { return f(x); }
int by_table(int i, int x) { return handlers[i](x); }
#ifdef __cplusplus
}
struct failure { int code; };
__attribute__((noinline)) int throws(int x) { if (x % 3 == 0) throw failure{x}; return x; }
extern "C" int catches(int x) {
  try { return throws(x) + throws(x + 1); }
  catch (failure& f) { if (f.code > 100) return other(f.code) + 5; complain("caught", f.code); return f.code - other(3); }
}
extern "C" int lets_pass(int x) { struct ends { int x; ~ends() { complain("ends", x); } } each{x}; return throws(x) + other(x) * 2; }
#endif
int main(int argc, char** argv) {
  return seldom(argc) + always_away(argc) + sometimes_away(argc) + switches(argc) + by_pointer(other, argc) + by_table(argc, 1)
#ifdef __cplusplus
    + catches(argc) + lets_pass(argc)
#endif
  ;
}
)";

/// Each command at one level in turn, so that gcc and clang are at each; USDT_LONG=1: each at each.
TEST(FunctionFlow, has_each_return_of_all_pieces_whatever_compiler_made_them) {
  const TempDir dir;
  dir.write("f.c", kFunctions);
  dir.write("f.cpp", kFunctions);
  const std::vector<std::string> c = {"plain",    "seldom",     "always_away", "sometimes_away",
                                      "switches", "by_pointer", "by_table"};
  std::vector<std::string> cpp = c;
  cpp.insert(cpp.end(), {"catches", "lets_pass"});
  std::size_t first = 0;
  for (const std::string level : {"-O2", "-O3", "-Os"}) {
    std::size_t turn = first++;
    for (const std::string command :
         {"gcc", "gcc -fcf-protection=full", "gcc -fno-pie -no-pie", "gcc -fno-jump-tables", "clang",
          "clang -fno-pie -no-pie", "clang -fbasic-block-sections=all", "clang -fcf-protection=full", "g++",
          "g++ -ffunction-sections", "clang++", "clang++ -fbasic-block-sections=all"}) {
      if (turn++ % 3 != 0 && std::getenv("USDT_LONG") == nullptr) continue;
      const bool is_cpp = command.find("++") != command.npos;
      const auto built = run_in(dir, fmt::format("{} {} -w f.{} -o f", command, level, is_cpp ? "cpp" : "c"));
      ASSERT_EQ(built.status, 0) << built.output;
      SCOPED_TRACE(command + " " + level);
      compare_with_objdump(dir, "f", is_cpp ? cpp : c);
    }
  }
}

TEST(FunctionFlow, tells_a_switch_from_a_call_by_a_jump) {
  const TempDir dir;
  dir.write("f.c", kFunctions);
  for (const std::string command :
       {"gcc", "gcc -fcf-protection=full", "gcc -fno-pie -no-pie", "clang", "clang -fno-pie -no-pie"}) {
    ASSERT_EQ(run_in(dir, command + " -O2 -w f.c -o f").status, 0);
    const auto file = ElfFile::open(dir / "f");
    ASSERT_TRUE(file);
    const elf::FunctionPieces pieces(*file);
    const auto flow = [&](std::string_view name) {
      const std::vector wanted{elf::FunctionName(name)};
      return elf::flow_of(*file, elf::find_functions(*file, wanted)->at(0), &pieces).value();
    };
    EXPECT_EQ(flow("switches").jumps_by_table, 1U) << command;
    EXPECT_TRUE(flow("switches").returns_itself() || flow("switches").jumps_away > 0) << command;
    for (const char* name : {"by_pointer", "by_table"}) {
      EXPECT_EQ(flow(name).jumps_by_value, 1U) << command << " " << name;
      EXPECT_EQ(flow(name).jumps_by_table, 0U) << command << " " << name;
    }
  }
}

TEST(FunctionFlow, has_the_returns_of_pieces_whose_symbols_were_stripped) {
  const TempDir dir;
  dir.write("f.c", kFunctions);
  dir.write("f.cpp", kFunctions);
  for (const std::string command : {"gcc -O2", "gcc -O3", "g++ -O2", "g++ -O3"}) {
    const bool is_cpp = command.find("++") != command.npos;
    const std::string flags = " -w -shared -fPIC -Wl,-Bsymbolic f." + std::string(is_cpp ? "cpp" : "c") + " -o lib.so";
    const auto built = run_in(dir, command + flags + " && strip lib.so -o stripped.so");
    ASSERT_EQ(built.status, 0) << built.output;
    const auto whole = ElfFile::open(dir / "lib.so");
    const auto stripped = ElfFile::open(dir / "stripped.so");
    ASSERT_TRUE(whole && stripped);
    const elf::FunctionPieces of_whole(*whole);
    const elf::FunctionPieces of_stripped(*stripped);
    std::size_t elsewhere = 0;
    for (const char* name : {"plain", "seldom", "sometimes_away", "switches", "catches", "lets_pass"}) {
      const std::vector wanted{elf::FunctionName(name)};
      const auto functions = elf::find_functions(*stripped, wanted);
      if (!functions || functions->empty()) continue;  // of C++ alone
      const auto right = elf::flow_of(*whole, functions->front(), &of_whole);
      const auto flow = elf::flow_of(*stripped, functions->front(), &of_stripped);
      ASSERT_TRUE(right && flow) << command << " " << name;
      for (const VirtAddr at : flow->returns)
        EXPECT_NE(std::ranges::find(right->returns, at), right->returns.end())
            << command << " " << name << " has another's";
      if (flow->jumps_away == right->jumps_away) {
        EXPECT_EQ(flow->returns, right->returns) << command << " " << name;
      }
      EXPECT_GE(flow->jumps_away, right->jumps_away) << command << " " << name;
      elsewhere +=
          static_cast<std::size_t>(std::ranges::count_if(
              flow->targets,
              [&](VirtAddr at) { return at.value - functions->front().address.value >= functions->front().size; })) -
          flow->jumps_away;
    }
    EXPECT_GT(elsewhere, 0U) << command << ": no jump led to a piece without a symbol: nothing is shown";
  }
}

/// Functions of one file in assembler, by name.
class Assembled : public testing::Test {
 protected:
  void assemble(const std::string& text) {
    dir_.write("a.S", text + "\n.section .note.GNU-stack,\"\",@progbits\n");
    const auto made = run_in(dir_, "cc -shared -nostdlib -Wl,-Bsymbolic a.S -o lib.so");
    ASSERT_EQ(made.status, 0) << made.output;
    file_.emplace(ElfFile::open(dir_ / "lib.so").value());
    pieces_.emplace(*file_);
  }
  static std::string function(const std::string& name, const std::string& code) {
    return fmt::format("\n.type \"{0}\",@function\n\"{0}\": {1}\n.size \"{0}\", .-\"{0}\"\n", name, code);
  }
  [[nodiscard]] Result<elf::FunctionFlow> flow(std::string_view name) const {
    const std::vector wanted{elf::FunctionName(name)};
    return elf::flow_of(*file_, elf::find_functions(*file_, wanted)->at(0), &*pieces_);
  }

  TempDir dir_;
  std::optional<ElfFile> file_;
  std::optional<elf::FunctionPieces> pieces_;
};

TEST_F(Assembled, copies_belong_to_a_function_that_alone_leads_to_them) {
  assemble(function("own", "test %edi,%edi; jne own.part.0; ret") + function("own.part.0", "je own.part.0.cold; ret") +
           function("own.part.0.cold", "ret") + function("called", "jmp called.part.0") +
           function("called.part.0", "ret") + function("caller", "call called.part.0; ret") +
           function("shared", "jne shared.constprop.0; ret") + function("shared.constprop.0", "ret") +
           function("sharer", "jmp shared.constprop.0") + function("away", "jne function; ret") +
           function("function", "ret"));
  EXPECT_EQ(flow("own")->returns.size(), 3U);
  EXPECT_TRUE(flow("own")->returns_itself());
  for (const char* name : {"called", "shared", "away"}) EXPECT_EQ(flow(name)->jumps_away, 1U) << name;
  EXPECT_EQ(flow("shared")->returns.size(), 1U);
}

TEST_F(Assembled, pieces_of_one_name_are_of_the_function_that_they_jump_to_or_from) {
  assemble(function("same", "je 7f; 6: ret; 7: jmp 8f") +
           "\n.type same.cold,@function\nsame.cold: 8: js 6b\n ret\n.size same.cold,.-same.cold\n" +
           "\n.type other,@function\n.set other, again\n.type again,@function\nagain: 5: call same; ret\n.size "
           "again,.-again\n");
  EXPECT_EQ(flow("same")->returns.size(), 2U);
  EXPECT_TRUE(flow("same")->returns_itself());
}

TEST_F(Assembled, what_is_no_instruction_makes_no_return) {
  // A table within the code: what is behind it would be taken for the end of an instruction.
  const std::string nops = "nop; nop; nop; nop; nop; nop; nop; ret";
  assemble(function("knows_its_ways", "jmp 1f; .byte 0x48, 0xb8; 1: ret; " + nops) +
           function("jumps_anywhere", "je 1f; jmp *%rax; .byte 0x48, 0xb8; 1: ret; " + nops) +
           function("has_numbers", "lea 1f(%rip),%rax; mov (%rax),%eax; ret; 1: .byte 0x48, 0x89, 0xc3, 0xc3") +
           function("leaves_lock_out", "je 1f; lock; 1: incl (%rdi); ret"));
  EXPECT_EQ(flow("knows_its_ways")->returns.size(), 1U);
  EXPECT_EQ(flow("has_numbers")->returns.size(), 1U);
  const auto refused = flow("jumps_anywhere");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("middle of what was taken for an instruction"));
  EXPECT_TRUE(flow("leaves_lock_out")->returns_itself()) << "glibc leaves out the prefix where there is one thread";
}

TEST_F(Assembled, what_only_an_unknown_jump_or_a_handler_leads_to_has_returns) {
  assemble(function("by_value", "je 1f; jmp *%rdi; 1: ret; nop; ret") +
           function("handles",
                    ".cfi_startproc; .cfi_personality 0, nobody; .cfi_lsda 0, table; call handles; ret; nop; "
                    "ret; .cfi_endproc") +
           "\n.weak nobody\ntable: .quad 1\n");
  EXPECT_EQ(flow("by_value")->returns.size(), 2U);
  EXPECT_EQ(flow("handles")->returns.size(), 2U);
}

TEST_F(Assembled, returns_to_where_the_function_says_are_jumps) {
  const std::string trap = "2: pause; lfence; jmp 2b; ";
  assemble(function("pushes", "lea pushes(%rip),%rax; push %rax; ret") +
           function("retpoline", "test %edi,%edi; js 9f; call 1f; " + trap + "1: mov %rax,(%rsp); ret; 9: ret") +
           function("calls_by_retpoline",
                    "jmp 3f; 4: call 1f; " + trap + "1: mov %rax,(%rsp); ret; 3: call 4b; add $1,%eax; ret") +
           function("calls_itself_within", "call 1f; call 1f; ret; 1: add $1,%edi; ret") +
           function("falls_into_what_it_calls", "call 1f; 1: add $1,%edi; ret") +
           function("pops", "push %rbx; mov %rdi,(%rsp); pop %rbx; ret"));
  EXPECT_EQ(flow("pushes")->returns.size(), 0U);
  EXPECT_EQ(flow("pushes")->jumps_by_value, 1U);
  EXPECT_EQ(flow("retpoline")->returns.size(), 1U);
  EXPECT_EQ(flow("retpoline")->jumps_by_value, 1U);
  for (const char* name : {"calls_by_retpoline", "calls_itself_within", "falls_into_what_it_calls", "pops"}) {
    EXPECT_EQ(flow(name)->returns.size(), 1U) << name;
    EXPECT_TRUE(flow(name)->returns_itself()) << name;
  }
}

TEST_F(Assembled, return_addresses_are_looked_at_by_who_reads_them_or_calls_nobody_knows_whom) {
  assemble(function("leaf", "lea 1(%rdi),%eax; ret") + function("goes_on", "shl %edi; jmp leaf") +
           function("frame", "push %rbp; mov %rsp,%rbp; mov 16(%rbp),%rax; leave; jmp leaf") +
           function("reads", "mov (%rsp),%rax; jmp leaf") + function("leads_to_it", "inc %edi; jmp reads") +
           function("reads_later", "push %rbx; test %edi,%edi; je 1f; inc %edi; 1: mov 8(%rsp),%rax; pop %rbx; ret") +
           function("reads_by_frame", "push %rbp; mov %rsp,%rbp; mov 8(%rbp),%rax; leave; ret") +
           function("reads_argument", "push %rbx; mov 16(%rsp),%rax; pop %rbx; jmp leaf") +
           function("calls_it", "call reads; jmp leaf") + function("by_value", "call *%rax; jmp leaf") +
           function("asks_kernel", "syscall; jmp leaf") + function("switches", "mov %rsi,%rsp; jmp leaf") +
           function("elsewhere", "jmp other_file@plt"));
  elf::ReturnAddresses addresses(*file_, *pieces_);
  const auto function_of = [&](std::string_view name) {
    const std::vector wanted{elf::FunctionName(name)};
    return elf::find_functions(*file_, wanted)->at(0);
  };
  for (const char* name : {"goes_on", "frame", "reads_argument"})
    EXPECT_TRUE(addresses.nobody_looks(function_of(name))) << name;
  for (const char* name : {"reads", "leads_to_it", "reads_later", "reads_by_frame", "calls_it", "by_value",
                           "asks_kernel", "switches", "elsewhere"})
    EXPECT_FALSE(addresses.nobody_looks(function_of(name))) << name;
  for (const char* name : {"reads", "leads_to_it", "reads_later", "reads_by_frame"})
    EXPECT_TRUE(addresses.is_read(function_of(name))) << name;
  for (const char* name : {"goes_on", "frame", "reads_argument", "calls_it", "by_value", "switches"})
    EXPECT_FALSE(addresses.is_read(function_of(name))) << name;
}

TEST_F(Assembled, functions_that_one_jumps_to_return_in_its_place) {
  assemble(function("first", "je 1f; jmp second; 1: ret") + function("second", "js 1f; ret; 1: jmp within") +
           function("third", "inc %edi; ret; within: inc %esi; ret") + function("back", "jmp first") +
           function("by_value", "je 1f; jmp *%rax; 1: jmp third") + function("elsewhere", "jmp other_file@plt") +
           function("leads_there", "jmp by_value"));
  const auto others = [&](std::string_view name) { return elf::others_returns(*file_, *flow(name), *pieces_); };
  EXPECT_EQ(others("first").returns.size(), 2U) << "one of second, one of third";
  EXPECT_EQ(others("back").returns.size(), 3U);
  for (const char* name : {"first", "second", "back"}) EXPECT_TRUE(others(name).all) << name;
  EXPECT_EQ(others("leads_there").returns.size(), 1U);
  for (const char* name : {"by_value", "elsewhere", "leads_there"}) EXPECT_FALSE(others(name).all) << name;
}

TEST_F(Assembled, functions_begin_at_their_own_symbols) {
  assemble(function("whole", "nop; nop; ret") + function("whole.__part.1", "nop; ret") + function("whole.cold", "ret"));
  const auto at = [&](std::string_view name) {
    const std::vector wanted{elf::FunctionName(name)};
    return elf::find_functions(*file_, wanted)->at(0).address;
  };
  EXPECT_TRUE(pieces_->may_begin_at(at("whole")));
  EXPECT_FALSE(pieces_->may_begin_at(at("whole") + 1));
  EXPECT_FALSE(pieces_->may_begin_at(at("whole.__part.1")));
  EXPECT_FALSE(pieces_->may_begin_at(at("whole.cold")));
}

}  // namespace
}  // namespace usdt::test
