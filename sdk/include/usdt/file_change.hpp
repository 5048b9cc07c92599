// SPDX-License-Identifier: BSD-2-Clause
// Changes of traced files while they are attached: Link::changes() lists them, FileChangeKind tells what happened.
// A file that is written to is detached at once, before the kernel writes breakpoints into its new code.
// Threads: plain values. FileChange::file is an index into AttachPlan::files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "usdt/index.hpp"

namespace usdt {
inline namespace v1 {

/// Tells what happened to a file of a plan while it was attached.
enum class FileChangeKind : std::uint8_t {
  /// It was written to in place, or opened for writing, or its times were set. The kernel puts breakpoints at the old
  /// places of whatever the file holds now, which kills programs that start from then on: its sites are detached.
  written,
  /// Its path names another file now (`mv new old`, a package upgrade). Processes that have the old one mapped are
  /// traced as before; those that start from then on have another file to be attached (Follower).
  replaced,
  /// The last name of the file is gone; processes that have it mapped are traced as before.
  removed,
};

/// Returns "written", "replaced" or "removed".
[[nodiscard]] std::string_view to_string(FileChangeKind kind) noexcept;

struct PlannedFile;
/// One change of one file of a plan.
struct FileChange {
  Index<PlannedFile> file;
  FileChangeKind kind = FileChangeKind::written;
  std::size_t let_go = 0;  ///< sites that were detached because of it
};

}  // namespace v1
}  // namespace usdt
