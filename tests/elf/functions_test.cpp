// SPDX-License-Identifier: BSD-2-Clause
// Functions by name, judged by nm, readelf and c++filt on files that compilers made and on the distribution's.
#include "elf/functions.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "base/symbol_name.hpp"
#include "elf/emulated_start.hpp"
#include "image_builder.hpp"
#include "toolchain.hpp"

namespace usdt::test {
namespace {

namespace fs = std::filesystem;
using elf::FunctionName;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::vector<Function> functions_of(const fs::path& path, std::string_view name, const OpenOptions& options = {}) {
  const auto file = ElfFile::open(path, options);
  if (!file) throw std::runtime_error(file.error().message);
  const std::vector<FunctionName> names = {FunctionName(name)};
  auto found = elf::find_functions(*file, names);
  if (!found) throw std::runtime_error(found.error().message);
  for (const Function& function : *found) EXPECT_TRUE(names[0].matches(function)) << name << " is " << function.name;
  return std::move(*found);
}

std::vector<std::string> names_in(const std::vector<Function>& functions) {
  std::vector<std::string> names;
  for (const Function& function : functions) names.push_back(function.name);
  return names;
}

/// Address to names of the functions that readelf -s shows of a file, as "name" or "name@VERSION".
std::map<std::uint64_t, std::set<std::string>> by_readelf(const TempDir& dir, const fs::path& path) {
  std::istringstream lines(
      run_in(dir, fmt::format("readelf -sW {} | awk '($4 == \"FUNC\" || $4 == \"IFUNC\") && $7 != \"UND\" "
                              "{{ sub(\"@@\", \"@\", $8); print $2, $8 }}'",
                              path.string()))
          .output);
  std::map<std::uint64_t, std::set<std::string>> functions;
  std::uint64_t address = 0;
  std::string name;
  while (lines >> std::hex >> address >> name) functions[address].insert(name);
  return functions;
}

const fs::path kLibstdcxx = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6";

class OfTheDistribution : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!fs::exists(GetParam())) GTEST_SKIP() << GetParam() << " is not installed";
  }
  TempDir dir_;
};

TEST_P(OfTheDistribution, all_functions_are_those_of_readelf) {
  const auto expected = by_readelf(dir_, GetParam());
  const auto found = functions_of(GetParam(), "*", {.debug_dirs = {}});
  ASSERT_GT(expected.size(), 100U);
  ASSERT_EQ(found.size(), expected.size());
  for (const Function& function : found) {
    const auto names = expected.find(function.address.value);
    ASSERT_NE(names, expected.end()) << function.symbol;
    const std::string versioned = function.version.empty() ? "" : "@" + function.version;
    EXPECT_TRUE(names->second.contains(function.symbol + versioned)) << function.symbol << versioned;
    EXPECT_TRUE(function.offset) << function.symbol;
    EXPECT_NE(function.site_class, SiteClass::unknown) << function.symbol;
  }
  EXPECT_TRUE(std::ranges::is_sorted(found, {}, &Function::address));
}

TEST_P(OfTheDistribution, names_are_those_of_cppfilt) {
  const auto found = functions_of(GetParam(), "*", {.debug_dirs = {}});
  std::string symbols;
  for (const Function& function : found) symbols += function.symbol + "\n";
  dir_.write("symbols", symbols);
  std::istringstream whole(run_in(dir_, "c++filt -i < symbols").output);
  std::istringstream plain(run_in(dir_, "c++filt -i -p < symbols").output);
  for (const Function& function : found) {
    std::string with_parameters;
    std::string without;
    ASSERT_TRUE(std::getline(whole, with_parameters) && std::getline(plain, without));
    // c++filt shows the results of templates too.
    EXPECT_TRUE(with_parameters == function.name || with_parameters.ends_with(" " + function.name))
        << function.name << "\n"
        << with_parameters;
    EXPECT_TRUE(FunctionName(without).matches(function)) << without << "\n" << function.name;
    EXPECT_TRUE(FunctionName(function.name).matches(function)) << function.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, OfTheDistribution,
                         testing::Values("/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
                                         "/usr/bin/python3.11", "/usr/lib/postgresql/15/bin/postgres",
                                         "/usr/lib32/libc.so.6"));

constexpr std::string_view kOne = R"(
#include <string>
#include <vector>
namespace ns {
struct Server {
  explicit Server(int port);
  int handle(int);
  int handle(const std::string&, char**) const;
  int operator[](unsigned long) const;
  int operator()(int);
  template <class T> T get(T value) { return value; }
};
Server::Server(int port) { handle(port); }
int Server::handle(int x) { return x; }
int Server::handle(const std::string& s, char** more) const { return s.size() + (more != nullptr); }
int Server::operator[](unsigned long i) const { return i; }
int Server::operator()(int i) { return i; }
std::string tagged() { return "x"; }
}  // namespace ns
template int ns::Server::get<int>(int);
template std::vector<int> ns::Server::get<std::vector<int>>(std::vector<int>);
static int twice(int x) { return x + 1; }
namespace { int unnamed(int x) { return twice(x); } }
int (*pointers[])(int) = {twice, unnamed};
extern "C" int plain(int x) { return twice(x) + unnamed(x); }
extern "C" int alias_of_plain(int) __attribute__((alias("plain")));
int handle(int x) { return x; }
)";
constexpr std::string_view kTwo = R"(
static int twice(int x) { return x + 2; }
int (*other_pointers[])(int) = {twice};
static int pick_a(int) { return 1; }
extern "C" { static int (*choose(void))(int) { return pick_a; } }
extern "C" int chosen(int) __attribute__((ifunc("choose")));
)";

class Functions : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!can_compile(GetParam())) GTEST_SKIP() << "c++ " << GetParam() << " does not work here";
    dir_.write("one.cpp", kOne);
    dir_.write("two.cpp", kTwo);
    const auto built = run_in(dir_, fmt::format("c++ {} -fPIC -shared one.cpp two.cpp -o lib.so", GetParam()));
    ASSERT_EQ(built.status, 0) << built.output;
  }
  [[nodiscard]] std::vector<Function> find(std::string_view name) const { return functions_of(dir_ / "lib.so", name); }
  [[nodiscard]] std::vector<std::string> names(std::string_view name) const { return names_in(find(name)); }

  TempDir dir_;
};

TEST_P(Functions, are_found_by_their_symbol) {
  const auto found = find("_ZN2ns6Server6handleEi");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].symbol, "_ZN2ns6Server6handleEi");
  EXPECT_EQ(found[0].name, "ns::Server::handle(int)");
  EXPECT_FALSE(found[0].local);
  EXPECT_GT(found[0].size, 0U);
}
TEST_P(Functions, are_found_by_their_name_with_and_without_parameters) {
  EXPECT_THAT(names("ns::Server::handle(int)"), ElementsAre("ns::Server::handle(int)"));
  EXPECT_EQ(names("ns::Server::handle").size(), 2U);
  EXPECT_THAT(names("handle"), ElementsAre("handle(int)")) << "of no namespace";
  EXPECT_THAT(names("Server::handle"), IsEmpty());
}
TEST_P(Functions, are_found_by_globs_of_their_names) {
  EXPECT_EQ(names("ns::Server::handle*").size(), 2U);
  EXPECT_EQ(names("*Server*handle*").size(), 2U);
  EXPECT_EQ(names("*handle*").size(), 3U);
  EXPECT_EQ(names("*::handle(*char*)*").size(), 1U);
  EXPECT_THAT(names("ns::Server::han[a-e]le(int)"), ElementsAre("ns::Server::handle(int)"));
}
TEST_P(Functions, are_found_however_their_parameters_are_spaced) {
  const auto spaced = names(
      "ns::Server::handle(std::__cxx11::basic_string<char, std::char_traits<char>, "
      "std::allocator<char> > const&, char**) const");
  EXPECT_EQ(spaced.size(), 1U);
  EXPECT_EQ(names("ns::Server::handle(std::__cxx11::basic_string<char,std::char_traits<char>,std::allocator<char>> "
                  "const &,char * *) const"),
            spaced);
}
TEST_P(Functions, that_are_operators_are_found) {
  EXPECT_THAT(names("ns::Server::operator[]"), ElementsAre(HasSubstr("operator[](unsigned")));
  EXPECT_THAT(names("ns::Server::operator()"), ElementsAre("ns::Server::operator()(int)"));
  EXPECT_THAT(names("ns::Server::operator()(int)"), ElementsAre("ns::Server::operator()(int)"));
}
TEST_P(Functions, that_are_constructors_have_one_address_and_two_symbols) {
  const auto found = find("ns::Server::Server");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].symbol, AnyOf("_ZN2ns6ServerC1Ei", "_ZN2ns6ServerC2Ei"));
  EXPECT_EQ(found[0].aliases.size(), 1U);
}
TEST_P(Functions, that_are_templates_keep_their_arguments_and_not_their_result) {
  EXPECT_THAT(names("ns::Server::get<int>"), ElementsAre("ns::Server::get<int>(int)"));
  EXPECT_EQ(names("ns::Server::get<*").size(), 2U);
  EXPECT_THAT(names("ns::Server::get<*vector*"),
              ElementsAre("ns::Server::get<std::vector<int, std::allocator<int> > >(std::vector<int, "
                          "std::allocator<int> >)"));
}
TEST_P(Functions, keep_their_abi_tags) {
  EXPECT_THAT(names("ns::tagged[abi:cxx11]"), ElementsAre("ns::tagged[abi:cxx11]()"));
  EXPECT_THAT(names("ns::tagged*"), ElementsAre("ns::tagged[abi:cxx11]()"));
}
TEST_P(Functions, that_are_static_are_all_found) {
  const auto found = find("twice");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NE(found[0].address, found[1].address);
  for (const Function& function : found) EXPECT_TRUE(function.local);
  for (const char* name : {"(anonymous namespace)::unnamed", "unnamed", "unnamed(int)"})
    EXPECT_THAT(names(name), ElementsAre("(anonymous namespace)::unnamed(int)")) << name;
}
TEST_P(Functions, of_one_address_are_one_with_the_name_that_was_asked_for) {
  const auto plain = find("plain");
  const auto alias = find("alias_of_plain");
  ASSERT_EQ(plain.size(), 1U);
  ASSERT_EQ(alias.size(), 1U);
  EXPECT_EQ(plain[0].address, alias[0].address);
  EXPECT_EQ(plain[0].name, "plain");
  EXPECT_THAT(plain[0].aliases, ElementsAre("alias_of_plain"));
  EXPECT_EQ(alias[0].name, "alias_of_plain");
  EXPECT_THAT(alias[0].aliases, ElementsAre("plain"));
}
TEST_P(Functions, that_are_indirect_are_marked) {
  const auto chosen = find("chosen");
  ASSERT_EQ(chosen.size(), 1U);
  EXPECT_TRUE(chosen[0].ifunc);
  EXPECT_FALSE(find("plain")[0].ifunc);
}
TEST_P(Functions, of_other_files_are_not_found) {
  EXPECT_THAT(names("_Znwm"), IsEmpty());
  EXPECT_THAT(names("nowhere"), IsEmpty());
  EXPECT_THAT(names("pointers"), IsEmpty()) << "data";
}

INSTANTIATE_TEST_SUITE_P(Machines, Functions, testing::Values("-m64", "-m32"));

class RustFunctions : public testing::TestWithParam<const char*> {};

TEST_P(RustFunctions, are_found_by_their_names) {
  const TempDir dir;
  dir.write("lib.rs", R"(
pub mod ns {
    pub struct Server;
    impl Server { #[inline(never)] pub fn handle(&self, x: i32) -> i32 { x + 1 } }
    pub trait Speak { fn speak(&self) -> i32; }
    impl Speak for Server { #[inline(never)] fn speak(&self) -> i32 { 2 } }
    #[inline(never)] pub fn generic<T: Copy>(x: T) -> T { x }
}
#[no_mangle] pub extern "C" fn plain(x: i32) -> i32 {
    use ns::Speak;
    ns::generic(x) + ns::Server.handle(x) + ns::Server.speak() + ns::generic(1u8) as i32
}
)");
  const auto built =
      run_in(dir, fmt::format("rustc {} --crate-type cdylib -C panic=abort lib.rs -o lib.so", GetParam()));
  if (built.status != 0) GTEST_SKIP() << "rustc does not work here: " << built.output;
  const auto found = [&](std::string_view name) { return functions_of(dir / "lib.so", name, {.debug_dirs = {}}); };
  const auto handle = found("*lib::ns::Server*::handle");
  ASSERT_EQ(handle.size(), 1U);
  EXPECT_THAT(handle[0].name, AnyOf("lib::ns::Server::handle", "<lib::ns::Server>::handle"));
  EXPECT_THAT(handle[0].symbol, testing::StartsWith("_"));
  EXPECT_EQ(found("lib::ns::generic*").size(), 2U);
  EXPECT_THAT(names_in(found("<lib::ns::Server as lib::ns::Speak>::speak")),
              ElementsAre("<lib::ns::Server as lib::ns::Speak>::speak"));
  EXPECT_THAT(names_in(found("plain")), ElementsAre("plain"));
}

INSTANTIATE_TEST_SUITE_P(Manglings, RustFunctions, testing::Values("", "-C symbol-mangling-version=v0"));

TEST(FunctionVersions, are_told_apart_and_can_be_asked_for) {
  const TempDir dir;
  dir.write("v.c",
            "int old_f(void) { return 1; }\nint new_f(void) { return 2; }\nint other(void) { return 3; }\n"
            "__asm__(\".symver old_f,f@V1\\n.symver new_f,f@@V2\");\n");
  dir.write("map", "V1 { global: f; other; local: *; };\nV2 { global: f; } V1;\n");
  ASSERT_EQ(
      run_in(dir, "cc -fPIC -shared v.c -Wl,--version-script=map -o lib.so && strip -o stripped.so lib.so").status, 0);
  for (const char* name : {"lib.so", "stripped.so"}) {
    const auto versions = [&](std::string_view asked) {
      std::vector<std::string> found;
      for (const Function& function : functions_of(dir / name, asked, {.debug_dirs = {}}))
        found.push_back(function.version);
      return found;
    };
    EXPECT_THAT(versions("f"), UnorderedElementsAre("V1", "V2")) << name;
    EXPECT_THAT(versions("f@V1"), ElementsAre("V1")) << name;
    EXPECT_THAT(versions("f@@V2"), ElementsAre("V2")) << name;
    EXPECT_THAT(versions("*@V1"), UnorderedElementsAre("V1", "V1")) << name;
    EXPECT_THAT(versions("f@V3"), IsEmpty()) << name;
  }
}

TEST(FunctionsOfAStrippedFile, come_from_its_debug_file) {
  const TempDir dir;
  dir.write("one.c", "static int hidden(int x) { return x; }\nint shown(int x) { return hidden(x); }\n");
  ASSERT_EQ(run_in(dir,
                   "cc -g -fPIC -shared one.c -o whole.so -Wl,--build-id && "
                   "objcopy --only-keep-debug whole.so lib.debug && "
                   "objcopy --strip-all --add-gnu-debuglink=lib.debug whole.so lib.so")
                .status,
            0);
  const auto whole = functions_of(dir / "whole.so", "hidden");
  const auto split = functions_of(dir / "lib.so", "hidden");
  ASSERT_EQ(whole.size(), 1U);
  ASSERT_EQ(split.size(), 1U);
  EXPECT_EQ(split[0].address, whole[0].address);
  EXPECT_EQ(split[0].offset, whole[0].offset);
  EXPECT_EQ(split[0].bytes.data, whole[0].bytes.data);
  fs::remove(dir / "lib.debug");
  EXPECT_THAT(functions_of(dir / "lib.so", "hidden"), IsEmpty());
  EXPECT_EQ(functions_of(dir / "lib.so", "shown").size(), 1U);
}

class EmbeddedSymbols : public testing::Test {
 protected:
  void SetUp() override {
    dir_.write("one.c", "static int hidden(int x) { return x; }\nint shown(int x) { return hidden(x); }\n");
    ASSERT_EQ(
        run_in(dir_, "cc -fPIC -shared one.c -o whole.so && cp whole.so mini && strip -o bare.so whole.so").status, 0);
  }
  /// `lib.so` is the stripped library with the output of `command` as its .gnu_debugdata.
  void embed(const std::string& command) {
    const auto made = run_in(dir_, command + " > packed && objcopy --add-section .gnu_debugdata=packed bare.so lib.so");
    ASSERT_EQ(made.status, 0) << made.output;
  }
  TempDir dir_;
};

TEST_F(EmbeddedSymbols, are_found) {
  embed("xz -c mini");
  const auto found = functions_of(dir_ / "lib.so", "hidden", {.debug_dirs = {}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].address, functions_of(dir_ / "whole.so", "hidden")[0].address);
  EXPECT_EQ(found[0].offset, functions_of(dir_ / "whole.so", "hidden")[0].offset);
}
TEST_F(EmbeddedSymbols, that_are_none_are_left_alone) {
  for (const char* command :
       {"xz -c mini | head -c 500", "cat mini", "true", "xz -c one.c", "xz --format=lzma -c mini"}) {
    embed(command);
    EXPECT_THAT(functions_of(dir_ / "lib.so", "hidden", {.debug_dirs = {}}), IsEmpty()) << command;
    EXPECT_EQ(functions_of(dir_ / "lib.so", "shown", {.debug_dirs = {}}).size(), 1U) << command;
  }
}
TEST_F(EmbeddedSymbols, that_unpack_to_far_more_than_symbols_do_are_left_alone) {
  embed("(cat mini; head -c 5000000 /dev/zero) | xz -c");
  EXPECT_THAT(functions_of(dir_ / "lib.so", "hidden", {.debug_dirs = {}}), IsEmpty());
}

TEST(FunctionEntries, know_their_landing_pad_and_their_cost) {
  const TempDir dir;
  dir.write("a.S", R"(
        .globl push, endbr, sub
        .type push,@function
        .type endbr,@function
        .type sub,@function
push:   push %rbp
        ret
endbr:  endbr64
        ret
sub:    sub $8, %rsp
        ret
        .section .note.GNU-stack,"",@progbits
)");
  ASSERT_EQ(run_in(dir, "cc -shared -nostdlib a.S -o lib.so").status, 0);
  const auto entry = [&](std::string_view name) { return functions_of(dir / "lib.so", name).at(0); };
  EXPECT_EQ(entry("push").site_class, SiteClass::emulated);
  EXPECT_EQ(entry("push").landing_pad, 0);
  EXPECT_EQ(entry("endbr").landing_pad, 4);
  EXPECT_EQ(entry("sub").site_class, SiteClass::single_step);
  EXPECT_EQ(entry("sub").bytes.data[0], 0x48);
}

TEST(FunctionEntries, are_also_where_the_kernel_emulates_if_each_call_comes_by_there_once_and_unchanged) {
  const TempDir dir;
  const std::map<std::string, std::pair<std::optional<std::uint64_t>, std::string>> functions = {
      {"branches", {3, "test %rdi,%rdi; je 1f; inc %rdi; 1: ret"}},
      {"counts_down", {5, "xor %eax,%eax; test %rdi,%rdi; je 2f; 1: dec %rdi; jne 1b; 2: ret"}},
      {"recurses", {3, "recurses_start: test %rdi,%rdi; je 1f; dec %rdi; jmp recurses_start; 1: ret"}},
      {"saves", {7, "mov saves(%rip),%rax; push %rbx; pop %rbx; ret"}},
      {"begins_with_a_push", {std::nullopt, "push %rbx; push %rbp; pop %rbp; pop %rbx; ret"}},
      {"loops_to_the_test", {std::nullopt, "xor %eax,%eax; 1: dec %rdi; test %rdi,%rdi; jne 1b; ret"}},
      {"loops_behind_the_first", {std::nullopt, "xor %eax,%eax; 1: test %rax,%rax; je 2f; inc %eax; jmp 1b; 2: ret"}},
      {"loops_to_the_place", {std::nullopt, "test %rdi,%rdi; 1: je 2f; dec %rdi; jmp 1b; 2: ret"}},
      {"switches", {std::nullopt, "cmp $5,%edi; ja 1f; jmp *%rax; 1: ret"}},
      {"moves_an_argument", {std::nullopt, "mov %rsi,%rdi; test %rdi,%rdi; je 1f; 1: ret"}},
      {"reads_what_may_not_be_there", {std::nullopt, "mov (%rdi),%rax; test %rax,%rax; je 1f; 1: ret"}},
      {"makes_room", {std::nullopt, "sub $8,%rsp; test %rax,%rax; je 1f; 1: add $8,%rsp; ret"}},
      {"jumps_to_its_half", {std::nullopt, "test %rdi,%rdi; 2: je jumps_to_its_half.cold; ret"}},
      {"only_computes", {std::nullopt, "xor %eax,%eax; ret"}},
  };
  std::string text;
  for (const auto& [name, function] : functions)
    text += fmt::format(".globl {0}\n.type {0},@function\n{0}: {1}\n.size {0}, .-{0}\n", name, function.second);
  // The half jumps to the place behind the first instruction.
  text +=
      ".type jumps_to_its_half.cold,@function\njumps_to_its_half.cold: jmp jumps_to_its_half+3\n"
      ".size jumps_to_its_half.cold, .-jumps_to_its_half.cold\n.section .note.GNU-stack,\"\",@progbits\n";
  dir.write("a.S", text);
  const auto made = run_in(dir, "cc -shared -nostdlib -Wl,-Bsymbolic a.S -o lib.so");
  ASSERT_EQ(made.status, 0) << made.output;
  const auto file = ElfFile::open(dir / "lib.so");
  ASSERT_TRUE(file);
  const elf::FunctionPieces pieces(*file);
  for (const auto& [name, expected] : functions) {
    const Function function = functions_of(dir / "lib.so", name).at(0);
    const auto found = elf::emulated_start(*file, function, &pieces, function.address);
    const auto distance = found ? std::optional(found->value - function.address.value) : std::nullopt;
    EXPECT_EQ(distance, expected.first) << name;
  }
}

/// Where the instructions of `function` begin, as objdump -d shows them, from the function's start.
std::set<std::uint64_t> by_objdump(const TempDir& dir, const fs::path& path, const Function& function) {
  const auto command = fmt::format(
      "objdump -d --no-show-raw-insn --start-address={:#x} --stop-address={:#x} {} | "
      "grep -oE '^ +[0-9a-f]+:' | tr -d ' :'",
      function.address.value, function.address.value + function.size, path.string());
  std::istringstream lines(run_in(dir, command).output);
  std::set<std::uint64_t> starts;
  for (std::uint64_t address = 0; lines >> std::hex >> address;) starts.insert(address - function.address.value);
  return starts;
}

class Places : public testing::TestWithParam<const char*> {};

TEST_P(Places, in_a_function_are_where_objdump_has_instructions) {
  if (!fs::exists(GetParam())) GTEST_SKIP() << GetParam() << " is not installed";
  const TempDir dir;
  const auto file = ElfFile::open(GetParam());
  ASSERT_TRUE(file);
  std::size_t functions = 0;
  for (const Function& function : functions_of(GetParam(), "*r[ei]*")) {
    if (function.size < 100 || function.size > 1000 || ++functions > 20) continue;
    const auto starts = by_objdump(dir, GetParam(), function);
    for (std::uint64_t distance = 0; distance < function.size; ++distance) {
      const auto place = elf::place_in_function(*file, function, distance);
      ASSERT_EQ(place.has_value(), starts.contains(distance)) << function.name << "+" << distance;
      if (place) {
        EXPECT_EQ(place->value, function.offset->value + distance);
        continue;
      }
      EXPECT_EQ(place.error().kind, ErrorKind::invalid_argument);
      const auto next = starts.upper_bound(distance);
      EXPECT_THAT(place.error().message, HasSubstr(fmt::format("instruction at +{:#x}", *std::prev(next))));
      const std::uint64_t behind = next == starts.end() ? function.size : *next;
      EXPECT_THAT(place.error().message, HasSubstr(fmt::format("is at +{:#x}", behind)));
    }
    EXPECT_FALSE(elf::place_in_function(*file, function, function.size));
  }
  EXPECT_GT(functions, 5U);
}

INSTANTIATE_TEST_SUITE_P(Files, Places,
                         testing::Values("/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
                                         "/usr/lib32/libc.so.6"));

TEST(PlacesOfAarch64, are_each_fourth_byte) {
  const std::string code(16, '\x1f');
  const auto image = ImageBuilder(true, EM_AARCH64).segment(PT_LOAD, PF_R | PF_X, 0x1000, code).build();
  const TempDir dir;
  const auto file = ElfFile::open(dir.write("lib.so", image));
  ASSERT_TRUE(file);
  Function function;
  function.name = "f";
  function.address = VirtAddr(0x1000);
  function.size = 12;
  EXPECT_EQ(elf::place_in_function(*file, function, 0).error().kind, ErrorKind::not_supported) << "without an offset";
  function.offset = FileOffset(image.find(code));
  const auto place = elf::place_in_function(*file, function, 8);
  ASSERT_TRUE(place) << place.error().message;
  EXPECT_EQ(place->value, image.find(code) + 8);
  EXPECT_THAT(elf::place_in_function(*file, function, 6).error().message,
              HasSubstr("f+0x6: within the 4-byte instruction at +0x4; the next one is at +0x8"));
  EXPECT_THAT(elf::place_in_function(*file, function, 12).error().message, HasSubstr("end, which is at +0xc"));
}

TEST(PlacesBehindData, are_not_known) {
  const TempDir dir;
  dir.write("a.S", ".globl f\n.type f,@function\nf: nop\n.byte 0x06\nnop\n.size f, .-f\n");
  ASSERT_EQ(run_in(dir, "cc -shared -nostdlib a.S -o lib.so").status, 0);
  const auto file = ElfFile::open(dir / "lib.so");
  ASSERT_TRUE(file);
  const Function f = functions_of(dir / "lib.so", "f").at(0);
  EXPECT_TRUE(elf::place_in_function(*file, f, 1));
  EXPECT_THAT(elf::place_in_function(*file, f, 2).error().message, HasSubstr("at +0x1 is no known instruction"));
}

class FunctionHints : public testing::Test {
 protected:
  void SetUp() override {
    dir_.write("one.cpp", kOne);
    ASSERT_EQ(run_in(dir_, "c++ -fPIC -shared one.cpp -o lib.so && strip -o stripped.so lib.so").status, 0);
  }
  [[nodiscard]] elf::FunctionHints hints(const fs::path& path, std::string_view name) const {
    const auto file = ElfFile::open(path, {.debug_dirs = {}});
    if (!file) throw std::runtime_error(file.error().message);
    return elf::hints_for_function(*file, FunctionName(name));
  }
  TempDir dir_;
};

TEST_F(FunctionHints, have_the_names_that_are_near) {
  EXPECT_THAT(hints(dir_ / "lib.so", "plian").near, ElementsAre("plain"));
  EXPECT_THAT(hints(dir_ / "lib.so", "ns::Server::hanlde(int)").near, ElementsAre("ns::Server::handle"));
  EXPECT_THAT(hints(dir_ / "lib.so", "Server::handle").near, ElementsAre("ns::Server::handle"));
  EXPECT_THAT(hints(dir_ / "lib.so", "somethingelse").near, IsEmpty());
  EXPECT_THAT(hints(dir_ / "lib.so", "somethingelse").stripped, IsEmpty());
}
TEST_F(FunctionHints, say_what_stripping_left) {
  EXPECT_THAT(hints(dir_ / "stripped.so", "twice*").stripped,
              testing::AllOf(HasSubstr("stripped.so is stripped: only the "), HasSubstr("it exports are known")));
  if (!fs::exists("/var/lib/dpkg/info/libstdc++6:amd64.list")) GTEST_SKIP() << "not a Debian system";
  EXPECT_THAT(hints(kLibstdcxx, "nowhere::at_all").stripped, HasSubstr("package libstdc++6-dbgsym"));
}

TEST(FunctionsOfARelocatableObject, have_no_address) {
  const TempDir dir;
  dir.write("a.c", "int f(void) { return 1; }\n");
  ASSERT_EQ(run_in(dir, "cc -c a.c -o a.o").status, 0);
  const auto file = ElfFile::open(dir / "a.o");
  ASSERT_TRUE(file);
  const auto found = elf::find_functions(*file, std::vector{FunctionName("f")});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::not_supported);
}

TEST(Demangling, counts_the_parameters_of_a_list) {
  EXPECT_EQ(elf::count_parameters("()"), 0);
  EXPECT_EQ(elf::count_parameters("(...)"), 0);
  EXPECT_EQ(elf::count_parameters("(int, ...)"), 1);
  EXPECT_EQ(elf::count_parameters("(int) const"), 1);
  EXPECT_EQ(elf::count_parameters("(std::map<int, a::b<c, d> >, void (*)(int, long), char [3]) [clone .cold]"), 3);
  EXPECT_EQ(elf::count_parameters("(a<(b)1, {lambda(int, int)#1}>, decltype (c->d))"), 2);
  for (const std::string_view none : {"", "int", "(int", "(a>, b", ")"})
    EXPECT_FALSE(elf::count_parameters(none)) << none;
}

TEST(FunctionsOfAnyFile, are_not_read_to_the_end_when_asked_to_stop) {
  const auto file = ElfFile::open("/proc/self/exe");
  ASSERT_TRUE(file);
  StopSource source;
  source.request_stop();
  const auto found = elf::find_functions(*file, std::vector{FunctionName("*")}, source.get_token());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::stopped);
}

std::string demangled(std::string_view symbol) {
  elf::Demangler demangler(1 << 20);
  return std::string(demangler.demangle(symbol).name);
}

TEST(Demangling, knows_rust) {
  EXPECT_EQ(demangled("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE"), "core::fmt::Formatter::write_str");
  EXPECT_EQ(
      demangled("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE"),
      "<Test + 'static as foo::Bar<Test>>::bar");
  EXPECT_EQ(demangled("_RNvMsr_NtCs3ssYzQotkvD_3std4pathNtB5_7PathBuf3newCs15kBYyAo9fc_7mycrate"),
            "<std::path::PathBuf>::new");
  EXPECT_EQ(
      demangled("_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y"),
      "utf8_idents::\u10e1\u10d0\u10ed\u10db\u10d4\u10da\u10d0\u10d3_\u10d2\u10d4\u10db\u10e0\u10d8\u10d4\u10da\u10d8"
      "_\u10e1\u10d0\u10d3\u10d8\u10da\u10d8");
}

TEST(Demangling, names_functions_of_d_and_pascal_without_their_parameters) {
  EXPECT_EQ(demangled("_D4main5serveFiZi"), "main.serve");
  EXPECT_EQ(demangled("_D3std5stdio7writelnQkFZv"), "");  // refers to the midst of another name
  EXPECT_EQ(demangled("_D3net4host4giveMFiZi"), "net.host.give");
  EXPECT_EQ(demangled("_D3net4hostQjFZv"), "net.host.net");
  EXPECT_EQ(demangled("_D99x"), "");
  EXPECT_EQ(demangled("P$MAINP_$$_SERVE$LONGINT$$LONGINT"), "MAINP.SERVE");
  EXPECT_EQ(demangled("P$MAINP$_$THOST_$__$$_GIVE$LONGINT$$LONGINT"), "MAINP.THOST.GIVE");
  EXPECT_EQ(demangled("SYSTEM_$$_HALT"), "SYSTEM.HALT");
}

TEST(SymbolName, tells_halves_and_clones_of_functions) {
  EXPECT_EQ(other_half("work.part.0.cold.1"), "work.part.0");
  EXPECT_EQ(other_half("work(int) [clone .cold]"), "work(int) [clone ");
  EXPECT_EQ(other_half("work.__part.1"), "work");
  EXPECT_EQ(other_half("work.eh"), "work");
  EXPECT_EQ(other_half("work.colder"), "");
  EXPECT_EQ(other_half(".cold"), "");
  EXPECT_TRUE(is_clone("work.isra.0"));
  EXPECT_TRUE(is_clone("work.constprop.12.cold"));
  EXPECT_FALSE(is_clone("work.part"));
  EXPECT_FALSE(is_clone("main.part.go"));
}

TEST(SymbolName, tells_the_pieces_that_compilers_make_of_functions) {
  EXPECT_EQ(piece_suffix("work"), "");
  EXPECT_EQ(piece_suffix("work.part.0"), ".part");
  EXPECT_EQ(piece_suffix("work.isra.0.part.1.cold"), ".part");
  EXPECT_EQ(piece_suffix("work.cold"), ".cold");
  EXPECT_EQ(piece_suffix("main.(*T).part"), "");  // Go
  EXPECT_EQ(piece_suffix("_Z5servei.resume"), ".resume");
  EXPECT_EQ(piece_suffix("serve(int) [clone .actor]"), ".actor");
  EXPECT_EQ(piece_suffix("work.constprop.0"), "");
  EXPECT_EQ(piece_suffix("work.partial"), "");
}

TEST(Demangling, leaves_what_is_not_mangled) {
  for (const char* symbol : {"", "_", "main", "_Z", "_Zebra", "_R", "_Ready", "_RC", "Z1fv", "_Z1f!"}) {
    EXPECT_EQ(demangled(symbol), "") << symbol;
  }
}

/// S_, S0_, ... S9_, SA_, ...
std::string substitution(int number) {
  if (number == 0) return "S_";
  std::string digits;
  for (int rest = number - 1; digits.empty() || rest > 0; rest /= 36) {
    digits.insert(digits.begin(), "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[rest % 36]);
  }
  return "S" + digits + "_";
}

/// `levels` types that each name the one before twice.
std::string doubling(int levels) {
  std::string symbol = "_Z1f1a";
  for (int level = 0; level < levels; ++level)
    symbol += "1BI" + substitution(2 * level) + substitution(2 * level) + "E";
  return symbol;
}

TEST(Demangling, of_a_name_that_doubles_and_doubles_ends_early) {
  EXPECT_THAT(demangled(doubling(5)), HasSubstr("B<B<B<a, a>"));
  EXPECT_EQ(demangled(doubling(60)), "");
  // The same in the pattern of a pack expansion, which libiberty searches before it writes anything.
  std::string packs = "_Z1fDp";
  for (int level = 0; level < 60; ++level) packs += "1BI";
  packs += "1a";
  for (int level = 0; level < 60; ++level) packs += substitution(60 + level) + "E";
  EXPECT_EQ(demangled(packs), "");
  EXPECT_EQ(demangled("_Z1f" + std::string(2000, 'P') + "i"), "");
}

TEST(Demangling, has_a_budget) {
  elf::Demangler demangler(30);
  EXPECT_EQ(demangler.demangle("_ZN2ns6Server6handleEi").name, "ns::Server::handle(int)");
  EXPECT_EQ(demangler.demangle("_ZN2ns6Server6handleEi").name, "");
}

}  // namespace
}  // namespace usdt::test
