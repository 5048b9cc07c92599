// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/result.hpp"

namespace usdt {

/// When a program runs at a kernel function.
enum class KernelMoment : std::uint8_t {
  entry,       ///< before its first instruction
  exit,        ///< when it returns: the return value; its arguments too, where the kernel kept them (trampolines)
  call,        ///< both in one event: arguments, return value, duration
  tracepoint,  ///< a raw tracepoint: no function, but a place in the kernel with typed arguments
};

/// By which of the kernel's mechanisms.
enum class KernelFamily : std::uint8_t {
  any,         ///< the cheapest that can do it here
  kprobe,      ///< kprobe_multi, its session, or perf kprobes: arguments from registers
  trampoline,  ///< fentry, fexit, fsession, or their multi forms: arguments from the trampoline's slots
  raw_tp,      ///< raw tracepoint programs
  tp_btf,      ///< BTF-typed raw tracepoint programs
};

/// The prefixes of names: "kprobe" is {kprobe, entry}, "kretprobe" {kprobe, exit}, "ksession" {kprobe, call},
/// "fentry", "fexit" and "fsession" the same of trampolines, "kfunc", "kretfunc" and "kcall" of any;
/// "raw_tp" and "tp_btf".
struct KernelKind {
  KernelFamily family = KernelFamily::any;
  KernelMoment moment = KernelMoment::entry;
  friend bool operator==(const KernelKind&, const KernelKind&) = default;
};
/// The prefix, without ':'.
[[nodiscard]] std::string_view to_string(KernelKind kind) noexcept;

/// Which kernel functions or raw tracepoints are meant: `PREFIX:NAME` or `PREFIX:MODULE:NAME`, globs in both.
struct KernelPattern {
  KernelKind kind;
  std::string module;  ///< empty: the kernel and all modules; "vmlinux": the kernel alone
  std::string name;

  /// True if `text` starts with one of the prefixes (bpftrace's other names for them count: "k", "kr",
  /// "rawtracepoint", "rt").
  [[nodiscard]] static bool is_kernel(std::string_view text) noexcept;
  /// Errors: syntax with the column.
  [[nodiscard]] static Result<KernelPattern> parse(std::string_view text);
  /// "fentry:vfs_*", parseable again.
  [[nodiscard]] std::string str() const;
};

/// A function of the running kernel, or a raw tracepoint.
struct KernelFunction {
  std::string_view name;       ///< owned by the catalogue
  std::string_view module;     ///< empty: vmlinux
  std::uint64_t address = 0;   ///< of its entry; 0 for tracepoints, and where kptr_restrict hides it
  std::uint32_t btf_id = 0;    ///< BTF_KIND_FUNC in its module's BTF; tracepoints: the typedef btf_trace_NAME; 0: none
  std::uint32_t proto_id = 0;  ///< BTF_KIND_FUNC_PROTO there; 0: none
  bool ftrace = false;         ///< in available_filter_functions
  bool denied = false;         ///< on the kprobe blacklist
  bool duplicate = false;      ///< another function of its module has this name
};

/// A function a pattern means that will not be attached, and why.
struct RefusedFunction {
  KernelKind kind;
  std::string name;
  std::string module;
  std::string reason;
};

namespace kernel {
class Catalogue;
}

/// What patterns mean in the running kernel.
struct KernelEntry {
  KernelKind kind;
  const KernelFunction* function = nullptr;  ///< owned by the selection's catalogue
};
struct KernelSelection {
  std::shared_ptr<const kernel::Catalogue> catalogue;
  std::vector<KernelEntry> entries;
  std::vector<RefusedFunction> refused;
};

}  // namespace usdt
