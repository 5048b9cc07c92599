// SPDX-License-Identifier: BSD-2-Clause
// What cannot be attached to is named, and nothing stays attached.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "kernel_ways.hpp"

namespace usdt::ways {
namespace {

using testing::HasSubstr;

TEST_P(EachWay, leaves_out_what_the_kernel_refuses_and_attaches_the_rest) {
  auto planned = plan(GetParam(), {kOneArgument, "vfs_getxattr", "ksys_read", "ksys_write"});
  ASSERT_TRUE(planned) << planned.error().message;
  ASSERT_EQ(planned->sites.size(), 4U);
  const auto bad = std::ranges::find(planned->functions, "vfs_getxattr", &PlannedFunction::name);
  ASSERT_NE(bad, planned->functions.end());
  // Where no code is, and the type of something else.
  bad->address = 4096;
  bad->btf_id = 1;
  const auto tracer = start(*planned);
  if (!tracer) return;
  EXPECT_EQ(tracer->link().attached(), 3U);
  ASSERT_EQ(tracer->link().refused().size(), 1U);
  for (const SkippedSite& refused : tracer->link().refused()) {
    EXPECT_EQ(planned->probes[refused.probe].name, "vfs_getxattr");
    EXPECT_THAT(refused.reason, HasSubstr("the kernel refuses it"));
  }
  fmt::print("  refused {}={} of 4 attached: {}\n", GetParam().text(), tracer->link().attached(),
             tracer->link().refused()[0].reason);
}

/// Functions of these that the kernel has.
std::vector<std::string> functions_here(std::set<std::string> names) {
  std::vector<std::string> found;
  std::ifstream symbols("/proc/kallsyms");
  for (std::string address, type, name, rest; symbols >> address >> type >> name && std::getline(symbols, rest);) {
    if ((type == "t" || type == "T") && names.erase(name) > 0) found.push_back(name);
  }
  return found;
}

TEST_F(KernelTest, names_the_reason_of_a_function_that_cannot_be_traced) {
  std::vector<PointPattern> patterns;
  for (const std::string& name : functions_here({"exc_int3", "do_int3", "kprobe_int3_handler", "el1h_64_sync_handler",
                                                 "notify_die", "get_kprobe", "asm_exc_int3"})) {
    for (const char* prefix : {"kprobe", "fentry", "kfunc"})
      patterns.push_back(*KernelPattern::parse(fmt::format("{}:{}", prefix, name)));
  }
  const auto selection = usdt::select(patterns);
  ASSERT_TRUE(selection) << selection.error().message;
  const KernelSelection* found = &selection->kernel;
  EXPECT_EQ(found->entries.size() + found->refused.size(), patterns.size());
  std::size_t known = 0;
  for (const auto& entry : found->entries) {
    KernelSelection one = *found;
    one.entries = {entry};
    one.refused.clear();
    const std::string what = fmt::format("{}:{}", to_string(entry.kind), entry.function->name);
    const auto planned = plan_attach({.kernel = one}, facts(), options(Backend::automatic));
    fmt::print("  {}: {}\n", what, planned ? to_string(planned->groups[0].backend) : planned.error().message);
    if (planned) continue;  // trampolines are not kprobes
    ++known;
    EXPECT_EQ(planned.error().kind, ErrorKind::not_supported);
  }
  for (const RefusedFunction& refused : found->refused) {
    fmt::print("  {}:{}: {}\n", to_string(refused.kind), refused.name, refused.reason);
    EXPECT_FALSE(refused.reason.empty());
    ++known;
  }
  EXPECT_GE(known, 1U);
}

/// One of `kprobe:NAME` as the kernel's lists have it.
std::string described(const KernelFunction& f) {
  return fmt::format("{} {} {:#x} types {} {} ftrace {} denied {} duplicate {}", f.module, f.name, f.address, f.btf_id,
                     f.proto_id, f.ftrace, f.denied, f.duplicate);
}

// A few names are asked for one by one, without the lists.
TEST_F(KernelTest, names_that_are_asked_for_mean_what_the_lists_say) {
  const auto& entries = all_functions()->entries;
  std::vector<std::string> names =
      functions_here({"vfs_read", "do_exit", "t_next", "s_start", "seq_printf", kOneArgument});
  for (std::size_t i = 0; i < entries.size(); i += 1 + entries.size() / 100)
    names.emplace_back(entries[i].function->name);
  std::size_t with_types = 0;
  for (const std::string& name : names) {
    std::set<std::string> listed;
    for (const auto& entry : entries) {
      if (entry.function->name == name) listed.insert(described(*entry.function));
    }
    const auto asked = usdt::select({*KernelPattern::parse("kprobe:" + name)});
    ASSERT_TRUE(asked) << asked.error().message;
    std::set<std::string> told;
    for (const auto& entry : asked->kernel.entries) {
      told.insert(described(*entry.function));
      with_types += entry.function->proto_id != 0 ? 1 : 0;
    }
    // Globs leave out what plain names may mean.
    for (const std::string& one : listed) EXPECT_TRUE(told.contains(one)) << name << ": " << one;
  }
  EXPECT_TRUE(with_types > 0 || !abilities().kernel_btf);
}

TEST_F(KernelTest, a_function_with_variable_arguments_is_for_kprobes_alone) {
  if (!abilities().kernel_btf || !abilities().tracing) GTEST_SKIP() << "no trampolines";
  const auto slots = plan_attach(select("fentry", {"seq_printf"}), facts(), options(Backend::automatic));
  ASSERT_FALSE(slots);
  EXPECT_THAT(slots.error().message, HasSubstr("variable arguments"));
  const auto any = plan_attach(select("kfunc", {"seq_printf"}), facts(), options(Backend::automatic));
  ASSERT_TRUE(any) << any.error().message;
  const auto tracer = start(*any);
  if (!tracer) return;
  std::ifstream limits("/proc/self/limits");
  std::string line;
  std::getline(limits, line);
  std::getline(limits, line);
  take(*tracer);
  EXPECT_FALSE(hits_.empty());
}

TEST_F(KernelTest, of_another_process_do_not_count) {
  const auto planned = plan({"kfunc", Backend::automatic, nullptr}, {kOneArgument});
  ASSERT_TRUE(planned) << planned.error().message;
  const auto tracer = start(*planned);
  if (!tracer) return;
  const pid_t child = ::fork();
  if (child == 0) {
    call_with(77'777);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  call_with(77'778);
  take(*tracer);
  ASSERT_EQ(hits_.size(), 1U);
  EXPECT_EQ(cut(*bits_of(hits_[0].values[0]), 4), 77'778U);
}

/// Lines of a file of tracefs; nothing where it cannot be read.
std::size_t lines_of(const std::vector<const char*>& paths) {
  for (const char* path : paths) {
    std::ifstream file(path);
    if (!file) continue;
    std::size_t lines = 0;
    for (std::string line; std::getline(file, line);) ++lines;
    return lines;
  }
  return 0;
}

TEST_P(EachWay, leaves_nothing_when_the_tracer_is_killed) {
  const auto left = [] {
    return lines_of({"/sys/kernel/tracing/enabled_functions", "/sys/kernel/debug/tracing/enabled_functions"}) +
           lines_of({"/sys/kernel/debug/kprobes/list"});
  };
  const auto before = left();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto planned = plan(GetParam(), {kOneArgument, "vfs_getxattr", "ksys_write"});
    if (!planned) ::_exit(1);
    auto tracer = Tracer::start(*planned);
    if (!tracer) ::_exit(2);
    if (::write(ready[1], "x", 1) != 1) ::_exit(3);
    for (;;) ::pause();
  }
  ::close(ready[1]);
  char byte;
  const bool up = ::read(ready[0], &byte, 1) == 1;
  ::close(ready[0]);
  const auto during = left();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(up);
  auto after = left();
  for (int i = 0; after > before && i < 200; ++i) {
    std::this_thread::sleep_for(50ms);
    after = left();
  }
  EXPECT_EQ(after, before);
  fmt::print("  killed {}={} lines before, {} while attached, {} after\n", GetParam().text(), before, during, after);
}

}  // namespace
}  // namespace usdt::ways
