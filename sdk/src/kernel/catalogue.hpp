// SPDX-License-Identifier: BSD-2-Clause
// The functions and raw tracepoints of the running kernel, read from its own lists and kept together.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/module_types.hpp"
#include "kernel/read_functions.hpp"
#include "kernel/source_texts.hpp"
#include "kernel/sources.hpp"
#include "usdt/kernel.hpp"
#include "usdt/result.hpp"

namespace usdt::kernel {

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
  [[nodiscard]] std::span<const KernelFunction> functions() const noexcept { return functions_.list.functions; }
  /// Indexes of functions(): FunctionList::unsure.
  [[nodiscard]] std::span<const std::uint32_t> unsure() const noexcept { return functions_.list.unsure; }
  /// True if there are functions, whether or not a pattern means them.
  [[nodiscard]] bool lists_functions() const noexcept { return functions_.any; }
  /// True if the kernel's list of what ftrace can trace was read: only then does KernelFunction::ftrace say anything.
  [[nodiscard]] bool knows_ftrace() const noexcept { return functions_.knows_ftrace; }
  /// Raw tracepoints by module and name; without types where the kernel has no BTF.
  [[nodiscard]] std::span<const KernelFunction> tracepoints() const noexcept { return tracepoints_; }
  /// ModuleTypes::find(). Not thread-safe.
  [[nodiscard]] const btf::Types* btf(std::string_view module) const { return types_.find(module); }
  /// SourceTexts::missing().
  [[nodiscard]] std::span<const std::string> missing() const noexcept { return texts_.missing(); }
  /// SourceTexts::unusable().
  [[nodiscard]] Error unusable(std::string_view what) const { return texts_.unusable(what); }
  [[nodiscard]] const Sources& sources() const noexcept { return texts_.sources(); }

 private:
  explicit Catalogue(const Sources& sources) : texts_(sources), types_(sources.btf) {}

  SourceTexts texts_;
  ModuleTypes types_;
  ReadFunctions functions_;
  std::vector<KernelFunction> tracepoints_;
};

/// Gives this library alone access to a selection's catalogue.
struct CatalogueOf {
  /// Precondition: the selection is of select_from().
  [[nodiscard]] static const Catalogue& selection(const KernelSelection& of) noexcept { return *of.catalogue_; }
  static void set(KernelSelection& of, std::shared_ptr<const Catalogue> catalogue) noexcept {
    of.catalogue_ = std::move(catalogue);
  }
};

}  // namespace usdt::kernel
