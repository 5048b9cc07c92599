// SPDX-License-Identifier: BSD-2-Clause
// Searches files for the points of patterns, each file once. Private to follow/.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "proc/file_id.hpp"
#include "usdt/pattern.hpp"
#include "usdt/probe_file.hpp"
#include "usdt/stop.hpp"

namespace usdt::follow {

using proc::FileId;

/// Returns the ctime, ns: the kernel alone sets it, whenever a file is written to.
[[nodiscard]] std::int64_t change_time(const struct stat& st) noexcept;

/// Returns the id of a file that was scanned.
[[nodiscard]] std::optional<FileId> id_of(const ElfFile& file) noexcept;

class FileLooks {
 public:
  FileLooks(std::vector<PointPattern> patterns, StopToken stop);

  /// Marks a file as one that look() does not return.
  void know(FileId file) { files_[file] = std::nullopt; }
  /// Marks a file as one that look() does not return while its change_time() is `changed`.
  void know(FileId file, std::int64_t changed) { files_[file] = changed; }
  /// Makes look() scan a file again.
  void forget(FileId file) { files_.erase(file); }

  /// Returns the points of the patterns in `file`; nothing: it has none, or was looked at before and has not been
  /// written to since.
  [[nodiscard]] std::optional<ProbeFile> look(const TargetFile& file);
  /// Whether the last look was at a file that could not be read: it may be half written, and the next look scans it
  /// again.
  [[nodiscard]] bool was_unread() const noexcept { return unread_; }
  /// Whether the file was written to during the last look: the next look scans it again.
  [[nodiscard]] bool was_changing() const noexcept { return changing_; }
  [[nodiscard]] std::uint64_t scanned() const noexcept { return scanned_; }

 private:
  static constexpr std::size_t most_files = 1 << 16;
  [[nodiscard]] std::vector<PointPattern> patterns_for(const TargetFile& file) const;

  std::vector<PointPattern> patterns_;
  StopToken stop_;
  /// Files that were looked at. A time: there were no points in it, and it is scanned again once its ctime is another
  /// one.
  std::map<FileId, std::optional<std::int64_t>> files_;
  std::uint64_t scanned_ = 0;
  bool unread_ = false, changing_ = false;
};

}  // namespace usdt::follow
