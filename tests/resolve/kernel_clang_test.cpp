// SPDX-License-Identifier: BSD-2-Clause
// Calling conventions of other machines, judged by Clang's assembly: a function that does nothing but name one
// parameter has it where the caller put it, and says where.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <random>
#include <regex>
#include <sstream>

#include "c_types.hpp"
#include "elf/toolchain.hpp"
#include "resolve/prototype.hpp"
#include "usdt/decode.hpp"

namespace usdt::resolve {
namespace {

using test::BtfBuilder;
using test::CType;

/// A machine that Clang compiles for, and how it writes what is asked.
struct Target {
  std::string_view name;
  Machine machine;
  std::string_view options;
  std::string_view mark;   ///< a comment, with the name of the place and of a whole register
  std::regex load;         ///< from the stack: the register's number or name, the displacement
  std::regex marked;       ///< the comment: the name of the place, the register
  std::string_view stack;  ///< an address there
};

const std::array targets{
    Target{"aarch64", Machine::aarch64, "--target=aarch64-linux-gnu", "//place {} %x0",
           std::regex(R"(\s*ldr\w*\s+[wx](\d+), \[sp(?:, #(\d+))?\].*)"), std::regex(R"(\s*//place (\S+) x(\d+))"),
           "[sp, {}]"},
    // The kernel is compiled without floating-point registers (arch/riscv/Makefile).
    Target{"riscv64", Machine::riscv64, "--target=riscv64-linux-gnu -mabi=lp64", "#place {} %0",
           std::regex(R"(\s*l[wd]u?\s+(\w+), (\d+)\(sp\).*)"), std::regex(R"(\s*#place (\S+) (\w+))"), "{}(sp)"},
};

/// Parameter `number` of prototype `proto`, as our signature has it.
struct Asked {
  std::string place;  ///< "x3", "[sp, 8]"
  std::string prototype;
};

/// Random prototypes, and for each readable parameter a function that names it.
class Functions {
 public:
  explicit Functions(const Target& target) : target_(target) {
    const std::vector<CType> plain = test::c_scalars(made_, target.machine, true);
    const std::vector<CType> structs = test::c_structs(made_, plain, target.machine);
    source_ = test::c_structures;
    for (unsigned i = 0; i < 450; ++i) {
      std::vector<CType> parameters(below(13));
      for (CType& one : parameters) one = below(3) == 0 ? structs[below(structs.size())] : plain[below(plain.size())];
      add(i, parameters, below(3) == 0 ? std::optional(structs[below(structs.size())]) : std::nullopt);
    }
  }

  [[nodiscard]] const std::string& source() const { return source_; }
  [[nodiscard]] const std::map<std::string, Asked>& asked() const { return asked_; }

 private:
  unsigned below(std::size_t limit) { return static_cast<unsigned>(random_() % limit); }

  void add(unsigned number, const std::vector<CType>& parameters, const std::optional<CType>& result) {
    std::vector<BtfBuilder::Param> btf_parameters;
    std::string list;
    for (const CType& one : parameters) {
      list += fmt::format("{}{} p{}", list.empty() ? "" : ", ", one.c, btf_parameters.size());
      btf_parameters.push_back({"", one.id});
    }
    const auto proto = made_.prototype(result ? result->id : 0, btf_parameters);
    const auto types = made_.types();
    const auto signature = kernel_signature(*types, *types->prototype(proto), Convention::registers, target_.machine);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      // Shorter values may be extended first, into another register.
      if (!parameters[i].readable || parameters[i].size < 4) continue;
      const Arg& arg = signature.args.at(i);
      const std::string name = fmt::format("{}.{}", number, i);
      asked_[name] = {
          .place = arg.readable() ? location_text(arg.location, target_.machine) : std::string(arg.why_unreadable()),
          .prototype = list};
      source_ +=
          fmt::format("{} f{}_{}({}) {{ __asm__ volatile(\"{}\" :: \"r\"(p{})); {} }}\n", result ? result->c : "void",
                      number, i, list, fmt::format(fmt::runtime(target_.mark), name), i, result ? "for (;;);" : "");
    }
  }

  const Target& target_;
  BtfBuilder made_;
  std::mt19937 random_{20260730};
  std::string source_;
  std::map<std::string, Asked> asked_;
};

/// Where the functions of an assembly have what they name: a register, or a load from the stack into one.
std::map<std::string, std::string> places_in(const std::string& assembly, const Target& target) {
  std::map<std::string, std::string> places, loaded;
  std::istringstream lines(assembly);
  std::smatch found;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('f')) loaded.clear();  // the label of the next
    if (std::regex_match(line, found, target.load)) {
      loaded[found[1]] = fmt::format(fmt::runtime(target.stack), found[2].matched ? found[2].str() : "0");
    } else if (std::regex_match(line, found, target.marked)) {
      const auto from = loaded.find(found[2]);
      const bool numbered = std::isdigit(static_cast<unsigned char>(found[2].str().front())) != 0;
      places[found[1]] = from != loaded.end() ? from->second : (numbered ? "x" : "") + found[2].str();
    }
  }
  return places;
}

class KernelArgsOf : public testing::TestWithParam<std::size_t> {};

TEST_P(KernelArgsOf, this_machine_are_where_clang_finds_them) {
  const Target& target = targets.at(GetParam());
  const test::TempDir dir;
  const Functions functions(target);
  dir.write("f.c", functions.source());
  dir.write("probe.c", "int x;\n");
  const std::string clang = fmt::format("clang {} -O1 -ffreestanding -fomit-frame-pointer -w -S", target.options);
  if (test::run_in(dir, fmt::format("{} probe.c", clang)).status != 0) GTEST_SKIP() << "no clang for " << target.name;
  const auto made = test::run_in(dir, fmt::format("{} f.c", clang));
  ASSERT_EQ(made.status, 0) << made.output;
  std::size_t in_registers = 0, on_stack = 0;
  for (const auto& [name, place] : places_in(test::read_file(dir / "f.s"), target)) {
    const Asked& asked = functions.asked().at(name);
    EXPECT_EQ(place, asked.place) << asked.prototype << ": " << name;
    (place.find("sp") != place.npos ? on_stack : in_registers) += 1;
  }
  EXPECT_EQ(in_registers + on_stack, functions.asked().size());
  EXPECT_GT(in_registers, 200U);
  EXPECT_GT(on_stack, 100U);
}

INSTANTIATE_TEST_SUITE_P(Machines, KernelArgsOf, testing::Range<std::size_t>(0, targets.size()),
                         [](const auto& instance) { return std::string(targets.at(instance.param).name); });

}  // namespace
}  // namespace usdt::resolve
