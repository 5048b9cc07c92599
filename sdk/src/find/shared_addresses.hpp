// SPDX-License-Identifier: BSD-2-Clause
// Functions that are one in a file: code that was folded, and addresses with several names. Private to find/.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "dwarf/debug_info.hpp"
#include "dwarf/function_info.hpp"
#include "elf/demangle.hpp"
#include "usdt/function.hpp"
#include "usdt/probe_file.hpp"
#include "usdt/result.hpp"
#include "usdt/stop.hpp"

namespace usdt::find {

/// Tells aliases of a function from functions whose code is equal, and keeps for a notice what is no alias.
class SharedAddresses {
 public:
  /// `demangler` outlives this.
  explicit SharedAddresses(elf::Demangler& demangler) : demangler_(demangler) {}

  /// Finds which names of `functions` are functions of their own, whose code was folded. Errors: stopped.
  [[nodiscard]] Result<void> find_folded(const dwarf::DebugInfo& debug, const std::vector<Function>& functions,
                                         const StopToken& stop);
  /// Keeps for a notice functions that are one in the file. Returns whether what debug information has there, `info`,
  /// is another one.
  bool note_folded(const Function& function, const dwarf::FunctionInfo& info);
  /// Keeps functions of one address without debug information: libraries give functions several names, which are
  /// aliases where the symbols have versions or look alike; what else shares an address may be either.
  void note_one_address(const Function& function);
  void warn(ProbeFile& file) const;

 private:
  /// Other symbols of the address whose names are other ones, too, to who wrote the source.
  [[nodiscard]] std::vector<std::string> other_names(const Function& function);
  /// The name as its source has it.
  [[nodiscard]] std::string written(const std::string& symbol);

  elf::Demangler& demangler_;
  std::set<std::string> defined_;    ///< names of functions that share their address, and are no aliases
  std::vector<std::string> folded_;  ///< what is to be said of them
  std::vector<std::string> one_address_;
};

}  // namespace usdt::find
