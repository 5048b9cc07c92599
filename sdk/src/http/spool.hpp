// SPDX-License-Identifier: BSD-2-Clause
// Batches that wait on disk for a server that is slow or away: a file each in a directory, in the order in which they
// came, bounded together. They are still there when the process that put them has ended, however it did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "sys/unique_fd.hpp"
#include "usdt/result.hpp"

namespace usdt::http {

/// A batch as it is kept.
struct SpooledBatch {
  std::string path = {};      ///< behind that of the URL
  std::string type = {};      ///< media type
  std::uint64_t events = 0;   ///< that are in it
  std::string deflated = {};  ///< the body, as a file of gzip
};

/// Keeps batches in a directory. One thread at a time.
class Spool {
 public:
  /// Makes the directory, for its owner alone, where it is not there, and finds what was left in it. Files that are no
  /// batches stay as they are. `most_bytes`: that all batches together take from the disk. Errors: io, no_permission;
  /// limit (another process uses the directory).
  [[nodiscard]] static Result<Spool> open(std::string directory, std::uint64_t most_bytes);

  [[nodiscard]] bool is_empty() const noexcept { return files_.empty(); }
  /// Whether another batch of an ordinary size has a place.
  [[nodiscard]] bool has_room() const noexcept;
  [[nodiscard]] std::uint64_t batches() const noexcept { return files_.size(); }
  /// Bytes that they take from the disk.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }

  /// Adds a batch, which is in its file when this returns. It outlives the process, but the disk may not have it yet if
  /// the power fails. Errors: limit (there is no room), io.
  [[nodiscard]] Result<void> put(const SpooledBatch& batch);
  /// Returns the oldest batch. Errors: not_found (there is none), malformed (its file was damaged), io.
  [[nodiscard]] Result<SpooledBatch> front() const;
  /// Removes the oldest batch, if there is one.
  void pop();

 private:
  struct File {
    std::uint64_t number;
    std::uint64_t bytes;
    std::uint64_t events;
  };

  Spool(std::string directory, std::uint64_t most_bytes) : directory_(std::move(directory)), most_bytes_(most_bytes) {}
  [[nodiscard]] Result<void> find_files();

  std::string directory_;
  std::uint64_t most_bytes_;
  sys::UniqueFd fd_;  ///< of the directory, locked
  std::deque<File> files_ = {};
  std::uint64_t bytes_ = 0, events_ = 0, next_ = 0;
};

}  // namespace usdt::http
