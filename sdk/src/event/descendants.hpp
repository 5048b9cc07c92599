// SPDX-License-Identifier: BSD-2-Clause
// Which processes descend from the calling one, as BPF programs see it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "sys/unique_fd.hpp"
#include "usdt/bpf/stock_constants.h"
#include "usdt/bpf_object.hpp"
#include "usdt/result.hpp"

namespace usdt::event {

/// Says whose descendants count.
struct Family {
  std::vector<pid_t> pids;  ///< these processes', and their own hits; none: the calling process's, without it
};

/// Returns what a stock program is loaded with that counts the hits of a family only. Errors: not_supported (without
/// kernel BTF; inside a pid namespace for processes other than the calling one, and for that before Linux 5.10).
[[nodiscard]] Result<usdt_family_constants> count_family_only(const Family& family);

/// Returns what a stock program is loaded with that does not count the hits of the tasks that help the calling process
/// (sys/separate_task.hpp). Errors: as above.
[[nodiscard]] Result<usdt_family_constants> leave_out_tasks();

/// Makes room for the marks of a family's descendants. Before the load. Errors: as set_max_entries().
[[nodiscard]] Result<void> size_fork_marks(BpfObject& object);

/// While it lives, what descendants fork is marked as such in the stock program's map.
class ForkMarks {
 public:
  /// After the load; `family` is the stock program's. The error tells why forks cannot be watched; descendants are then
  /// found for so many generations as the stock program's walk has (bpf/descends.h).
  [[nodiscard]] static Result<ForkMarks> start(const LoadedObject& object, const usdt_family_constants& family);
  /// Tracer::shielded(), whatever the sites are attached by.
  [[nodiscard]] std::uint64_t shielded() const;

 private:
  std::vector<sys::UniqueFd> links_;
  sys::UniqueFd shielded_;  ///< a map of one counter
};

}  // namespace usdt::event
