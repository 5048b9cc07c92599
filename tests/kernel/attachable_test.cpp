// SPDX-License-Identifier: BSD-2-Clause
#include <gmock/gmock.h>

#include "fixture.hpp"

namespace usdt::kernel {
namespace {

using test::FakeKernel;
using test::function;
using ::testing::HasSubstr;

constexpr KernelKind kKprobe{KernelFamily::kprobe, Moment::entry};
constexpr KernelKind kFentry{KernelFamily::trampoline, Moment::entry};
constexpr KernelKind kFexit{KernelFamily::trampoline, Moment::exit};
constexpr KernelKind kFsession{KernelFamily::trampoline, Moment::both};
constexpr KernelKind kAny{KernelFamily::any, Moment::entry};

class WhyNot : public ::testing::Test {
 protected:
  WhyNot() {
    kernel_.kallsyms(
        "10 T read\n20 t untyped\n30 t read.isra.0\n40 t untraceable\n100 t trap\n200 t show\n300 t show\n"
        "400 T migrate_disable\n500 T do_exit\n600 t trap_mod\t[xfs]\n700 t do_exit\t[xfs]\n");
    kernel_.traceable("read\nuntyped\nread.isra.0\nshow\nshow\nmigrate_disable\ndo_exit\ndo_exit [xfs]\n");
    kernel_.blacklist("0x100-0x110\ttrap\n");
    kernel_.types({"read", "untraceable", "trap", "show", "migrate_disable", "do_exit"});
    kernel_.module_types("xfs", {"do_exit"});
    catalogue_ = kernel_.load();
  }
  [[nodiscard]] std::string why_not(std::string_view name, KernelKind kind, std::string_view module = "") const {
    return kernel::why_not(*catalogue_, function(*catalogue_, name, module), kind);
  }

  FakeKernel kernel_;
  std::shared_ptr<const Catalogue> catalogue_;
};

TEST_F(WhyNot, a_traceable_typed_function_of_a_unique_name_takes_every_kind) {
  for (const KernelKind kind : {kKprobe, kFentry, kFexit, kFsession, kAny}) EXPECT_EQ(why_not("read", kind), "");
}

TEST_F(WhyNot, trampolines_need_types) {
  EXPECT_THAT(why_not("untyped", kFentry), HasSubstr("no type information (BTF)"));
  EXPECT_EQ(why_not("untyped", kKprobe), "");
  EXPECT_EQ(why_not("untyped", kAny), "") << "a kprobe will do";
}

TEST_F(WhyNot, a_function_the_compiler_changed_says_so) {
  EXPECT_THAT(why_not("read.isra.0", kFentry), HasSubstr("the compiler changed its parameters (.isra.0)"));
  EXPECT_EQ(why_not("read.isra.0", kKprobe), "");
}

TEST_F(WhyNot, trampolines_need_ftrace) {
  EXPECT_THAT(why_not("untraceable", kFentry), HasSubstr("not traceable"));
  EXPECT_EQ(why_not("untraceable", kKprobe), "") << "a perf kprobe traps anywhere";
}

TEST_F(WhyNot, the_blacklist_stops_perf_kprobes) {
  EXPECT_THAT(why_not("trap", kKprobe), HasSubstr("kprobe blacklist"));
  EXPECT_THAT(why_not("trap", kAny), HasSubstr("kprobe blacklist"));
}

TEST_F(WhyNot, trampolines_need_a_unique_name) {
  EXPECT_THAT(why_not("show", kFentry), HasSubstr("not unique"));
  EXPECT_EQ(why_not("show", kKprobe), "") << "kprobes are given addresses";
}

TEST_F(WhyNot, a_copy_that_only_an_address_tells_apart_needs_one) {
  kernel_.kallsyms("0 t show\n0 t show\n").traceable("");
  const auto hidden = kernel_.load();
  EXPECT_THAT(kernel::why_not(*hidden, function(*hidden, "show"), kKprobe), HasSubstr("hides addresses"));
}

TEST_F(WhyNot, what_trampolines_call_takes_none) {
  EXPECT_THAT(why_not("migrate_disable", kFentry), HasSubstr("trampolines call it"));
  EXPECT_EQ(why_not("migrate_disable", kKprobe), "");
}

TEST_F(WhyNot, what_never_returns_has_no_exit) {
  EXPECT_EQ(why_not("do_exit", kFentry), "");
  EXPECT_EQ(why_not("do_exit", kFexit), "it never returns");
  EXPECT_EQ(why_not("do_exit", kFsession), "it never returns");
  EXPECT_EQ(why_not("do_exit", kFexit, "xfs"), "") << "a module's function of that name is another";
}

TEST_F(WhyNot, a_signature_that_trampolines_refuse_is_passed_on) {
  const KernelFunction read = function(*catalogue_, "read");
  EXPECT_EQ(kernel::why_not(*catalogue_, read, kFentry, "variadic"), "variadic");
  EXPECT_EQ(kernel::why_not(*catalogue_, read, kKprobe, "variadic"), "");
  EXPECT_EQ(kernel::why_not(*catalogue_, read, kAny, "variadic"), "") << "a kprobe will do";
}

TEST_F(WhyNot, where_ftrace_is_unknown_nothing_is_refused_for_it) {
  FakeKernel blind;
  blind.kallsyms("10 T read\n").types({"read"});
  const auto catalogue = blind.load();
  EXPECT_EQ(kernel::why_not(*catalogue, function(*catalogue, "read"), kFentry), "");
}

TEST_F(WhyNot, typed_tracepoints_need_types_and_raw_ones_do_not) {
  KernelFunction tracepoint;
  EXPECT_THAT(kernel::why_not(*catalogue_, tracepoint, {KernelFamily::tp_btf, Moment::entry}), HasSubstr("BTF"));
  EXPECT_EQ(kernel::why_not(*catalogue_, tracepoint, {KernelFamily::raw_tp, Moment::entry}), "");
}

}  // namespace
}  // namespace usdt::kernel
