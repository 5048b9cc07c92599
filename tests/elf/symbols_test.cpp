// SPDX-License-Identifier: BSD-2-Clause
// Symbols and GOT slots of linked files, judged by nm, readelf and the linker's own arithmetic.
#include "elf/symbols.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "toolchain.hpp"

namespace usdt::test {
namespace {

using elf::SymbolIndex;
using testing::HasSubstr;

constexpr std::string_view kOneInC = R"(
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
constexpr std::string_view kTwoInC = R"(
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
    dir_.write("one.c", kOneInC);
    dir_.write("two.c", kTwoInC);
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

TEST_P(Symbols, defined_once_have_the_address_nm_shows) {
  const SymbolIndex symbols = index();
  for (const char* name : {"exported", "hidden_one", "one", "two", "versioned_v1", "pick_a"}) {
    const auto address = symbols.address(name);
    ASSERT_TRUE(address) << address.error().message;
    EXPECT_NE(address->value, 0U);
    EXPECT_EQ(address->value, nm(dir_, "lib.so", name)) << name;
  }
  EXPECT_EQ(*symbols.address("alias_of_exported"), *symbols.address("exported"));
}

TEST_P(Symbols, defined_twice_are_ambiguous) {
  expect_error(index(), "twice", ErrorKind::invalid_argument, "has 2 addresses: 0x");
}
TEST_P(Symbols, thread_local_are_not_supported) {
  expect_error(index(), "per_thread", ErrorKind::not_supported, "thread-local");
}
TEST_P(Symbols, chosen_at_run_time_are_not_supported) {
  expect_error(index(), "chosen", ErrorKind::not_supported, "run time");
}
TEST_P(Symbols, undefined_here_are_said_to_live_elsewhere) {
  expect_error(index(), "environ", ErrorKind::not_supported, "undefined here");
}
TEST_P(Symbols, named_nowhere_are_not_found) {
  expect_error(index(), "nowhere", ErrorKind::not_found, "neither .symtab nor .dynsym");
  expect_error(index(), "one.c", ErrorKind::not_found, "neither");
  expect_error(index(), ".text", ErrorKind::not_found, "neither");
}

TEST_P(Symbols, are_there_even_if_they_have_no_address) {
  const SymbolIndex symbols = index();
  for (const char* name : {"exported", "hidden_one", "twice", "per_thread", "environ"})
    EXPECT_TRUE(symbols.has(name)) << name;
  for (const char* name : {"nowhere", "one.c", ".text", ""}) EXPECT_FALSE(symbols.has(name)) << name;
}

TEST_P(Symbols, of_a_stripped_file_are_those_of_dynsym) {
  ASSERT_EQ(run_in(dir_, "strip -o stripped.so lib.so").status, 0);
  const SymbolIndex symbols = index("stripped.so");
  EXPECT_EQ(symbols.address("exported")->value, nm(dir_, "lib.so", "exported"));
  EXPECT_FALSE(symbols.address("hidden_one"));
}

TEST_P(Symbols, of_a_relocatable_object_have_no_address_yet) {
  ASSERT_EQ(run_in(dir_, fmt::format("cc {} -c two.c", GetParam())).status, 0);
  expect_error(index("two.o"), "two", ErrorKind::not_supported, "before the relocatable object is linked");
}

TEST_P(Symbols, with_a_glob_dat_relocation_have_its_slot) {
  const auto relocations = run_in(dir_, "readelf -rW lib.so | grep GLOB_DAT | grep -w environ").output;
  const auto slot = index().got_slot("environ");
  ASSERT_TRUE(slot) << slot.error().message;
  EXPECT_EQ(slot->value, std::strtoull(relocations.c_str(), nullptr, 16));
}

TEST_P(Symbols, without_a_slot_have_none) {
  const auto slot = index().got_slot("hidden_one");
  ASSERT_FALSE(slot);
  EXPECT_EQ(slot.error().kind, ErrorKind::not_found);
  EXPECT_THAT(slot.error().message, HasSubstr("hidden_one"));
}

TEST_P(Symbols, of_the_got_itself_match_nm) {
  const auto got = index().global_offset_table();
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->value, nm(dir_, "lib.so", "_GLOBAL_OFFSET_TABLE_"));
  ASSERT_EQ(run_in(dir_, "strip -o stripped.so lib.so").status, 0);
  EXPECT_EQ(index("stripped.so").global_offset_table()->value, got->value) << "from DT_PLTGOT";
}

TEST_P(Symbols, come_with_the_mark_of_their_compiler) {
  EXPECT_TRUE(index().compilers().gcc);
  EXPECT_FALSE(index().compilers().clang);
}

/// The value of TLS symbol `name` as readelf prints it.
std::uint64_t readelf_tls(const TempDir& dir, const std::string& file, const std::string& name) {
  const auto out =
      run_in(dir, fmt::format("readelf -sW {} | grep ' TLS ' | grep -w {} | awk '{{print $2; exit}}'", file, name));
  return std::strtoull(out.output.c_str(), nullptr, 16);
}

TEST_P(Symbols, that_are_thread_local_have_the_offset_readelf_shows) {
  dir_.write("tls.c",
             "__thread int padding[5] = {1};\nstatic __thread int hidden_tls;\n__thread long exported_tls = 2;\n"
             "int *padded(int i) { return padding + i; }\nint *hidden(void) { return &hidden_tls; }\n");
  ASSERT_EQ(run_in(dir_, fmt::format("cc {} -fPIC -shared tls.c -o tls.so", GetParam())).status, 0);
  const SymbolIndex symbols = index("tls.so");
  for (const char* name : {"padding", "hidden_tls", "exported_tls"}) {
    const auto offset = elf::ThreadOffsets(symbols).in_block(name);
    ASSERT_TRUE(offset) << offset.error().message;
    EXPECT_EQ(*offset, readelf_tls(dir_, "tls.so", name)) << name;
  }
  EXPECT_NE(*elf::ThreadOffsets(symbols).in_block("hidden_tls"), 0U);
  EXPECT_EQ(elf::ThreadOffsets(symbols).in_block("padded").error().kind, ErrorKind::not_supported) << "a function";
  EXPECT_EQ(elf::ThreadOffsets(symbols).in_block("nowhere").error().kind, ErrorKind::not_found);
  EXPECT_EQ(elf::ThreadOffsets(symbols).from_pointer("padding").error().kind, ErrorKind::not_supported)
      << "in a library";
}

INSTANTIATE_TEST_SUITE_P(Machines, Symbols, testing::Values("-m64", "-m32"));

/// A slot that no symbolic relocation names: the linker bound it. The instruction that loads it is kept as written by
/// -Wl,--no-relax, and its address is where the GOT entry must be.
class BoundSlot : public testing::TestWithParam<const char*> {};

TEST_P(BoundSlot, is_found_by_the_address_it_holds) {
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

struct Linking {
  const char* flags;
  const char* word;  ///< what the assembler calls the offset from the thread pointer
};
void PrintTo(const Linking& linking, std::ostream* out) { *out << linking.flags; }

/// The linker writes the distance into .data where the program asks for it.
class ThreadPointer : public testing::TestWithParam<Linking> {};

TEST_P(ThreadPointer, is_as_far_from_a_variable_as_the_linker_says) {
  const TempDir dir;
  dir.write("tls.c", fmt::format(R"(
__thread char first = 1;
__thread char large[65] __attribute__((aligned(64)));
static __thread int last __attribute__((used));
__asm__(".section distance,\"aw\"\n.long first@{0}, large@{0}, last@{0}\n.previous");
int main(void) {{ return first + large[2]; }}
)",
                                 GetParam().word));
  const auto built = run_in(dir, fmt::format("cc {} tls.c -o prog", GetParam().flags));
  if (built.status != 0) GTEST_SKIP() << built.output;
  ASSERT_EQ(run_in(dir, "objcopy -O binary --only-section=distance prog words").status, 0);
  std::istringstream words(run_in(dir, "od -An -v -w4 -td4 words").output);
  const auto file = ElfFile::open(dir / "prog");
  ASSERT_TRUE(file);
  const SymbolIndex symbols(*file);
  EXPECT_TRUE(symbols.is_program());
  for (const char* name : {"first", "large", "last"}) {
    const auto offset = elf::ThreadOffsets(symbols).from_pointer(name);
    ASSERT_TRUE(offset) << offset.error().message;
    std::int64_t distance = 0;
    ASSERT_TRUE(words >> distance);
    EXPECT_LT(distance, 0);
    EXPECT_EQ(static_cast<std::int64_t>(*offset), distance) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ThreadPointer,
                         testing::Values(Linking{"-no-pie", "tpoff"}, Linking{"-fPIE -pie", "tpoff"},
                                         Linking{"-static", "tpoff"}, Linking{"-fPIE -static-pie", "tpoff"},
                                         Linking{"-fuse-ld=gold -pie", "tpoff"}, Linking{"-fuse-ld=lld -pie", "tpoff"},
                                         Linking{"-m32 -no-pie", "ntpoff"}, Linking{"-m32 -pie", "ntpoff"}));

TEST(Programs, are_told_from_libraries) {
  const auto is_program = [](const std::filesystem::path& path) {
    const auto file = ElfFile::open(path, {.debug_dirs = {}});
    EXPECT_TRUE(file) << path;
    return SymbolIndex(*file).is_program();
  };
  const TempDir dir;
  dir.write("main.c", "int main(void) { return 0; }\n");
  for (const char* made : {"-pie -o pie", "-no-pie -o nopie", "-static -o static", "-fPIE -static-pie -o staticpie",
                           "-fPIC -shared -o lib.so"}) {
    ASSERT_EQ(run_in(dir, fmt::format("cc main.c {}", made)).status, 0) << made;
  }
  for (const char* name : {"pie", "nopie", "static", "staticpie"}) EXPECT_TRUE(is_program(dir / name)) << name;
  EXPECT_FALSE(is_program(dir / "lib.so"));
  // A library with an interpreter, which a shell can start.
  const auto libc = run_in(dir, "cc -print-file-name=libc.so.6").output;
  EXPECT_FALSE(is_program(libc.substr(0, libc.find('\n'))));
}

TEST(Compilers, are_told_apart_by_comment) {
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
