// SPDX-License-Identifier: BSD-2-Clause
// The kernel's own attach points: KernelSelection is the part of a Selection that names functions and raw tracepoints
// of the running kernel, and kernel_types() reads the types of the kernel from its BTF. select() makes a
// KernelSelection, describe_point() (plan.hpp) shows an entry to people. Threads: values that share a catalogue which
// nobody changes; several threads may read them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/pattern.hpp"
#include "usdt/type_graph.hpp"

namespace usdt::kernel {
class Catalogue;
struct CatalogueOf;
}  // namespace usdt::kernel

namespace usdt {
inline namespace v1 {

/// Describes a function of the running kernel, or a raw tracepoint.
struct KernelFunction {
  std::string_view name;       ///< owned by the catalogue
  std::string_view module;     ///< empty: vmlinux
  std::uint64_t address = 0;   ///< of its entry; 0 for tracepoints, and where kptr_restrict hides it
  std::uint32_t btf_id = 0;    ///< BTF_KIND_FUNC in its module's BTF; tracepoints: the typedef btf_trace_NAME; 0: none
  std::uint32_t proto_id = 0;  ///< BTF_KIND_FUNC_PROTO there; 0: none
  bool ftrace = false;         ///< in available_filter_functions, by this name or another one of its address
  bool alias = false;          ///< ftrace, but listed by another name: `__x64_sys_fork`, which is `__do_sys_fork`
  bool denied = false;         ///< on the kprobe blacklist, which perf kprobes heed and kprobe_multi does not
  bool duplicate = false;      ///< another function of its module has this name
};

/// Names a function that a pattern means and that will not be attached, and says why.
struct RefusedFunction {
  KernelKind kind;
  std::string name;
  std::string module;
  std::string reason;
};

/// Holds the points of the running kernel that patterns mean: the kernel's part of a Selection. They were looked up in
/// the kernel's own lists: its symbols, the functions that ftrace can trace, the kprobe blacklist, and the types (BTF),
/// of which no more were read than the patterns need. Copies share one catalogue, which owns all names.
class KernelSelection {
 public:
  /// Names a function or raw tracepoint to attach to. Each is there once for each kind, however many patterns mean it.
  struct Entry {
    KernelKind kind;
    const KernelFunction* function = nullptr;
    std::uint32_t pattern = 0;  ///< the first of the patterns that mean it
  };

  KernelSelection() = default;  ///< has no entries
  /// The points, in the order of the patterns; those of one pattern by module and name.
  std::vector<Entry> entries;
  /// Functions the patterns mean that no program of the kind can be attached to.
  std::vector<RefusedFunction> refused;
  /// Sentences about lists that the kernel did not let us read, and what to do about it.
  std::vector<std::string> missing;
  /// Patterns that nothing here matches, in words (SearchScope::skip_unknown).
  std::vector<std::string> unknown;

 private:
  friend kernel::CatalogueOf;
  std::shared_ptr<const kernel::Catalogue> catalogue_;
};

/// Reads the types of the running kernel, without those of its modules, from its BTF. Errors: not_supported (it has no
/// BTF), malformed.
[[nodiscard]] Result<std::shared_ptr<const TypeGraph>> kernel_types();

}  // namespace v1
}  // namespace usdt
