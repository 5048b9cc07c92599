// SPDX-License-Identifier: BSD-2-Clause
// Destructors and constructors of C++, of which compilers make several functions. Private to find/.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "dwarf/debug_info.hpp"
#include "dwarf/function_info.hpp"
#include "elf/code_ways.hpp"
#include "find/file_code.hpp"
#include "usdt/function.hpp"
#include "usdt/probe_file.hpp"

namespace usdt::find {

/// Tells which function of several counts for one destruction or construction.
class Variants {
 public:
  /// `code` outlives this.
  explicit Variants(FileCode& code) : code_(code) {}

  /// Finds the symbols of a destructor or constructor, if it has several, whose code only leads to another one's.
  void find(const std::vector<Function>& functions);
  /// Whether the function at an address calls another one of its name.
  [[nodiscard]] bool is_outer(VirtAddr address) const { return outer_.contains(address); }
  /// Whether an inlined copy of one only calls another one.
  [[nodiscard]] bool begins_with_another(const Function& function, const dwarf::DebugInfo& debug,
                                         const dwarf::Instance& copy) const;
  /// Leaves out variants that have a copy of another one inlined, which is a point of its own.
  void leave_out_around_copies(std::vector<FunctionPoint>& points) const;

 private:
  FileCode& code_;
  std::map<std::string, std::set<VirtAddr>, std::less<>> by_name_;
  std::set<VirtAddr> outer_;
  std::vector<elf::CodeRange> inner_;  ///< of which there are several, and that may have a copy of another one
};

}  // namespace usdt::find
