// SPDX-License-Identifier: BSD-2-Clause
// Symbols and GOT slots of linked files, judged by nm, readelf and the linker's own arithmetic.
#include "elf/symbols.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "toolchain.hpp"

namespace usdt::test {
namespace {

using elf::SymbolIndex;
using testing::HasSubstr;

constexpr std::string_view kOne = R"(
#include <errno.h>
__thread int per_thread;
int exported = 1;
static int twice = 2;
static int hidden_one = 3;
extern char **environ;
int *one(void) { return &twice + hidden_one; }
int use_tls(void) { return per_thread + (environ != 0) + exported; }
static int pick_a(void) { return 1; }
static int (*choose(void))(void) { return pick_a; }
int chosen(void) __attribute__((ifunc("choose")));
extern int alias_of_exported __attribute__((alias("exported")));
int versioned_v1(void) { return 1; }
)";
constexpr std::string_view kTwo = R"(
static int twice = 4;
int *two(void) { return &twice; }
)";

/// The address nm prints for `name`, 0 where it has none.
std::uint64_t nm(const TempDir& dir, const std::string& file, const std::string& name) {
  const auto out = run_in(dir, fmt::format("nm -a {} | grep -E ' [A-Za-z] {}(@.*)?$' | head -1", file, name)).output;
  return std::strtoull(out.c_str(), nullptr, 16);
}

class Symbols : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!can_compile(GetParam())) GTEST_SKIP() << "cc " << GetParam() << " does not work here";
    dir_.write("one.c", kOne);
    dir_.write("two.c", kTwo);
    dir_.write("map", "V1 { global: exported; versioned_v1; one; two; chosen; use_tls; local: *; };\n");
    const auto built =
        run_in(dir_, fmt::format("cc {} -fPIC -shared one.c two.c -Wl,--version-script=map -o lib.so", GetParam()));
    ASSERT_EQ(built.status, 0) << built.output;
  }
  SymbolIndex index(const std::string& name = "lib.so") {
    const auto file = ElfFile::open(dir_ / name, {.debug_dirs = {}});
    if (!file) throw std::runtime_error(file.error().message);
    return SymbolIndex(*file);  // outlives the file
  }
  void expect_error(const SymbolIndex& symbols, const char* name, ErrorKind kind, const char* text) {
    const auto address = symbols.address(name);
    ASSERT_FALSE(address) << name;
    EXPECT_EQ(address.error().kind, kind);
    EXPECT_THAT(address.error().message, HasSubstr(text));
    EXPECT_THAT(address.error().message, HasSubstr(name));
  }
  TempDir dir_;
};

TEST_P(Symbols, DefinedOnceHaveTheAddressNmShows) {
  const SymbolIndex symbols = index();
  for (const char* name : {"exported", "hidden_one", "one", "two", "versioned_v1", "pick_a"}) {
    const auto address = symbols.address(name);
    ASSERT_TRUE(address) << address.error().message;
    EXPECT_NE(address->value, 0U);
    EXPECT_EQ(address->value, nm(dir_, "lib.so", name)) << name;
  }
  EXPECT_EQ(*symbols.address("alias_of_exported"), *symbols.address("exported"));
}

TEST_P(Symbols, DefinedTwiceAreAmbiguous) {
  expect_error(index(), "twice", ErrorKind::invalid_argument, "has 2 addresses: 0x");
}
TEST_P(Symbols, ThreadLocalAreNotSupported) {
  expect_error(index(), "per_thread", ErrorKind::not_supported, "thread-local");
}
TEST_P(Symbols, ChosenAtRunTimeAreNotSupported) {
  expect_error(index(), "chosen", ErrorKind::not_supported, "run time");
}
TEST_P(Symbols, UndefinedHereAreSaidToLiveElsewhere) {
  expect_error(index(), "environ", ErrorKind::not_supported, "undefined here");
}
TEST_P(Symbols, NamedNowhereAreNotFound) {
  expect_error(index(), "nowhere", ErrorKind::not_found, "neither .symtab nor .dynsym");
  expect_error(index(), "one.c", ErrorKind::not_found, "neither");
  expect_error(index(), ".text", ErrorKind::not_found, "neither");
}

TEST_P(Symbols, OfAStrippedFileAreThoseOfDynsym) {
  ASSERT_EQ(run_in(dir_, "strip -o stripped.so lib.so").status, 0);
  const SymbolIndex symbols = index("stripped.so");
  EXPECT_EQ(symbols.address("exported")->value, nm(dir_, "lib.so", "exported"));
  EXPECT_FALSE(symbols.address("hidden_one"));
}

TEST_P(Symbols, OfARelocatableObjectHaveNoAddressYet) {
  ASSERT_EQ(run_in(dir_, fmt::format("cc {} -c two.c", GetParam())).status, 0);
  expect_error(index("two.o"), "two", ErrorKind::not_supported, "before the relocatable object is linked");
}

TEST_P(Symbols, WithAGlobDatRelocationHaveItsSlot) {
  const auto relocations = run_in(dir_, "readelf -rW lib.so | grep GLOB_DAT | grep -w environ").output;
  const auto slot = index().got_slot("environ");
  ASSERT_TRUE(slot) << slot.error().message;
  EXPECT_EQ(slot->value, std::strtoull(relocations.c_str(), nullptr, 16));
}

TEST_P(Symbols, WithoutASlotHaveNone) {
  const auto slot = index().got_slot("hidden_one");
  ASSERT_FALSE(slot);
  EXPECT_EQ(slot.error().kind, ErrorKind::not_found);
  EXPECT_THAT(slot.error().message, HasSubstr("hidden_one"));
}

TEST_P(Symbols, OfTheGotItselfMatchNm) {
  const auto got = index().global_offset_table();
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->value, nm(dir_, "lib.so", "_GLOBAL_OFFSET_TABLE_"));
  ASSERT_EQ(run_in(dir_, "strip -o stripped.so lib.so").status, 0);
  EXPECT_EQ(index("stripped.so").global_offset_table()->value, got->value) << "from DT_PLTGOT";
}

TEST_P(Symbols, ComeWithTheMarkOfTheirCompiler) {
  EXPECT_TRUE(index().compilers().gcc);
  EXPECT_FALSE(index().compilers().clang);
}

INSTANTIATE_TEST_SUITE_P(Machines, Symbols, testing::Values("-m64", "-m32"));

/// A slot that no symbolic relocation names: the linker bound it. The instruction that loads it is kept as written by
/// -Wl,--no-relax, and its address is where the GOT entry must be.
class BoundSlot : public testing::TestWithParam<const char*> {};

TEST_P(BoundSlot, IsFoundByTheAddressItHolds) {
  const TempDir dir;
  if (!can_compile("")) GTEST_SKIP() << "no compiler";
  dir.write("got.S", R"asm(
        .globl  target, main, load
        .hidden target
        .text
main:   ret
load:   movq    target@GOTPCREL(%rip), %rax
load_end: ret
        .data
        .quad   target          # a pointer to it that is no GOT slot
target: .quad   1
        .section .note.GNU-stack,"",@progbits
)asm");
  const auto built =
      run_in(dir, fmt::format("cc {} got.S -Wl,--no-relax -Wa,-mrelax-relocations=no -o prog", GetParam()));
  ASSERT_EQ(built.status, 0) << built.output;
  const auto file = ElfFile::open(dir / "prog");
  ASSERT_TRUE(file);
  const SymbolIndex symbols(*file);
  const auto slot = symbols.got_slot("target");
  ASSERT_TRUE(slot) << slot.error().message;

  // load: 48 8b 05 disp32; the slot is at the next instruction + disp32.
  const auto shown = run_in(dir, "objdump -d prog | grep -A1 '<load>:' | grep -oE '# [0-9a-f]+'").output;
  EXPECT_EQ(slot->value, std::strtoull(shown.substr(2).c_str(), nullptr, 16));
}

INSTANTIATE_TEST_SUITE_P(Kinds, BoundSlot,
                         testing::Values("-no-pie", "-pie", "-pie -Wl,-z,pack-relative-relocs", "-static"));

TEST(Compilers, AreToldApartByComment) {
  const TempDir dir;
  dir.write("a.c", "int main(void) { return 0; }\n");
  const auto built = run_in(dir, "clang a.c -c -o a.o");
  if (built.status != 0) GTEST_SKIP() << "no clang: " << built.output;
  const auto file = ElfFile::open(dir / "a.o");
  ASSERT_TRUE(file);
  EXPECT_TRUE(SymbolIndex(*file).compilers().clang);
  EXPECT_FALSE(SymbolIndex(*file).compilers().gcc);
}

}  // namespace
}  // namespace usdt::test
