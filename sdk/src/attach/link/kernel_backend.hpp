// SPDX-License-Identifier: BSD-2-Clause
// The backends of kernel functions: each takes functions and makes kernel links. Private to attach/link.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "link/backend.hpp"
#include "program/clone.hpp"

namespace usdt::backends {

/// Functions of one module, or tracepoints, as parallel arrays.
struct FunctionArrays {
  std::vector<std::string> names;        ///< perf_kprobe: "module:name"
  std::vector<std::uint64_t> addresses;  ///< 0: hidden, found by name
  std::vector<std::uint32_t> btf_ids;
  std::vector<std::uint64_t> cookies;

  [[nodiscard]] std::size_t size() const noexcept { return names.size(); }
};

/// The program, as far as attaching wants to know.
struct KernelProgram {
  int fd = -1;
  ProgramType type;
  bool returns = false;     ///< kprobes: at the return of the function
  bool has_cookies = true;  ///< this kernel has them for this kind
  /// Loads it again for one attach point (fentry), or with one cookie (FIXED); empty where one program does for all.
  std::function<Result<sys::UniqueFd>(std::uint32_t btf_id, std::uint64_t cookie)> clone = {};
};

/// One link for all functions, or a few: what the kernel refuses is split until each refused function stands alone.
[[nodiscard]] Result<FileLinks> attach_kprobe_multi(const KernelProgram& program, const FunctionArrays& functions);
[[nodiscard]] Result<FileLinks> attach_tracing_multi(const KernelProgram& program, const FunctionArrays& functions);
/// Makes a perf event and a link for each function.
[[nodiscard]] Result<FileLinks> attach_perf_kprobe(const KernelProgram& program, const FunctionArrays& functions);
/// One program and link each: fentry, fexit, fsession, tp_btf.
[[nodiscard]] Result<FileLinks> attach_tracing(const KernelProgram& program, const FunctionArrays& functions);
/// Makes a link for each tracepoint.
[[nodiscard]] Result<FileLinks> attach_raw_tp(const KernelProgram& program, const FunctionArrays& functions);

}  // namespace usdt::backends
