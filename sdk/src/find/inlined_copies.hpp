// SPDX-License-Identifier: BSD-2-Clause
// Whether each call of an inlined copy comes by its first instruction, and nothing else does. Private to find/.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dwarf/copies.hpp"
#include "dwarf/debug_info.hpp"
#include "elf/code_ways.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/probe_file.hpp"
#include "usdt/result.hpp"
#include "usdt/stop.hpp"

namespace usdt::find {

/// Looks at the ways through functions to copies that were inlined into them, and keeps what is out of the ordinary.
class InlinedCopies {
 public:
  /// All of them outlive this.
  InlinedCopies(const ElfFile& elf, const dwarf::DebugInfo& debug, const StopToken& stop)
      : elf_(elf), debug_(debug), stop_(stop) {}

  /// Returns whether debug information has a place within an instruction, or that of other places of this function: it
  /// is of other code, as a copy of the function that the linker left out had.
  bool is_of_other_code(const dwarf::Instance& instance);
  /// Looks at the ways to each inlined copy.
  void look_at(const dwarf::FunctionInfo& info);
  /// Looks at a part that was split off and inlined again where nothing else of the function is: calls may have left
  /// nothing but that.
  void look_at_part(const dwarf::FunctionInfo& info, const dwarf::Instance& part);
  /// Returns where all ways to a copy come by, some of which come to it behind its beginning; nothing: they do not.
  [[nodiscard]] std::optional<VirtAddr> meeting_of(const dwarf::Instance& instance) const;
  /// Copies whose hits may not be their calls.
  void warn(ProbeFile& file) const;

 private:
  /// The ways through the code of a function, whose instructions are told apart once.
  const Result<elf::CodeWays>& ways_through(const dwarf::InstanceCode& code);

  const ElfFile& elf_;
  const dwarf::DebugInfo& debug_;
  const StopToken& stop_;
  std::map<VirtAddr, Result<elf::CodeWays>> of_callers_;  ///< by where they begin
  std::set<VirtAddr> other_code_;                         ///< functions whose debug information is of other code
  std::map<dwarf::DieId, VirtAddr> meet_;
  std::set<std::string> missed_;  ///< functions whose copies are told of
  std::set<std::string> rounds_;
  std::uint64_t steps_ = std::uint64_t{1} << 27;  ///< that may still be looked at: some seconds
};

/// Says which inlined copies of `functions` are not all there is of them.
void warn_of_repeated(const dwarf::DebugInfo& debug, const std::vector<dwarf::FunctionInfo>& functions,
                      ProbeFile& file);
/// Says which coroutines go on in functions where nothing is known to make them.
void warn_of_coroutines(const std::vector<dwarf::FunctionInfo>& functions, ProbeFile& file);

}  // namespace usdt::find
