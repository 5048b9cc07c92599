// SPDX-License-Identifier: BSD-2-Clause
// Functions by name and by address, and source lines; nm and the sources say what is right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "dwarf/debug_info.hpp"
#include "toolchain.hpp"

namespace usdt::test {
namespace {

using dwarf::DebugInfo;
using dwarf::FunctionInfo;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

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
    dir_.write("prog.cpp", kSource);
    const auto built = run_in(dir_, GetParam() + " prog.cpp -o prog");
    ASSERT_EQ(built.status, 0) << built.output;
    const auto file = ElfFile::open(dir_ / "prog");
    ASSERT_TRUE(file) << file.error().message;
    auto info = DebugInfo::open(*file);
    ASSERT_TRUE(info) << info.error().message;
    info_.emplace(std::move(*info));
  }

  [[nodiscard]] std::vector<FunctionInfo> named(std::string_view name) const {
    auto found = info_->functions_named(name);
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
    std::istringstream line(run_in(dir_, "nm prog | grep ' " + symbol + "$'").output);
    std::uint64_t address = 0;
    line >> std::hex >> address;
    EXPECT_NE(address, 0U) << symbol;
    return VirtAddr(address);
  }

  TempDir dir_;
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
  const auto found = info_->function_at(address_of("_ZN3net6Server6handleEi"));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->qualified, "net::Server::handle");
  const auto none = info_->function_at(address_of("_ZN3net6Server6handleEi") + 1);
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
    const auto found = info_->addresses_of_line(file, 7);
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_THAT(*found, SizeIs(1));
    EXPECT_GE(found->front(), address_of("_ZN3net6Server6handleEi"));
    EXPECT_LT(found->front(), address_of("_ZN3net6Server6handleEi") + 32);
  }
  EXPECT_THAT(*info_->addresses_of_line("prog.cpp", 9), IsEmpty());
  EXPECT_EQ(info_->next_line_with_code("prog.cpp", 8), 10U);
  EXPECT_EQ(info_->next_line_with_code("prog.cpp", 1000), std::nullopt);
  const auto none = info_->addresses_of_line("rog.cpp", 7);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::not_found);
  EXPECT_THAT(none.error().message, HasSubstr("'rog.cpp'"));
}

INSTANTIATE_TEST_SUITE_P(Compilers, Program,
                         testing::Values("g++ -g -O0", "g++ -g -O2", "g++ -gdwarf-4 -O1 -no-pie", "clang++ -g -O0",
                                         "clang++ -g -O2", "g++ -gdwarf-4 -O2 -fdebug-types-section", "g++ -g -O2 -gz",
                                         "g++ -g -O2 -gsplit-dwarf", "clang++ -g -O2 -gsplit-dwarf"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
                           return name + std::to_string(each.index);
                         });

}  // namespace
}  // namespace usdt::test
