// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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
  bool ftrace = false;         ///< in available_filter_functions, by this name or another of the same address
  bool alias = false;          ///< ftrace, but listed by another name: `__x64_sys_fork`, which is `__do_sys_fork`
  bool denied = false;         ///< on the kprobe blacklist, which perf kprobes heed and kprobe_multi does not
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

/// What patterns mean in the running kernel. Copies share one catalogue, which owns all names.
class KernelSelection {
 public:
  /// A function or raw tracepoint to attach to. Each is there once for each kind, whatever the number of patterns.
  struct Entry {
    KernelKind kind;
    const KernelFunction* function = nullptr;
    std::uint32_t pattern = 0;  ///< the first of the patterns that mean it
  };

  KernelSelection() = default;  ///< nothing
  /// For select_kernel(): over the lists that it has read.
  explicit KernelSelection(std::shared_ptr<const kernel::Catalogue> catalogue) : catalogue_(std::move(catalogue)) {}

  /// In the order of the patterns; those of one pattern by module and name.
  std::vector<Entry> entries;
  /// Functions the patterns mean that no program of the kind can be attached to.
  std::vector<RefusedFunction> refused;
  /// What the kernel did not let us read, and what to do about it.
  std::vector<std::string> missing;
  /// Patterns that nothing here matches, in words (KernelSelectOptions::skip_unknown).
  std::vector<std::string> unknown;

  /// Those lists; for the planner.
  [[nodiscard]] const kernel::Catalogue& catalogue() const noexcept { return *catalogue_; }

 private:
  std::shared_ptr<const kernel::Catalogue> catalogue_;
};

/// What select_kernel() does besides.
struct KernelSelectOptions {
  /// Patterns that nothing matches are left out and named, as long as another one matches something.
  bool skip_unknown = false;
};

/// Looks the patterns up in the running kernel's own lists: its symbols, the functions that ftrace can trace, the
/// kprobe blacklist, and the types (BTF). Reads only the lists that the patterns need.
/// Errors: not_found (no function of that name, with names like it; a glob nothing matches), no_permission or
/// not_supported where the lists cannot be had, each with what to do. A function that exists but cannot be attached to
/// is no error but in `refused`.
[[nodiscard]] Result<KernelSelection> select_kernel(const std::vector<KernelPattern>& patterns,
                                                    const KernelSelectOptions& options = {});

}  // namespace usdt
