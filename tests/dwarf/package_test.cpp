// SPDX-License-Identifier: BSD-2-Clause
// Packages of split debug information (.dwp): what .dwo files say is right. And packages made to lead astray.
#include "dwarf/package.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <tuple>

#include "dwarf/debug_info.hpp"
#include "dwarf/functions.hpp"
#include "locate/signature.hpp"
#include "packaged.hpp"
#include "toolchain.hpp"

namespace usdt::test {
namespace {

using dwarf::DebugInfo;
using dwarf::FunctionInfo;
using testing::HasSubstr;

constexpr std::string_view kShared = R"(
struct Peer { int port; const char *host; };
struct Request { long id; Peer peer; Request *next; enum Kind { GET, PUT } kind; };
int second(Request *request, short n);
static inline __attribute__((always_inline)) int inlined(int x) { asm volatile("" : "+r"(x)); return x * 5; }
)";
constexpr std::string_view kFirst = R"(
__attribute__((noinline)) long first(Request *request, unsigned char n, double) {
  return request->id + request->peer.port + inlined(n);
}
namespace net { struct Server { int handle(Peer &peer, int times) { int sum = 0; while (times-- > 0) sum += peer.port; return sum; } }; }
int main(int argc, char **) {
  Request request{argc, {2, "x"}, nullptr, Request::PUT};
  net::Server server;
  return (int)first(&request, 5, 1) + second(&request, 7) + server.handle(request.peer, argc);
}
)";
constexpr std::string_view kSecond = R"(
struct Only { char tag; Peer *peers[3]; };
__attribute__((noinline)) int look(const Only *only, int at) { return only->peers[at]->port + only->tag; }
__attribute__((noinline)) int second(Request *request, short n) {
  Only only{'c', {&request->peer, nullptr, nullptr}};
  return look(&only, 0) + inlined(n);
}
)";

/// A type, and of a struct or what leads to one the members, to a depth.
std::string told(const TypeGraph& types, TypeId id, unsigned depth) {
  const auto info = types.info(id);
  if (!info) return info.error().message;
  std::string text = fmt::format("{}:{}:{}", info->text, static_cast<int>(info->type.kind), info->type.size);
  if (depth == 0) return text;
  if (info->target != TypeId::none) text += " -> " + told(types, info->target, depth - 1);
  if (const auto members = types.members(id); members && !members->empty()) {
    text += " {";
    for (const auto& member : *members)
      text += fmt::format(" {}@{}={}", member.name, member.offset, told(types, member.type, depth - 1));
    text += " }";
  }
  return text;
}

using Value = std::tuple<std::string, std::string, Location, std::string>;
using Known = std::tuple<std::string, std::uint64_t, std::string, std::string, std::uint32_t, std::vector<Value>>;

/// All that is known of a program's functions.
std::vector<Known> all_of(const DebugInfo& info) {
  std::vector<Known> all;
  const auto functions = dwarf::find_functions(info, [](const FunctionInfo&) { return true; });
  EXPECT_TRUE(functions) << functions.error().message;
  if (!functions) return all;
  const locate::Signatures signatures(info);
  for (const FunctionInfo& function : *functions) {
    for (const dwarf::Instance& instance : function.instances) {
      std::vector<Value> values;
      if (const auto signature = signatures.of(function, instance)) {
        for (std::size_t i = 0; i < signature->args.size(); ++i)
          values.emplace_back(signature->args[i].name(), signature->args[i].c_type(), signature->args[i].location,
                              told(*info.types(), signature->types[i], 4));
        if (signature->result) values.emplace_back("", signature->result->c_type(), signature->result->location, "");
      }
      all.emplace_back(function.qualified, instance.pc.value, function.declared.file, instance.where_called.file,
                       function.declared.line, std::move(values));
    }
  }
  std::ranges::sort(all, {}, [](const Known& one) { return std::pair(std::get<0>(one), std::get<1>(one)); });
  return all;
}

class Packages : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    dir_.write("a.cpp", std::string(kShared) + std::string(kFirst));
    dir_.write("b.cpp", std::string(kShared) + std::string(kSecond));
  }
  [[nodiscard]] Result<DebugInfo> open(std::string_view name = "prog") const {
    const auto file = ElfFile::open(dir_ / name);
    if (!file) return fail(file.error());
    return DebugInfo::open(*file);
  }
  [[nodiscard]] std::vector<Known> all() const {
    const auto info = open();
    EXPECT_TRUE(info) << info.error().message;
    return info ? all_of(*info) : std::vector<Known>();
  }
  void run(const std::string& command) const {
    const auto done = run_in(dir_, command);
    ASSERT_EQ(done.status, 0) << done.output;
  }
  [[nodiscard]] std::string compile() const { return GetParam().substr(0, GetParam().find(" | ")); }
  TempDir dir_;
};

TEST_P(Packages, say_what_the_files_in_them_say) {
  run(compile() + " a.cpp b.cpp -o prog");
  const std::vector<Known> right = all();
  EXPECT_GE(right.size(), 6U);
  run("mkdir kept && cp *.dwo kept");
  run(build_command(GetParam(), "a.cpp b.cpp"));
  EXPECT_EQ(all(), right);
  run("mv prog.dwp other.dwp");
  const auto without = open();
  ASSERT_TRUE(without) << without.error().message;
  EXPECT_TRUE(all_of(*without).empty());
  EXPECT_THAT(without->missing(), testing::AllOf(HasSubstr("2 of 2 units"), HasSubstr("a.dwo"), HasSubstr(".dwp")));
}

TEST_P(Packages, are_found_by_the_name_of_a_stripped_program_and_of_its_debug_file) {
  run(build_command(GetParam(), "-Wl,--build-id a.cpp b.cpp"));
  const std::vector<Known> right = all();
  EXPECT_GE(right.size(), 6U);
  run("objcopy --only-keep-debug prog prog.debug && objcopy --strip-all --add-gnu-debuglink=prog.debug prog");
  EXPECT_EQ(all(), right);
  run("mv prog.dwp prog.debug.dwp");
  EXPECT_EQ(all(), right);
}

TEST_P(Packages, of_another_build_are_not_believed) {
  run(build_command(GetParam(), "a.cpp b.cpp") + " && cp prog.dwp old.dwp");
  run("sed -i 's/short n/int extra, short n/; s/, 7)/, 6, 7)/; s/, double)/, double, int more = 0)/' a.cpp b.cpp");
  run(build_command(GetParam(), "a.cpp b.cpp") + " && cp old.dwp prog.dwp");
  EXPECT_TRUE(all().empty());
}

TEST_P(Packages, that_are_damaged_end_in_an_error_or_in_less) {
  run(build_command(GetParam(), "a.cpp b.cpp"));
  const std::string good = read_file(dir_ / "prog.dwp");
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    std::string bad = good;
    for (unsigned change = 0; change <= random() % 4; ++change) {
      const std::size_t at = random() % (bad.size() - 4);
      const std::uint32_t with[] = {0, 0xffffffff, static_cast<std::uint32_t>(bad.size()),
                                    static_cast<std::uint32_t>(random())};
      bad.replace(at, 4, std::string(reinterpret_cast<const char*>(&with[random() % 4]), 4));
    }
    dir_.write("prog.dwp", bad);
    const auto info = open();
    if (!info) continue;
    const locate::Signatures signatures(*info);
    if (const auto functions = dwarf::find_functions(*info, [](const FunctionInfo&) { return true; }))
      for (const FunctionInfo& function : *functions)
        for (const dwarf::Instance& instance : function.instances) static_cast<void>(signatures.of(function, instance));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Compilers, Packages,
    testing::Values("g++ -gdwarf-4 -gsplit-dwarf -O0 | dwp", "g++ -gdwarf-4 -gsplit-dwarf -O2 | dwp",
                    "g++ -gdwarf-4 -gsplit-dwarf -O2 -fdebug-types-section | dwp",
                    "g++ -gdwarf-4 -gsplit-dwarf -O2 | llvm-dwp", "g++ -gdwarf-5 -gsplit-dwarf -O2 | llvm-dwp",
                    "clang++ -gdwarf-4 -gsplit-dwarf -O2 -fdebug-types-section | dwp",
                    "clang++ -gdwarf-5 -gsplit-dwarf -O0 | llvm-dwp", "clang++ -gdwarf-5 -gsplit-dwarf -O2 | llvm-dwp",
                    "clang++ -gdwarf-5 -gsplit-dwarf -O2 -ffunction-sections | llvm-dwp",
                    "clang++ -gdwarf-5 -gsplit-dwarf -O2 -fdebug-types-section | llvm-dwp"));

class SplitFiles : public Packages {};
INSTANTIATE_TEST_SUITE_P(Compilers, SplitFiles,
                         testing::Values("g++ -gdwarf-5 -gsplit-dwarf -O2", "clang++ -gdwarf-4 -gsplit-dwarf -O2",
                                         "clang++ -gdwarf-5 -gsplit-dwarf -O2"));

TEST_P(SplitFiles, are_found_beside_a_program_that_was_moved) {
  run("mkdir built && mv a.cpp b.cpp built && cd built && " + GetParam() +
      " a.cpp b.cpp -o prog && mv prog *.dwo .. && rm -r ../built");
  EXPECT_GE(all().size(), 6U);
}

TEST_P(SplitFiles, of_others_may_be_cut_off_while_they_are_read) {
  if (::geteuid() != 0) GTEST_SKIP() << "makes a file somebody else's: root";
  run(GetParam() + " a.cpp b.cpp -o prog && chown 65534 *.dwo");
  const auto info = open();
  ASSERT_TRUE(info) << info.error().message;
  const auto functions = dwarf::find_functions(*info, [](const FunctionInfo&) { return true; });
  ASSERT_TRUE(functions && functions->size() >= 5);
  run("for each in *.dwo; do truncate -s 0 $each; done");
  for (const FunctionInfo& function : *functions)
    for (const dwarf::Instance& instance : function.instances)
      EXPECT_TRUE(locate::Signatures(*info).of(function, instance));
}

class SharedInformation : public Packages {};
INSTANTIATE_TEST_SUITE_P(Compilers, SharedInformation,
                         testing::Values("g++ -gdwarf-5 -O2", "g++ -gdwarf-4 -O0", "clang++ -gdwarf-4 -O2"));

TEST_P(SharedInformation, of_dwz_is_what_it_was_before) {
  if (run_in(dir_, "command -v dwz").status != 0) GTEST_SKIP() << "no dwz here";
  run("for each in prog other; do " + GetParam() + " a.cpp b.cpp -o $each || exit; done");
  const std::vector<Known> right = all();
  EXPECT_GE(right.size(), 6U);
  run("dwz -m shared.debug prog other && readelf -SW prog | grep gnu_debugaltlink");
  EXPECT_EQ(all(), right);
  run("mv shared.debug elsewhere");
  const auto without = open();
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().kind, ErrorKind::not_found);
  EXPECT_THAT(without.error().message, HasSubstr("shared.debug"));
}

class Package : public Packages {};
INSTANTIATE_TEST_SUITE_P(One, Package, testing::Values("g++ -gdwarf-4 -gsplit-dwarf -O2 | dwp"));

/// How a program is compiled into split files, and the form in which its skeletons have the names of those.
using Split = std::pair<std::string, std::string>;

class NamesOfSplitFiles : public testing::TestWithParam<Split> {
 protected:
  void SetUp() override {
    dir_.write("a.cpp", std::string(kShared) + std::string(kFirst));
    dir_.write("b.cpp", std::string(kShared) + std::string(kSecond));
  }
  void build(const std::string& more) const {
    const std::string& compile = GetParam().first;
    const auto done = run_in(dir_, fmt::format("{0} {1} -c a.cpp -o one.o && {0} {1} -c b.cpp -o two.o && {2} one.o "
                                               "two.o -o prog",
                                               compile, more, compile.substr(0, compile.find(' '))));
    ASSERT_EQ(done.status, 0) << done.output;
  }
  [[nodiscard]] DebugInfo open() const { return DebugInfo::open(*ElfFile::open(dir_ / "prog")).value(); }
  TempDir dir_;
};

TEST_P(NamesOfSplitFiles, are_read_in_every_form) {
  build("");
  const std::vector<Known> right = all_of(open());
  EXPECT_GE(right.size(), 6U);
  build("-gsplit-dwarf");
  const auto forms = run_in(dir_, "readelf --debug-dump=abbrev prog | grep dwo_name");
  EXPECT_THAT(forms.output, HasSubstr(GetParam().second + "\n"));
  const DebugInfo info = open();
  EXPECT_EQ(all_of(info), right);
  EXPECT_EQ(info.missing(), "");
}

INSTANTIATE_TEST_SUITE_P(Compilers, NamesOfSplitFiles,
                         testing::Values(Split("g++ -gdwarf-4 -O2", "DW_FORM_strp"),
                                         Split("g++ -gdwarf-5 -O2", "DW_FORM_strp"),
                                         Split("g++ -gdwarf-4 -gdwarf64 -O2", "DW_FORM_string"),
                                         Split("g++ -gdwarf-5 -gdwarf64 -O2", "DW_FORM_string"),
                                         Split("g++ -gdwarf-5 -fno-merge-debug-strings -O2", "DW_FORM_string"),
                                         Split("clang++ -gdwarf-4 -O2", "DW_FORM_strp"),
                                         Split("clang++ -gdwarf-5 -O2", "DW_FORM_strx1"),
                                         Split("clang++ -gdwarf-4 -fsplit-dwarf-inlining -O2", "DW_FORM_strp"),
                                         Split("clang++ -gdwarf-5 -fsplit-dwarf-inlining -O2", "DW_FORM_strx1")));

class SplitFilesWithoutRoomForAName : public NamesOfSplitFiles {};

TEST_P(SplitFilesWithoutRoomForAName, are_said_to_be_missing) {
  build("-gsplit-dwarf");
  const DebugInfo info = open();
  EXPECT_TRUE(all_of(info).empty());
  EXPECT_THAT(info.missing(),
              testing::AllOf(HasSubstr("of 2 units"), HasSubstr("one.dwo"), HasSubstr(GetParam().second)));
}

INSTANTIATE_TEST_SUITE_P(Compilers, SplitFilesWithoutRoomForAName,
                         testing::Values(Split("g++ -gdwarf-4 -fno-merge-debug-strings -O2", "DW_FORM_string")));

TEST_P(Package, may_be_compressed) {
  run(build_command(GetParam(), "a.cpp b.cpp"));
  const std::vector<Known> right = all();
  run("objcopy --compress-debug-sections prog && objcopy --compress-debug-sections prog.dwp && "
      "readelf -SW prog.dwp | grep 'debug_info.dwo.* E*C '");
  EXPECT_EQ(all(), right);
}

TEST_P(Package, that_is_none_is_an_error_that_names_it) {
  run(build_command(GetParam(), "a.cpp b.cpp"));
  dir_.write("prog.dwp", "no package");
  const auto info = open();
  ASSERT_FALSE(info);
  EXPECT_THAT(info.error().message, HasSubstr("prog.dwp"));
}

TEST_P(Package, with_an_index_of_an_unknown_version_is_an_error_that_names_it) {
  run(build_command(GetParam(), "a.cpp b.cpp"));
  run("objcopy -O binary --only-section=.debug_cu_index --set-section-flags .debug_cu_index=alloc prog.dwp index && "
      "printf '\\011' | dd of=index conv=notrunc 2>/dev/null && objcopy --update-section .debug_cu_index=index "
      "prog.dwp");
  const auto info = open();
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().kind, ErrorKind::not_supported);
  EXPECT_THAT(info.error().message, HasSubstr("prog.dwp"));
}

/// An index of `units` units, all of whose parts are the whole of sections of so many bytes.
std::vector<std::uint8_t> index_of_greedy_units(std::uint32_t units, std::uint32_t size) {
  std::vector<std::uint32_t> words{2, 2, units, units};
  for (std::uint32_t i = 0; i < units; ++i) words.insert(words.end(), {i + 1, 0});
  for (std::uint32_t i = 0; i < units; ++i) words.push_back(i + 1);
  words.insert(words.end(), {1, 3});
  for (const std::uint32_t word : {0U, size})
    for (std::uint32_t i = 0; i < 2 * units; ++i) words.push_back(word);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(words.data());
  return {bytes, bytes + 4 * words.size()};
}

TEST(GreedyPackage, makes_no_more_than_its_budget) {
  std::vector<std::uint8_t> info(1 << 16);
  const std::uint8_t head[] = {0xfc, 0xff, 0, 0, 4, 0, 0, 0, 0, 0, 8};
  std::ranges::copy(head, info.begin());
  const auto index = index_of_greedy_units(1000, static_cast<std::uint32_t>(info.size()));
  dwarf::DwarfPackage::Sections sections{.contents = {}, .units = index, .types = {}};
  sections.contents[dwarf::DwoSection::info] = info;
  sections.contents[dwarf::DwoSection::abbrev] = info;
  const auto package = dwarf::DwarfPackage::read(sections);
  ASSERT_TRUE(package) << package.error().message;
  dwarf::Budget budget(10 * 2 * info.size(), 0);
  unsigned made = 0;
  for (std::uint64_t id = 1; id <= 1000; ++id) made += package->dwo_of(id, budget) ? 1 : 0;
  EXPECT_EQ(made, 9U);
  EXPECT_TRUE(budget.spent());
}

}  // namespace
}  // namespace usdt::test
