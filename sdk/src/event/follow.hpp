// SPDX-License-Identifier: BSD-2-Clause
// Which processes descend from the calling one, as BPF programs see it.
#pragma once

#include <sys/types.h>

#include <vector>

#include "sys/unique_fd.hpp"
#include "usdt/bpf/constants.h"
#include "usdt/bpf_object.hpp"
#include "usdt/result.hpp"

namespace usdt::event {

/// Whose descendants count.
struct Family {
  std::vector<pid_t> pids;  ///< these processes', and their own hits; none: the calling process's, without it
};

/// Makes the stock program, which is loaded with `constants`, count the hits of a family only. Before the load.
/// not_supported: without kernel BTF; inside a pid namespace for processes other than the calling one, and for that
/// before Linux 5.10.
[[nodiscard]] Result<void> keep_family_only(BpfObject& object, usdt_stock_constants& constants, const Family& family);

/// While it lives, what descendants fork is marked as such in the stock program's map.
class ForkMarks {
 public:
  /// After the load; `constants` are the stock program's. The error tells why forks cannot be watched; descendants are
  /// then found for so many generations as the stock program's walk has (bpf/descends.h).
  [[nodiscard]] static Result<ForkMarks> start(const LoadedObject& object, const usdt_stock_constants& constants);

 private:
  std::vector<sys::UniqueFd> links_;
};

}  // namespace usdt::event
