// SPDX-License-Identifier: BSD-2-Clause
// How each backend is attached; what else is known of it is in backend/table.hpp. Private to attach/link.
#pragma once

#include "link/backend.hpp"
#include "link/kernel_backend.hpp"

namespace usdt::backends {

/// One of the two, by what the backend attaches to.
struct AttachRow {
  Backend backend = Backend::automatic;
  Result<FileLinks> (*to_file)(const AttachTarget& target, const SiteArrays& sites) = nullptr;
  Result<FileLinks> (*to_kernel)(const KernelProgram& program, const FunctionArrays& functions) = nullptr;
};
/// `backend` must not be automatic, which has no row.
[[nodiscard]] const AttachRow& attach_row(Backend backend) noexcept;

}  // namespace usdt::backends
