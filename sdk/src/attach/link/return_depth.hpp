// SPDX-License-Identifier: BSD-2-Clause
// Calls whose return the kernel's return probes miss: it remembers 64 of a thread. Private to attach/link.
#pragma once

#include <cstdint>
#include <optional>

#include "link/backend.hpp"
#include "sys/unique_fd.hpp"

namespace usdt::backends {

/// Adds to `links`, which are return probes at `sites`, what counts the calls that begin while the kernel remembers as
/// many as it can. Without BTF of the kernel, or where it takes no more programs, they are not counted.
void count_deep_calls(FileLinks& links, const AttachTarget& target, const SiteArrays& sites);

/// How many there were by now; nothing: they are not counted.
[[nodiscard]] std::optional<std::uint64_t> deep_calls(const sys::UniqueFd& counter);

}  // namespace usdt::backends
