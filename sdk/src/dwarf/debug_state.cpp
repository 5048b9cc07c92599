// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/debug_state.hpp"

#include <fmt/format.h>

#include <utility>

#include "dwarf/die.hpp"

namespace usdt::dwarf {
namespace {

/// Work that functions may make in common, besides that for each byte of the file: for the .dwo files of a program,
/// whose sizes are not known here.
constexpr std::uint64_t kReadsAtFirst = 1U << 25;

}  // namespace

DebugState::DebugState(DebugFiles opened, StopToken stop_token)
    : files(std::move(opened)),
      stop(std::move(stop_token)),
      shared_reads(kReadsAtFirst, files.bytes_of_dies() + files.sections.bytes_of_ranges()),
      names(files.bytes_of_dies(), stop),
      units(files, shared_reads),
      function_units(files) {}

std::optional<VirtAddr> DebugState::entry_of(Dwarf_Die die) { return dwarf::entry_of(die, code_names(), shared_reads); }

const CodeNames& DebugState::code_names() {
  if (!symbols_) symbols_.emplace(*files.opened, files.debug_file);
  return *symbols_;
}

Error DebugState::names_spent() const {
  return {ErrorKind::limit, fmt::format("{}: debug information whose names lead to the same units again and again: not "
                                        "read to the end",
                                        files.main.path.string())};
}

Result<void> DebugState::may_read_on() const {
  if (stop.stop_requested())
    return fail(ErrorKind::stopped,
                fmt::format("stopped while reading debug information of {}", files.main.path.string()));
  if (files.split.spent())
    return fail(ErrorKind::limit, fmt::format("{}: split debug information that comes to too much: not read to the end",
                                              files.main.path.string()));
  if (shared_reads.spent())
    return fail(ErrorKind::limit, fmt::format("{}: debug information whose functions lead to the same entries again "
                                              "and again: not read to the end",
                                              files.main.path.string()));
  return {};
}

}  // namespace usdt::dwarf
