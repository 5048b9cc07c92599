// SPDX-License-Identifier: BSD-2-Clause
// The debug information of a program, open. What it says of functions is read by functions.hpp and running.hpp, of
// lines by lines.hpp, of inlined copies by copies.hpp, and of values by signature.hpp; libdw stays behind these
// headers.
//
// Sources: DWARF 4 and 5; what GCC and Clang make of them was looked up in objects they wrote (tests/dwarf,
// tests/locate).
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "usdt/elf_file.hpp"
#include "usdt/result.hpp"
#include "usdt/stop.hpp"
#include "usdt/type_graph.hpp"

namespace usdt::dwarf {

struct DebugState;

/// The debug information of one file. Move-only. What takes one may be called from several threads; one works at a
/// time.
class DebugInfo {
 public:
  /// Opens that of `file` itself, else of its separate debug file of the same build (elf::find_debug_file); with what
  /// these refer to: the file that dwz shares between packages (.gnu_debugaltlink), split units of a package beside one
  /// of them (FILE.dwp), else of .dwo files. `file` may be gone afterwards. Errors: not_found (there is none; the
  /// message names the package that would have it), not_supported (a file that is not linked), malformed, limit,
  /// stopped.
  [[nodiscard]] static Result<DebugInfo> open(const ElfFile& file, const StopToken& stop = {});

  DebugInfo(DebugInfo&&) noexcept;
  DebugInfo& operator=(DebugInfo&&) noexcept;
  ~DebugInfo();

  /// The file it was read from: the given one, or its separate debug file.
  [[nodiscard]] const std::filesystem::path& path() const noexcept;

  /// Returns which split units (.dwo, .dwp) are not there that what was asked for up to here would have been in. Empty:
  /// nothing is missing.
  [[nodiscard]] std::string missing() const;

  /// Returns the graph that the types of signatures belong to; may outlive this.
  [[nodiscard]] std::shared_ptr<const TypeGraph> types() const;

  /// The state that the readers of debug information share (debug_state.hpp).
  [[nodiscard]] const std::shared_ptr<DebugState>& state() const noexcept { return state_; }

 private:
  explicit DebugInfo(std::shared_ptr<DebugState> state) noexcept;
  std::shared_ptr<DebugState> state_;
};

}  // namespace usdt::dwarf
