// SPDX-License-Identifier: BSD-2-Clause
#include "link/return_depth.hpp"

#include <bpf/bpf.h>

#include <utility>
#include <vector>

#include "btf/types.hpp"
#include "kernel/small_program.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"

namespace usdt::backends {
namespace {

using kernel::Op;

/// MAX_URETPROBE_DEPTH of include/linux/uprobes.h, from 4.2 to 7.2.
constexpr std::uint32_t kMostReturns = 64;

struct Offsets {
  std::uint32_t utask;  ///< in task_struct
  std::uint32_t depth;  ///< in uprobe_task, 32 bits: how many returns of the thread are remembered
};

std::optional<Offsets> offsets() {
  const auto types = btf::Types::load();
  if (!types) return std::nullopt;
  const auto utask = (*types)->member_offset("task_struct", "utask");
  const auto depth = (*types)->member_offset("uprobe_task", "depth");
  if (!utask || !depth) return std::nullopt;
  return Offsets{*utask, *depth};
}

/// Reads `size` bytes at the address in register 3, plus `distance`, to the stack.
void read_kernel(kernel::SmallProgram& code, std::uint32_t distance, std::uint32_t size, int to) {
  constexpr std::uint32_t probe_read_kernel = 113;
  code.add(Op::add, 3, 0, 0, distance)
      .add(Op::put_64, 10, 0, to, 0)
      .add(Op::move, 1, 10)
      .add(Op::add, 1, 0, 0, static_cast<std::uint32_t>(to))
      .add(Op::set, 2, 0, 0, size)
      .add(Op::call, 0, 0, 0, probe_read_kernel);
}

/// Runs where calls begin, before the kernel looks whether it can remember another one (prepare_uretprobe() of
/// kernel/events/uprobes.c).
sys::UniqueFd load_counter(const Offsets& at, const sys::UniqueFd& counter, bool by_perf_event) {
  constexpr std::uint32_t get_current_task = 35;
  constexpr std::uint32_t atomic_add_64 = 0xdb;
  kernel::SmallProgram code;
  code.add(Op::call, 0, 0, 0, get_current_task).add(Op::move, 3, 0);
  read_kernel(code, at.utask, 8, -8);
  code.add(Op::load_64, 3, 10, -8);
  const std::size_t no_task = code.size();
  code.add(Op::jump_if_set_to, 3);
  read_kernel(code, at.depth, 4, -16);
  code.add(Op::load_64, 3, 10, -16);
  const std::size_t deep = code.size();
  code.add(Op::jump_if_above, 3, 0, 0, kMostReturns - 1);
  code.land_here(no_task);
  code.add(Op::set, 0).add(Op::exit);
  code.land_here(deep);
  code.map_value(1, counter).add(Op::set, 2, 0, 0, 1);
  code.add(static_cast<Op>(atomic_add_64), 1, 2).add(Op::set, 0).add(Op::exit);
  return code.load({.prog_type = sys::kBpfProgTypeKprobe,
                    .expected_attach_type = by_perf_event ? 0U : sys::kBpfAttachTraceUprobeMulti});
}

}  // namespace

void count_deep_calls(FileLinks& links, const AttachTarget& target, const SiteArrays& sites) {
  if (links.fds.empty()) return;
  const auto at = offsets();
  if (!at) return;
  sys::MapCreate of;
  of.value_size = sizeof(std::uint64_t);
  sys::UniqueFd counter(sys::syscalls().bpf(sys::kBpfMapCreateCmd, &of, sizeof(of)));
  if (!counter) return;
  const bool of_family = target.family != nullptr;
  const sys::UniqueFd program = load_counter(*at, counter, of_family);
  if (!program) return;
  AttachTarget entries = target;
  entries.program_fd = program.get();
  const std::vector<std::uint64_t> alike(sites.offsets.size());  // they need not be told apart
  auto more = of_family ? attach_uprobe_family(entries, {sites.offsets, sites.ref_ctr_offsets, alike})
                        : attach_uprobe_multi(entries, sites);
  if (!more || more->fds.empty()) return;
  links.fds.front().deep_calls = std::move(counter);
  more->refused.clear();  // the return probe stands there
  links.append(std::move(*more));
}

std::optional<std::uint64_t> deep_calls(const sys::UniqueFd& counter) {
  const std::uint32_t first = 0;
  std::uint64_t count = 0;
  if (!counter || bpf_map_lookup_elem(counter.get(), &first, &count) != 0) return std::nullopt;
  return count;
}

}  // namespace usdt::backends
