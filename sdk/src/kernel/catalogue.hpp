// SPDX-License-Identifier: BSD-2-Clause
// The functions and raw tracepoints of the running kernel, put together from the kernel's own lists.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "btf/types.hpp"
#include "kernel/symbol_lists.hpp"
#include "usdt/kernel.hpp"
#include "usdt/result.hpp"

namespace usdt::kernel {

/// Where the lists are; tests have their own.
struct Sources {
  std::string kallsyms = "/proc/kallsyms";
  /// Where tracefs may be mounted, the second by way of debugfs.
  std::vector<std::string> tracefs = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
  std::string blacklist = "/sys/kernel/debug/kprobes/blacklist";
  std::string btf = "/sys/kernel/btf";

  friend bool operator==(const Sources&, const Sources&) = default;
};

struct Match {
  std::vector<const KernelFunction*> functions;  ///< by module and name
  std::vector<RefusedFunction> refused;
};

/// Each list may be missing: what could not be read is in missing(), and what it would have told stays unknown. Its
/// functions and names live as long as it does.
class Catalogue {
 public:
  /// Reads and keeps what `patterns` need; without patterns, everything. Errors: no_permission or not_supported where
  /// nothing of what is needed can be had, with what to do.
  [[nodiscard]] static Result<std::shared_ptr<const Catalogue>> load(const Sources& sources = {},
                                                                     std::span<const KernelPattern> patterns = {});
  Catalogue(const Catalogue&) = delete;
  Catalogue& operator=(const Catalogue&) = delete;

  /// By module, name and address; a name that several functions have is there once for each of them.
  [[nodiscard]] std::span<const KernelFunction> functions() const noexcept { return functions_; }
  /// Raw tracepoints by module and name; without types where the kernel has no BTF.
  [[nodiscard]] std::span<const KernelFunction> tracepoints() const noexcept { return tracepoints_; }
  /// The types of a module, of the kernel itself for "" and "vmlinux"; null where there are none. Not thread-safe.
  [[nodiscard]] const btf::Types* btf(std::string_view module) const;
  /// What could not be read, in words: "/sys/kernel/tracing/...: Permission denied: run as root".
  [[nodiscard]] std::span<const std::string> missing() const noexcept { return missing_; }
  /// True if the kernel's list of what ftrace can trace was read: only then does KernelFunction::ftrace say anything.
  [[nodiscard]] bool knows_ftrace() const noexcept { return knows_ftrace_; }

  /// What a pattern means. For a glob: of functions those that ftrace can trace, as in every other tool, one name for
  /// each address; those of them that cannot be attached to, or only by name, are `refused`. A plain name: every
  /// function of that name. Errors: not_found, with names like it; no_permission or not_supported if the list it needs
  /// is missing.
  [[nodiscard]] Result<Match> match(const KernelPattern& pattern) const;

  /// Empty: a program of this kind can be attached; else why not, in plain words. `signature_refusal`: why a trampoline
  /// cannot pass this function's arguments on, if so.
  [[nodiscard]] std::string why_not(const KernelFunction& function, KernelKind kind,
                                    std::string_view signature_refusal = {}) const;

 private:
  explicit Catalogue(const Sources& sources) : sources_(sources) {}

  void load_functions(std::span<const KernelPattern> patterns);
  /// True if the kernel could be asked about each function that `patterns` name, and answered: the lists are not read.
  [[nodiscard]] bool ask_for_functions(std::span<const KernelPattern> patterns);
  /// Of the two long lists what `patterns` mean, if the kernel can be asked for that; each must begin with a letter.
  [[nodiscard]] std::optional<AskedSymbols> ask_for_globs(std::span<const KernelPattern> patterns,
                                                          ModuleNames& modules);
  void load_tracepoints(std::span<const KernelPattern> patterns);
  [[nodiscard]] Symbols read_symbols(ModuleNames& modules);
  [[nodiscard]] std::vector<Named> read_ftrace(Result<Text>&& with_addresses, ModuleNames& modules);
  /// `sections`: what is on it by section.
  void read_blacklist(std::vector<AddressRange>&& sections);
  [[nodiscard]] bool is_denied(const KernelFunction& function) const;
  /// Gives `functions`, which are of one module, the numbers of their types.
  void name_types(std::span<KernelFunction> functions);
  void add_tracepoints(std::string_view module);
  [[nodiscard]] std::vector<std::string> modules_with_btf() const;
  [[nodiscard]] Result<std::shared_ptr<const btf::Types>> read_types(std::string_view module) const;
  std::string_view keep(Text&& text);
  /// The text of a file, owned by the catalogue; nothing, and a line in missing(), if it cannot be read.
  std::optional<std::string_view> keep(const std::string& path, std::string_view advice);
  /// The same of a file in tracefs, wherever that is mounted.
  std::optional<std::string_view> keep_tracefs(std::string_view name);
  [[nodiscard]] Result<Text> read_tracefs(std::string_view name) const;
  void miss(const Error& error, std::string_view advice);
  [[nodiscard]] Error unusable(std::string_view what) const;
  [[nodiscard]] Error nothing_found(const KernelPattern& pattern) const;
  void judge(const KernelPattern& pattern, std::span<const KernelFunction* const> meant, Match& out) const;
  void refuse_unsure(const KernelPattern& pattern, Match& out) const;
  static void refuse_not_in_globs(const KernelPattern& pattern, std::vector<const KernelFunction*>& meant, Match& out);

  Sources sources_;
  std::vector<Text> texts_;  ///< what the names are views of
  std::vector<KernelFunction> functions_;
  std::vector<std::uint32_t> unsure_;  ///< FunctionList::unsure
  std::vector<KernelFunction> tracepoints_;
  std::vector<std::string> missing_;
  Blacklist blacklist_;
  bool lists_functions_ = false;  ///< there are some, whether or not a pattern means them
  bool knows_ftrace_ = false;
  bool no_permission_ = false;  ///< some list could not be read for lack of privilege
  mutable std::map<std::string, std::shared_ptr<const btf::Types>, std::less<>> types_;
};

/// What only this library sees of a selection.
struct CatalogueOf {
  /// Precondition: the selection is of select_from().
  [[nodiscard]] static const Catalogue& selection(const KernelSelection& of) noexcept { return *of.catalogue_; }
  static void set(KernelSelection& of, std::shared_ptr<const Catalogue> catalogue) noexcept {
    of.catalogue_ = std::move(catalogue);
  }
};

[[nodiscard]] inline bool is_tracepoint(const KernelPattern& pattern) noexcept { return is_tracepoint(pattern.kind); }

/// True if a name means itself: it can be looked up.
[[nodiscard]] inline bool is_plain(std::string_view name) noexcept { return name.find_first_of("*?[\\") == name.npos; }

/// True for functions that are traced only if they are named: of each call of each other function they would be part,
/// or the kernel is not ready for programs there.
[[nodiscard]] bool not_in_globs(std::string_view name) noexcept;

/// True if only a perf kprobe reaches the function, since ftrace cannot trace it (or is not known to).
[[nodiscard]] inline bool needs_perf_kprobe(const KernelFunction& function) noexcept { return !function.ftrace; }

/// Functions of one module in a list sorted by module.
[[nodiscard]] std::vector<std::span<const KernelFunction>> by_module(std::span<const KernelFunction> all);

/// True if `pattern` means functions of the module: an empty pattern means all, "vmlinux" the kernel itself.
[[nodiscard]] bool module_matches(const std::string& pattern, std::string_view module) noexcept;

/// Up to three names that `name` may be a misspelling of, the nearest first.
[[nodiscard]] std::vector<std::string_view> near_names(std::string_view name, std::span<const KernelFunction> all);

}  // namespace usdt::kernel
