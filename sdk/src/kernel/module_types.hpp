// SPDX-License-Identifier: BSD-2-Clause
// The types of the kernel and of its modules.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "btf/types.hpp"
#include "usdt/result.hpp"

namespace usdt::kernel {

/// Types by module, each read when it is first asked for and kept. Not thread-safe.
class ModuleTypes {
 public:
  /// `directory`: where the kernel has a file of types for each module (Sources::btf).
  explicit ModuleTypes(std::string directory) : directory_(std::move(directory)) {}

  /// Reads the kernel's own. Errors: those of btf::Types::load(); find("") then is null.
  [[nodiscard]] Result<void> load();
  /// Returns the types of a module, of the kernel itself for "" and "vmlinux"; null where there are none.
  [[nodiscard]] const btf::Types* find(std::string_view module) const;
  /// Returns the name of a module that find() was asked for, as a view that lives as long as this does.
  [[nodiscard]] std::string_view kept_name(std::string_view module) const { return types_.find(module)->first; }
  /// Returns the names of all modules that have types, in order.
  [[nodiscard]] std::vector<std::string> modules() const;

 private:
  [[nodiscard]] Result<std::shared_ptr<const btf::Types>> read(std::string_view module) const;

  std::string directory_;
  mutable std::map<std::string, std::shared_ptr<const btf::Types>, std::less<>> types_;
};

}  // namespace usdt::kernel
