// SPDX-License-Identifier: BSD-2-Clause
// What patterns mean in a file, looked for once. Private to follow/.
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

/// Set by the kernel alone, whenever a file is written to.
[[nodiscard]] std::int64_t change_time(const struct stat& st) noexcept;

/// Of a file that was scanned.
[[nodiscard]] std::optional<FileId> id_of(const ElfFile& file) noexcept;

class FileLooks {
 public:
  FileLooks(std::vector<PointPattern> patterns, StopToken stop);

  /// Not to be found.
  void know(FileId file) { files_[file] = std::nullopt; }
  /// Not to be found as it was at `changed`: change_time().
  void know(FileId file, std::int64_t changed) { files_[file] = changed; }
  /// To be found again.
  void forget(FileId file) { files_.erase(file); }

  /// What the patterns mean in `file`; nothing: none of it, or it was looked at before and has not been written to
  /// since.
  [[nodiscard]] std::optional<ProbeFile> look(const TargetFile& file);
  /// The last look was at a file that could not be read: it may be half written yet, and is looked at again when asked.
  [[nodiscard]] bool was_unread() const noexcept { return unread_; }
  /// It was written to meanwhile, and is looked at again when asked.
  [[nodiscard]] bool was_changing() const noexcept { return changing_; }
  [[nodiscard]] std::uint64_t scanned() const noexcept { return scanned_; }

 private:
  static constexpr std::size_t most_files = 1 << 16;
  [[nodiscard]] std::vector<PointPattern> patterns_for(const TargetFile& file) const;

  std::vector<PointPattern> patterns_;
  StopToken stop_;
  /// Those that were looked at; the time of one without points of ours, which counts again once it is another.
  std::map<FileId, std::optional<std::int64_t>> files_;
  std::uint64_t scanned_ = 0;
  bool unread_ = false, changing_ = false;
};

}  // namespace usdt::follow
