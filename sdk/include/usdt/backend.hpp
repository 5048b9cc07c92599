// SPDX-License-Identifier: BSD-2-Clause
// The kernel's mechanisms by which points are attached: backend_info() describes one, backend_by_name() finds it by a
// name that users give, choosable_backends() lists all that can be asked for. Backend::automatic is the best there is.
// Threads: pure functions; descriptions live as long as the program.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "usdt/feature.hpp"
#include "usdt/moment.hpp"
#include "usdt/result.hpp"

namespace usdt {
inline namespace v1 {

/// Names the mechanism that runs a program at hits.
enum class Backend : std::uint8_t {
  automatic,             ///< the best the kernel has
  uprobe_multi,          ///< one BPF link per file; kernel >= 6.6
  perf_uprobe,           ///< one perf event and BPF link per site; kernel >= 5.15
  perf_uretprobe,        ///< one perf event and BPF link per function, at its returns; kernel >= 5.15
  uprobe_return,         ///< one BPF link per file, at the returns of functions; kernel >= 6.6
  uprobe_session,        ///< one BPF link per file, both ends of a call in one program; kernel >= 6.13
  kprobe_session,        ///< one link for all functions, both ends of a call in one program; kernel >= 6.10
  kprobe_multi,          ///< one link for all functions, entries or returns; kernel >= 5.18, CONFIG_FPROBE
  perf_kprobe,           ///< one perf event and BPF link per function
  tracing_multi,         ///< fentry, fexit or fsession: one link for all functions; kernel >= 7.2, x86-64
  tracing,               ///< fentry, fexit or fsession: one program and link per function; kernel >= 5.5
  raw_tp,                ///< raw tracepoints, one link each; kernel >= 4.17
  tp_btf,                ///< BTF-typed raw tracepoints, one program and link each; kernel >= 5.5
  uprobe_family,         ///< perf events that forked processes inherit, of uprobes in tracefs; kernel >= 6.12
  uprobe_family_return,  ///< such inherited perf events, at the returns of functions; kernel >= 6.12
};

/// Tells what a backend attaches to.
enum class PointKind : std::uint8_t { file, kernel_function, tracepoint };

/// Tells why the kernel may reach a point and run no program (Link::missed_hits()).
enum class Misses : std::uint8_t {
  none,        ///< no such case is known
  in_program,  ///< a task was preempted or interrupted within the program, which blinds the processor for it
  in_kprobe,   ///< the processor was within a BPF program or map call
};

/// Tells what a program is tied to when it is loaded: each other module or point needs a program of its own.
enum class TiedTo : std::uint8_t { nothing, module, point };

/// Describes one backend, for people and tools to choose from.
struct BackendInfo {
  std::string_view name;   ///< "uprobe_multi"
  std::string_view since;  ///< the first kernel, and what else it needs: "Linux 5.18, CONFIG_FPROBE"
  PointKind points = PointKind::file;
  bool one_link = false;  ///< for all sites of a file or module; else one each
  Misses misses = Misses::none;
  TiedTo tied = TiedTo::nothing;
  /// The kernel's features that decide whether a plan takes this backend or another one for its points, and what a hit
  /// costs then.
  std::span<const Feature> decided_by = {};
};
/// Returns the description of a backend; that of `automatic` has only its name and the features that decide.
[[nodiscard]] const BackendInfo& backend_info(Backend backend) noexcept;

/// Returns BackendInfo::name.
[[nodiscard]] std::string_view to_string(Backend backend) noexcept;
/// Returns the backend called `name`. Errors: not_found, which lists all names.
[[nodiscard]] Result<Backend> backend_by_name(std::string_view name);
/// Lists the backends that can be asked for, of files and of the kernel. The backend at the returns of a file's
/// functions, or at both ends of them, follows from that of their entries.
[[nodiscard]] std::vector<Backend> choosable_backends();
/// Returns whether a backend attaches to kernel functions or raw tracepoints.
[[nodiscard]] bool is_kernel(Backend backend) noexcept;

}  // namespace v1
}  // namespace usdt
