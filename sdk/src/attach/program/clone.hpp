// SPDX-License-Identifier: BSD-2-Clause
// A loaded program once more, for another attach point: fentry programs are tied to their function when they are
// loaded. Private to attach/program.
#pragma once

#include <bpf/libbpf.h>

#include <cstdint>
#include <optional>
#include <string>

#include "sys/unique_fd.hpp"
#include "usdt/carrier.hpp"
#include "usdt/result.hpp"

namespace usdt::backends {

/// Says what a program is loaded as.
struct ProgramType {
  std::uint32_t type = 0;         ///< enum bpf_prog_type
  std::uint32_t attach_type = 0;  ///< enum bpf_attach_type
};
/// `files`: what automatic means for programs at files' sites.
[[nodiscard]] ProgramType program_type(const ProgramKind& kind, Backend files) noexcept;

struct CloneTarget {
  ProgramType type;
  std::uint32_t btf_id = 0;             ///< fentry and tp_btf: where it will be attached
  int btf_fd = 0;                       ///< the module's BTF; 0: the kernel's
  std::optional<std::uint64_t> cookie;  ///< USDT_CARRIER_FIXED: written into the instructions
};
/// Errors: the kernel's, as io or limit.
[[nodiscard]] Result<sys::UniqueFd> clone_program(const bpf_program* program, const std::string& license,
                                                  const CloneTarget& target);

/// The BTF of a loaded module (5.11). Errors: not_found, no_permission.
[[nodiscard]] Result<sys::UniqueFd> open_module_btf(const std::string& module);

}  // namespace usdt::backends
