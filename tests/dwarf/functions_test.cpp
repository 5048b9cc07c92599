// SPDX-License-Identifier: BSD-2-Clause
// Functions by name and by address, and source lines; nm and the sources say what is right.
#include "dwarf/functions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

#include "dwarf/debug_info.hpp"
#include "dwarf/lines.hpp"
#include "dwarf/running.hpp"
#include "locate/signature.hpp"
#include "packaged.hpp"
#include "toolchain.hpp"

namespace usdt::test {
namespace {

using dwarf::DebugInfo;
using dwarf::FunctionInfo;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<std::string> split(const std::string& words) {
  std::istringstream text(words);
  return {std::istream_iterator<std::string>(text), {}};
}

constexpr std::string_view kSource = R"(namespace net {
struct Server {
  int handle(int request);
  template <class T> T twice(T value) { return value + value; }
};
__attribute__((noinline)) int Server::handle(int request) {
  return request + 1;
}
namespace {
__attribute__((noinline)) int hidden(int x) { return x * 3; }
}
}
static inline __attribute__((always_inline)) int small(int x) {
  asm volatile("" : "+r"(x)); return x * 5;
}
__attribute__((noinline)) int first(int x) {
  return small(x);
}
__attribute__((noinline)) int second(int x) {
  return small(x) + small(x + 1);
}
__attribute__((noreturn)) void leave() { __builtin_trap(); }
extern "C" int overloaded_c(int x) { return x; }
int overloaded(int x) { return x + 100; }
long overloaded(long x) { return x + 200; }
int main(int argc, char**) {
  net::Server server;
  if (argc == 9) leave();
  return server.handle(argc) + net::hidden(argc) + first(argc) + second(argc) + server.twice(argc) + overloaded(2) + (int)overloaded(2L);
}
)";

class Program : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    static std::map<std::string, TempDir> built;  // by how: compilers take longer than all that is asked of a program
    const auto [at, fresh] = built.try_emplace(GetParam());
    dir_ = &at->second;
    if (fresh) {
      dir_->write("prog.cpp", kSource);
      const auto result = run_in(*dir_, build_command(GetParam(), "prog.cpp"));
      ASSERT_EQ(result.status, 0) << result.output;
    }
    const auto file = ElfFile::open(*dir_ / "prog");
    ASSERT_TRUE(file) << file.error().message;
    auto info = DebugInfo::open(*file);
    ASSERT_TRUE(info) << info.error().message;
    info_.emplace(std::move(*info));
  }

  [[nodiscard]] std::vector<FunctionInfo> named(std::string_view name) const {
    auto found = dwarf::functions_named(*info_, name);
    EXPECT_TRUE(found) << found.error().message;
    return found ? *std::move(found) : std::vector<FunctionInfo>();
  }
  [[nodiscard]] FunctionInfo the_one(std::string_view name) const {
    auto found = named(name);
    EXPECT_THAT(found, SizeIs(1)) << name;
    return found.empty() ? FunctionInfo() : found.front();
  }
  /// The address nm prints for `symbol`.
  [[nodiscard]] VirtAddr address_of(const std::string& symbol) const {
    std::istringstream line(run_in(*dir_, "nm prog | grep ' " + symbol + "$'").output);
    std::uint64_t address = 0;
    line >> std::hex >> address;
    EXPECT_NE(address, 0U) << symbol;
    return VirtAddr(address);
  }

  const TempDir* dir_ = nullptr;
  std::optional<DebugInfo> info_;
};

TEST_P(Program, names_a_member_function_by_each_of_its_names) {
  const VirtAddr entry = address_of("_ZN3net6Server6handleEi");
  for (const std::string_view name : {"handle", "net::Server::handle", "_ZN3net6Server6handleEi"}) {
    const FunctionInfo handle = the_one(name);
    EXPECT_EQ(handle.name, "handle");
    EXPECT_EQ(handle.qualified, "net::Server::handle");
    EXPECT_EQ(handle.linkage_name, "_ZN3net6Server6handleEi");
    EXPECT_TRUE(handle.external);
    EXPECT_THAT(handle.declared.file, testing::EndsWith("prog.cpp"));
    EXPECT_EQ(handle.declared.line, 6U);
    ASSERT_THAT(handle.instances, SizeIs(1));
    EXPECT_EQ(handle.instances[0].pc, entry);
    EXPECT_FALSE(handle.instances[0].inlined);
  }
}

TEST_P(Program, finds_the_function_at_an_address) {
  const auto found = dwarf::function_at(*info_, address_of("_ZN3net6Server6handleEi"));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->qualified, "net::Server::handle");
  const auto none = dwarf::function_at(*info_, address_of("_ZN3net6Server6handleEi") + 1);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::not_found);
}

TEST_P(Program, names_what_is_in_an_anonymous_namespace) {
  const FunctionInfo hidden = the_one("hidden");
  EXPECT_EQ(hidden.qualified, "net::(anonymous namespace)::hidden");
  EXPECT_FALSE(hidden.external);
}

TEST_P(Program, tells_overloads_apart) {
  const auto found = named("overloaded");
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_NE(found[0].linkage_name, found[1].linkage_name);
  EXPECT_EQ(the_one("_Z10overloadedl").declared.line, 25U);
}

TEST_P(Program, knows_which_functions_never_return) {
  EXPECT_TRUE(the_one("leave").noreturn);
  EXPECT_FALSE(the_one("main").noreturn);
}

TEST_P(Program, finds_every_inlined_copy_with_its_caller_and_its_call) {
  const FunctionInfo small = the_one("small");
  std::vector<std::pair<std::string, std::uint32_t>> calls;
  for (const auto& each : small.instances) {
    EXPECT_TRUE(each.inlined);
    calls.emplace_back(each.caller, each.where_called.line);
    const VirtAddr caller = address_of(each.caller == "first" ? "_Z5firsti" : "_Z6secondi");
    EXPECT_GE(each.pc, caller);
    EXPECT_LT(each.pc, caller + 64);
  }
  EXPECT_THAT(calls, testing::UnorderedElementsAre(std::pair("first", 17U), std::pair("second", 20U),
                                                   std::pair("second", 20U)));
}

TEST_P(Program, finds_nothing_under_a_name_that_nothing_has) { EXPECT_THAT(named("nothing"), IsEmpty()); }

TEST_P(Program, finds_the_addresses_of_a_line) {
  for (const std::string_view file : {"prog.cpp", "/prog.cpp"}) {
    const auto found = dwarf::addresses_of_line(*info_, file, 7);
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_THAT(*found, SizeIs(1));
    EXPECT_GE(found->front(), address_of("_ZN3net6Server6handleEi"));
    EXPECT_LT(found->front(), address_of("_ZN3net6Server6handleEi") + 32);
  }
  EXPECT_THAT(*dwarf::addresses_of_line(*info_, "prog.cpp", 9), IsEmpty());
  EXPECT_EQ(dwarf::next_line_with_code(*info_, "prog.cpp", 8), 10U);
  EXPECT_EQ(dwarf::next_line_with_code(*info_, "prog.cpp", 1000), std::nullopt);
  const auto none = dwarf::addresses_of_line(*info_, "rog.cpp", 7);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::not_found);
  EXPECT_THAT(none.error().message, HasSubstr("'rog.cpp'"));
}

/// A program of several units that share a header, whose functions are inlined into some of them.
class ProgramOfUnits : public testing::TestWithParam<std::string> {};

/// Name, address and caller of each instance.
using ShownPlaces = std::set<std::tuple<std::string, std::uint64_t, std::string>>;
void add_places(ShownPlaces& places, const FunctionInfo& function) {
  for (const auto& each : function.instances) places.emplace(function.qualified, each.pc.value, each.caller);
}

TEST_P(ProgramOfUnits, has_the_same_functions_asked_for_by_each_name_and_all_at_once) {
  const TempDir dir;
  dir.write("shared.h", R"(#pragma once
namespace shared {
static inline __attribute__((always_inline)) int everywhere(int x) { asm volatile("" : "+r"(x)); return x * 5; }
static inline __attribute__((always_inline)) int odd_ones(int x) { asm volatile("" : "+r"(x)); return x * 7; }
template <class T> struct Box { T value; __attribute__((noinline)) T get() const { return value + 1; } };
}
)");
  std::string calls;
  std::string declared;
  constexpr int units = 12;
  for (int unit = 0; unit < units; ++unit) {
    dir.write("unit" + std::to_string(unit) + ".cpp", fmt::format(R"(#include "shared.h"
namespace app{0} {{
__attribute__((noinline)) static int same(int x) {{ asm volatile("" : "+r"(x)); return x + {0}; }}
struct Handler {{ static __attribute__((noinline)) int run(int x) {{ return same(x) + shared::everywhere(x); }} }};
}}
int entry{0}(int x) {{ return app{0}::Handler::run(x) {1} + shared::Box<int>{{x}}.get(); }}
)",
                                                                  unit, unit % 2 == 1 ? "+ shared::odd_ones(x)" : ""));
    declared += fmt::format("int entry{}(int);\n", unit);
    calls += fmt::format(" + entry{}(argc)", unit);
  }
  dir.write("main.cpp", fmt::format("{}int main(int argc, char**) {{ return 0{}; }}\n", declared, calls));
  const auto built = run_in(dir, build_command(GetParam(), "*.cpp"));
  ASSERT_EQ(built.status, 0) << built.output;
  const auto file = ElfFile::open(dir / "prog");
  ASSERT_TRUE(file);
  const auto info = DebugInfo::open(*file);
  ASSERT_TRUE(info) << info.error().message;

  const auto all = dwarf::find_functions(*info, [](const FunctionInfo&) { return true; });
  ASSERT_TRUE(all) << all.error().message;
  std::map<std::string, ShownPlaces> expected;
  ShownPlaces whole;
  for (const FunctionInfo& function : *all) {
    add_places(whole, function);
    for (const std::string& name : std::set{function.name, function.linkage_name, function.qualified})
      if (!name.empty()) add_places(expected[name], function);
  }
  const auto count = [&](std::string_view name) {
    return std::ranges::count_if(whole, [&](const auto& place) { return std::get<0>(place) == name; });
  };
  EXPECT_GE(count("shared::everywhere"), units);
  EXPECT_GE(count("shared::odd_ones"), units / 2);
  for (int unit = 0; unit < units; ++unit) EXPECT_GE(count(fmt::format("app{}::Handler::run", unit)), 1);
  for (const auto& [name, places] : expected) {
    const auto asked = dwarf::functions_named(*info, name);
    ASSERT_TRUE(asked) << asked.error().message;
    ShownPlaces found;
    for (const FunctionInfo& function : *asked) add_places(found, function);
    EXPECT_EQ(found, places) << name;
  }
  EXPECT_THAT(*dwarf::functions_named(*info, "no_such_function"), IsEmpty());
}

/// Debuggers look for such a value in the caller: a probe does not know which one that is.
/// A function in pieces, as Propeller and BOLT lay them out: where its code is, its debug information tells in any
/// order.
class InPieces : public testing::Test {
 protected:
  static constexpr std::string_view kWork = R"(
    #include <string.h>
    __attribute__((noinline)) long note(const char *s, long n) { __asm__ volatile("" :: "r"(s) : "memory"); return n + (long)strlen(s); }
    __attribute__((noinline)) long work(const char *name, long n) {
      long a = note(name, n), b = note(name, n + 1), t = 0;
      if (n & 1) { for (long i = 0; i < 3; i++) t += note("odd", i + a); return t + b; }
      for (long i = 0; i < 2; i++) t += note("even", i + b);
      return t - a;
    }
    int main(void) { long s = 0; for (int i = 0; i < 10; i++) s += work(i & 1 ? "one" : "two", i); return s == 0; })";

  /// The sections of blocks, as the linker has them without an order.
  void build(const std::string& flags) {
    dir_.write("work.c", kWork);
    const auto built = run_in(dir_, "clang -g -O2 " + flags + " work.c -o prog");
    ASSERT_EQ(built.status, 0) << built.output;
  }
  [[nodiscard]] std::uint64_t address_of(const std::string& symbol) const {
    return std::stoull(run_in(dir_, "nm prog | grep -w '" + symbol + "$' | cut -d' ' -f1").output, nullptr, 16);
  }
  [[nodiscard]] std::vector<dwarf::Instance> instances() const {
    const auto info = DebugInfo::open(ElfFile::open(dir_ / "prog").value()).value();
    const auto found = dwarf::functions_named(info, "work").value();
    return found.empty() ? std::vector<dwarf::Instance>() : found.front().instances;
  }
  void expect_its_entry() const {
    const std::uint64_t entry = address_of("work");
    ASSERT_THAT(instances(), SizeIs(1));
    EXPECT_EQ(instances()[0].pc.value, entry);
    EXPECT_THAT(instances()[0].elsewhere, SizeIs(3));
    const auto info = DebugInfo::open(ElfFile::open(dir_ / "prog").value()).value();
    EXPECT_EQ(dwarf::function_at(info, VirtAddr(entry)).value().name, "work");
    EXPECT_FALSE(dwarf::function_at(info, VirtAddr(address_of("work.__part.1"))));
    const auto function = dwarf::functions_named(info, "work").value().front();
    EXPECT_THAT(locate::Signatures(info).of(function, function.instances[0])->args, SizeIs(2));
  }

  TempDir dir_;
};

TEST_F(InPieces, begins_where_its_own_symbol_is) {
  build("-fbasic-block-sections=all");
  expect_its_entry();
}

TEST_F(InPieces, begins_there_wherever_the_linker_puts_its_pieces) {
  for (const char* order :
       {"work.__part.2 work.__part.1 work work.__part.3", "work.__part.3 work note work.__part.1",
        "work work.__part.3 work.__part.2 work.__part.1", "work.__part.1 note work.__part.3 work.__part.2 work"}) {
    SCOPED_TRACE(order);
    dir_.write("order", fmt::format("{}\n", fmt::join(split(order), "\n")));
    build(
        "-fbasic-block-sections=all -funique-basic-block-section-names -fuse-ld=lld -Wl,--symbol-ordering-file=order "
        "-Wl,--no-warn-symbol-ordering");
    expect_its_entry();
  }
}

TEST_F(InPieces, begins_nowhere_that_is_known_where_it_has_no_symbol) {
  build("-fbasic-block-sections=all");
  ASSERT_EQ(run_in(dir_, "objcopy --strip-symbol=work prog").status, 0);
  EXPECT_THAT(instances(), IsEmpty());
}

TEST_F(InPieces, of_gcc_begins_in_its_likely_half) {
  dir_.write("work.c", R"(
    #include <stdio.h>
    __attribute__((cold, noinline)) void complain(int x) { printf("%d", x); }
    __attribute__((noinline)) int work(int x) {
      if (__builtin_expect(x > 1000, 0)) { complain(x); complain(x + 1); return -x; }
      return x * 3;
    }
    int main(int argc, char **argv) { return work(argc); })");
  const auto built = run_in(dir_, "gcc -g -O2 work.c -o prog");
  ASSERT_EQ(built.status, 0) << built.output;
  ASSERT_THAT(instances(), SizeIs(1));
  EXPECT_EQ(instances()[0].pc.value, address_of("work"));
  EXPECT_THAT(instances()[0].elsewhere, SizeIs(1));
  EXPECT_EQ(instances()[0].elsewhere[0].first.value, address_of("work.cold"));
}

TEST(EntryValues, are_an_error_where_the_register_has_something_else_since) {
  const TempDir dir;
  dir.write("prog.c", R"(int seen;
__attribute__((noinline)) void change(int x) { asm volatile("" : : "r"(x) : "rdi", "memory"); }
__attribute__((noinline)) int late(int gone, int kept) {
  change(gone);
  seen = 1;
  change(2);
  return kept;
}
int main(int argc, char **argv) { return late(argc, 3) + late(argc + 1, 4); }
)");
  const auto built = run_in(dir, "gcc -g -O2 prog.c -o prog && readelf --debug-dump=loc prog");
  ASSERT_EQ(built.status, 0) << built.output;
  ASSERT_THAT(built.output, HasSubstr("DW_OP_entry_value"));
  const auto info = DebugInfo::open(*ElfFile::open(dir / "prog")).value();
  const auto gone_at = [&](std::uint32_t line) {
    const auto addresses = dwarf::addresses_of_line(info, "prog.c", line);
    EXPECT_TRUE(addresses && addresses->size() == 1) << line;
    const FunctionInfo function = dwarf::function_around(info, addresses->front()).value();
    const auto variables = locate::Signatures(info).with_variables(function, function.instances.front(), line);
    EXPECT_TRUE(variables && variables->args.size() == 2);
    return variables->args.front();
  };
  const auto reason = [](const Arg& arg) {
    const auto* unreadable = std::get_if<Unreadable>(&arg.location);
    return unreadable == nullptr ? std::string() : unreadable->reason;
  };
  EXPECT_THAT(reason(gone_at(6)), HasSubstr("in a register when the function began"));
  const FunctionInfo function = dwarf::functions_named(info, "late").value().front();
  const auto at_entry = locate::Signatures(info).of(function, function.instances.front());
  ASSERT_TRUE(at_entry);
  EXPECT_TRUE(at_entry->args.front().readable());
}

INSTANTIATE_TEST_SUITE_P(Compilers, ProgramOfUnits,
                         testing::Values("g++ -g -O2", "g++ -g -O0", "g++ -g -O2 -gdwarf-4", "g++ -g -O2 -flto",
                                         "g++ -g -O2 -gsplit-dwarf", "g++ -g -O2 -fdebug-types-section",
                                         "g++ -g -O2 -gz", "g++ -g -O2 -gdwarf-3", "g++ -g -O2 -m32", "clang++ -g -O2",
                                         "clang++ -g -O2 -gdwarf-4", "clang++ -g -O2 -gsplit-dwarf",
                                         "clang++ -g -O2 -gdwarf64", "g++ -g -O2 -gdwarf-4 -gsplit-dwarf | dwp",
                                         "clang++ -g -O2 -gsplit-dwarf | llvm-dwp"));

INSTANTIATE_TEST_SUITE_P(Compilers, Program,
                         testing::Values("g++ -g -O0", "g++ -g -O2", "g++ -gdwarf-4 -O1 -no-pie", "clang++ -g -O0",
                                         "clang++ -g -O2", "g++ -gdwarf-4 -O2 -fdebug-types-section", "g++ -g -O2 -gz",
                                         "g++ -g -O2 -gsplit-dwarf", "clang++ -g -O2 -gsplit-dwarf",
                                         "g++ -g -O2 -gdwarf-4 -gsplit-dwarf | dwp",
                                         "clang++ -g -O2 -gsplit-dwarf | llvm-dwp"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
                           return name + std::to_string(each.index);
                         });

}  // namespace
}  // namespace usdt::test
