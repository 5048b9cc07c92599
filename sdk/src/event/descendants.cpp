// SPDX-License-Identifier: BSD-2-Clause
#include "event/descendants.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/try.hpp"
#include "btf/types.hpp"
#include "event/stock_objects.hpp"
#include "features/trivial_program.hpp"
#include "program/libbpf_log.hpp"
#include "program/object_copy.hpp"
#include "program/process_list.hpp"
#include "sys/pid_namespace.hpp"
#include "sys/uapi.hpp"
#include "usdt/features.hpp"

namespace usdt::event {
namespace {

/// Processes marked at a time, of 64 bytes each; those beyond are found by the walk from child to parent.
constexpr std::uint32_t kMarks = 16384;

/// The calling process's number in the initial pid namespace, which a program that runs for us is told. Programs of raw
/// tracepoints are the oldest that can be run so and see the caller: Linux 5.10, commit 1b4d60ec162f.
Result<std::uint32_t> ask_the_kernel_for_our_pid() {
  constexpr std::uint64_t current_pid_tgid = 0x0000000e00000085;  // call BPF_FUNC_get_current_pid_tgid
  constexpr std::uint64_t upper_half = 0x0000002000000077;        // r0 >>= 32
  const sys::UniqueFd program(features::load_program(std::array{current_pid_tgid, upper_half, features::kInsnExit},
                                                     {.type = sys::kBpfProgTypeRawTracepoint}));
  LIBBPF_OPTS(bpf_test_run_opts, run);
  if (!program || bpf_prog_test_run_opts(program.get(), &run) != 0)
    return fail(os_failure(ErrorKind::not_supported,
                           "following children inside a pid namespace: ask the kernel for the tracer's own pid",
                           errno));
  return run.retval;
}

Result<std::vector<pid_t>> kernel_pids_of(const Family& family) {
  const auto nested = TRY(sys::nested_pid_namespace());
  if (!nested) return family.pids.empty() ? std::vector{::getpid()} : family.pids;
  if (!family.pids.empty())
    return fail(
        ErrorKind::not_supported,
        fmt::format("following the children of process {}: inside a pid namespace its number in the kernel is not "
                    "known",
                    family.pids.front()));
  auto our_pid = TRY(ask_the_kernel_for_our_pid());
  return std::vector{static_cast<pid_t>(our_pid)};
}

/// Finds where the kernel keeps what bpf/descends.h looks at.
Result<usdt_family_offsets> find_offsets() {
  if (const FeatureState btf = probe_feature(Feature::kernel_btf); btf.answer == Answer::no)
    return fail(ErrorKind::not_supported, fmt::format("following children: kernel BTF: {}", btf.detail));
  auto types = TRY(btf::Types::load());
  usdt_family_offsets task{};
  const std::array<std::pair<__u32*, const char*>, 5> members = {{{&task.pid, "pid"},
                                                                  {&task.tgid, "tgid"},
                                                                  {&task.parent, "real_parent"},
                                                                  {&task.signal, "signal"},
                                                                  {&task.exit_signal, "exit_signal"}}};
  for (const auto& [offset, member] : members) *offset = TRY(types->member_offset("task_struct", member));
  // Up to Linux 7.1 the flags of the memory tell it.
  const auto offset = [&](const char* structure, const char* member) {
    return types->member_offset(structure, member).value_or(0);
  };
  const bool by_state = offset("task_struct", "exec_state") != 0;
  task.image = offset("task_struct", by_state ? "exec_state" : "mm");
  task.dumpable = by_state ? offset("task_exec_state", "dumpable") : offset("mm_struct", "flags");
  return task;
}

Result<sys::UniqueFd> attach_raw(const backends::ObjectCopy& object, const char* program, const char* tracepoint) {
  const int fd = bpf_program__fd(bpf_object__find_program_by_name(object.get(), program));
  sys::UniqueFd link(bpf_raw_tracepoint_open(tracepoint, fd));
  if (!link) return fail(os_failure(ErrorKind::io, fmt::format("attach to {}", tracepoint), errno));
  return link;
}

}  // namespace

Result<usdt_family_constants> count_family_only(const Family& family) {
  usdt_family_constants constants{};
  constants.task = TRY(find_offsets());
  constants.ancestors = backends::process_list(TRY(kernel_pids_of(family)));
  constants.ancestors_count = family.pids.empty() ? 0 : 1;
  return constants;
}

Result<usdt_family_constants> leave_out_tasks() {
  usdt_family_constants constants{};
  constants.task = TRY(find_offsets());
  constants.ancestors = backends::process_list(TRY(kernel_pids_of({})));
  constants.all_but_tasks = 1;
  return constants;
}

Result<void> size_fork_marks(BpfObject& object) { return object.set_max_entries("usdt_descendants", kMarks); }

Result<ForkMarks> ForkMarks::start(const LoadedObject& object, const usdt_family_constants& family) {
  auto marks = object.map_fd("usdt_descendants");
  if (!marks) return fail(marks.error());
  const std::string name = "usdt_follow";
  auto follow = backends::ObjectCopy::open(follow_programs(), name);
  if (!follow) return fail(follow.error());
  usdt_stock_constants constants{};
  constants.family = family;
  TRY(follow->set_constant("usdt_stock_constants", constants));
  const backends::LibbpfLog quiet;
  if (const int error = bpf_map__reuse_fd(follow->map("usdt_descendants"), *marks))
    return fail(os_failure(ErrorKind::io, "share the marks of descendants", -error));
  if (auto loaded = follow->load(backends::VerifierLog::all); !loaded)
    return fail(loaded.error().within("the programs that follow forks"));
  ForkMarks out;
  constexpr std::array<std::pair<const char*, const char*>, 3> programs = {{{"usdt_on_free", "sched_process_free"},
                                                                            {"usdt_on_fork", "sched_process_fork"},
                                                                            {"usdt_on_exec", "sched_process_exec"}}};
  for (const auto& [program, tracepoint] : programs) {
    auto link = TRY(attach_raw(*follow, program, tracepoint));
    out.links_.push_back(std::move(link));
  }
  out.shielded_.reset(::fcntl(bpf_map__fd(follow->map("usdt_shielded")), F_DUPFD_CLOEXEC, 0));
  return out;
}

std::uint64_t ForkMarks::shielded() const {
  const std::uint32_t first = 0;
  std::uint64_t count = 0;
  if (!shielded_ || bpf_map_lookup_elem(shielded_.get(), &first, &count) != 0) return 0;
  return count;
}

}  // namespace usdt::event
