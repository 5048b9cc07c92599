// SPDX-License-Identifier: BSD-2-Clause
// Remembers what was read while the values of one file's functions are located. Private to locate/.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "arch/returned.hpp"
#include "dwarf/budget.hpp"
#include "dwarf/debug_state.hpp"
#include "locate/entries.hpp"
#include "locate/frame.hpp"
#include "locate/passed_numbers.hpp"

namespace usdt::locate {

/// Location lists, which any number of variables may share.
class LocationLists {
 public:
  explicit LocationLists(const DebugFiles& files);

  /// The sections of the file that libdw has `dwarf` of: `main`, what dwz shares, or a .dwo file, which stay open as
  /// long as `main`.
  [[nodiscard]] const DebugSections& sections_of(Dwarf* dwarf);

  Budget entries;  ///< that may still be read

 private:
  const DebugFiles& files_;
  std::unordered_map<const void*, DebugSections> others_;  ///< but for those of `main`
};

/// The registers that functions are proven to leave their results in, by their code.
struct ProvenResults {
  Budget bytes;  ///< of code that may still be read, of each function once
  std::unordered_map<std::uint64_t, arch::ResultRegisters> known;  ///< by the address of a function
};

/// How functions were compiled, of which each unit is looked through once.
class UnitTraits {
 public:
  /// Answers as signature_told() does.
  [[nodiscard]] bool tells_signature(Dwarf_Die function);
  /// Whether a function has been compiled without optimisation; false where that is not known.
  [[nodiscard]] bool is_surely_unoptimised(Dwarf_Die function);

 private:
  ByUnit<bool> with_types_;
  ByUnit<bool> unoptimised_;
};

/// The rules for call frame addresses, opened when they are first asked for.
class FrameRules {
 public:
  explicit FrameRules(const DebugFiles& files) : files_(files) {}
  [[nodiscard]] const Frames& get();

 private:
  const DebugFiles& files_;
  DwarfFile code_;  ///< of a file with a separate debug file: its own sections
  std::optional<Frames> frames_;
};

/// The state of Signatures. All of it belongs to whoever holds the mutex of `shared`.
struct State {
  explicit State(std::shared_ptr<DebugState> shared_state);

  std::shared_ptr<DebugState> shared;
  LocationLists lists;
  Budget code_walks;  ///< bytes of code that copies of functions within it may make read
  ProvenResults results;
  UnitTraits traits;
  ByUnit<PassedNumbers> passed_numbers;

  [[nodiscard]] const Frames& frames() { return frames_.get(); }

 private:
  FrameRules frames_;
};

}  // namespace usdt::locate
