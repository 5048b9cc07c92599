// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <string_view>

#include "usdt/result.hpp"

namespace usdt {

/// How hits are delivered to the program.
enum class Backend : std::uint8_t {
  automatic,       ///< the best the kernel has
  uprobe_multi,    ///< one BPF link per file; kernel >= 6.6
  perf_uprobe,     ///< one perf event and BPF link per site; kernel >= 5.15
  kprobe_multi,    ///< one link for all functions, entries or returns; kernel >= 5.18, CONFIG_FPROBE
  kprobe_session,  ///< the same, both ends of a call in one program; kernel >= 6.10
  perf_kprobe,     ///< one perf event and BPF link per function
  tracing_multi,   ///< fentry, fexit or fsession: one link for all functions; kernel >= 7.2, x86-64
  tracing,         ///< the same, one program and link per function; kernel >= 5.5
  raw_tp,          ///< raw tracepoints, one link each; kernel >= 4.17
  tp_btf,          ///< BTF-typed raw tracepoints, one program and link each; kernel >= 5.5
};
[[nodiscard]] std::string_view to_string(Backend backend) noexcept;
/// The backend called `name`; not_found, naming them all.
[[nodiscard]] Result<Backend> backend_by_name(std::string_view name);
/// True for those of kernel functions and raw tracepoints.
[[nodiscard]] constexpr bool is_kernel(Backend backend) noexcept { return backend >= Backend::kprobe_multi; }

}  // namespace usdt
