// SPDX-License-Identifier: BSD-2-Clause
// What things are called with their scopes, in files made to have that looked up without end.
#include "dwarf/names.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "dwarf/debug_info.hpp"
#include "dwarf/die.hpp"
#include "dwarf/dwarf_file.hpp"
#include "dwarf/functions.hpp"
#include "dwarf/units.hpp"
#include "sys/unique_fd.hpp"
#include "toolchain.hpp"

namespace usdt::test {
namespace {

/// A program of three units. The first two have a function "f" each in namespace "a" or "b", and `more` other scopes
/// there; the third has the code of `calls` functions that are these by turns, each with the same one inlined in it.
std::string program(unsigned more, unsigned calls) {
  const auto scopes = [more](std::string_view name) {
    return fmt::format(R"(
.L{0}unit: .long .L{0}end - .L{0}begin
.L{0}begin: .short 5
  .byte 1, 8
  .long .debug_abbrev
  .byte 1, 2
  .string "{0}"
.L{0}f: .byte 3
  .string "f"
  .fill {1}, 1, 4
  .byte 0, 0
.L{0}end:
)",
                       name, more);
  };
  return fmt::format(R"(
  .text
  .globl _start
_start: nop
.Lend:
  .section .debug_abbrev,"",@progbits
  .byte 1, 0x11, 1, 0, 0
  .byte 2, 0x39, 1, 3, 8, 0, 0
  .byte 3, 0x2e, 0, 3, 8, 0, 0
  .byte 4, 0x39, 0, 0, 0
  .byte 5, 0x2e, 1, 0x31, 0x10, 0x11, 1, 0x12, 6, 0, 0
  .byte 6, 0x1d, 0, 0x31, 0x10, 0x11, 1, 0x12, 6, 0, 0
  .byte 0
  .section .debug_info,"",@progbits
.Linfo:
{0}{1}
.Lunit: .long .Lunitend - .Lbegin
.Lbegin: .short 5
  .byte 1, 8
  .long .debug_abbrev
  .byte 1
  .macro running f
  .byte 5
  .long \f - .Linfo
  .quad _start
  .long .Lend - _start
  .byte 6
  .long .Laf - .Linfo
  .quad _start
  .long .Lend - _start
  .byte 0
  .endm
  .rept {2}
  running .Laf
  running .Lbf
  .endr
  .byte 0
.Lunitend:
  .section .note.GNU-stack,"",@progbits
)",
                     scopes("a"), scopes("b"), calls / 2);
}

class ScopesWithoutEnd : public testing::Test {
 protected:
  void build(unsigned more, unsigned calls) {
    dir_.write("x.s", program(more, calls));
    const auto built = run_in(dir_, "as -64 x.s -o x.o && ld -Ttext=0x401000 x.o -o x && rm x.o");
    ASSERT_EQ(built.status, 0) << built.output;
  }
  TempDir dir_;
};

/// The function of each of the first two units.
std::pair<Dwarf_Die, Dwarf_Die> functions_of_units(Dwarf* dwarf) {
  std::vector<Dwarf_Die> found;
  dwarf::for_each_unit(dwarf, dwarf::SplitUnits(), [&found](Dwarf_Die unit) {
    found.push_back(*dwarf::first_child(*dwarf::first_child(unit)));
    return found.size() < 2;
  });
  return {found.at(0), found.at(1)};
}

TEST_F(ScopesWithoutEnd, are_looked_up_again_in_bounded_work) {
  constexpr unsigned scopes = 10'000;
  build(scopes, 2);
  const sys::UniqueFd fd(::open((dir_ / "x").c_str(), O_RDONLY | O_CLOEXEC));
  const dwarf::DwarfHandle dwarf(dwarf_begin(fd.get(), DWARF_C_READ));
  ASSERT_TRUE(dwarf);
  const auto [in_a, in_b] = functions_of_units(dwarf.get());
  dwarf::ScopeNames whole(2 * scopes, {});
  dwarf::ScopeNames names(2 * scopes, {}, scopes / 2);
  unsigned asked = 0;
  while (!names.spent() && asked < 1'000'000) {
    ++asked;
    EXPECT_EQ(names.qualified(in_a), "a::f");
    if (names.spent()) break;
    EXPECT_EQ(names.qualified(in_b), "b::f");
    EXPECT_EQ(whole.qualified(in_a), "a::f");
    EXPECT_EQ(whole.qualified(in_b), "b::f");
  }
  EXPECT_TRUE(names.spent());
  EXPECT_GT(asked, 10U) << "what compilers write is looked up, how large soever";
  EXPECT_LT(asked, 1000U);
  EXPECT_FALSE(whole.spent()) << "what is remembered is not looked up again";
}

TEST_F(ScopesWithoutEnd, are_an_error_and_no_names_that_lack_them) {
  if (std::getenv("USDT_LONG") == nullptr) GTEST_SKIP() << "takes some ten seconds: USDT_LONG=1";
  build(dwarf::ScopeNames::fewest_links + 1000, 10'000);
  const auto file = ElfFile::open(dir_ / "x");
  ASSERT_TRUE(file);
  const auto info = dwarf::DebugInfo::open(*file);
  ASSERT_TRUE(info) << info.error().message;
  const auto functions = dwarf::find_functions(*info, [](const dwarf::FunctionInfo&) { return true; });
  ASSERT_FALSE(functions);
  EXPECT_EQ(functions.error().kind, ErrorKind::limit);
}

TEST_F(ScopesWithoutEnd, of_a_file_that_is_small_are_known) {
  build(1000, 1000);
  const auto file = ElfFile::open(dir_ / "x");
  ASSERT_TRUE(file);
  const auto info = dwarf::DebugInfo::open(*file);
  ASSERT_TRUE(info) << info.error().message;
  const auto functions = dwarf::find_functions(*info, [](const dwarf::FunctionInfo&) { return true; });
  ASSERT_TRUE(functions) << functions.error().message;
  ASSERT_EQ(functions->size(), 2U);
  EXPECT_EQ((*functions)[0].qualified, "a::f");
  EXPECT_EQ((*functions)[1].qualified, "b::f");
}

}  // namespace
}  // namespace usdt::test
