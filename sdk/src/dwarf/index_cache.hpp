// SPDX-License-Identifier: BSD-2-Clause
// Indexes of large debug files, kept for the next run below $XDG_CACHE_HOME, else below ~/.cache. Private to dwarf/.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dwarf/function_index.hpp"
#include "elf/file.hpp"

namespace usdt::dwarf {

/// The cached index of one debug file. A cache that others may write to is not used: the directory, and what it is in,
/// belong to the user who runs this; the indexed file and the one that has the code belong to that user or to root. An
/// index is of those very inodes, as they were: a build id is only part of the name, anybody can write any. If
/// something is amiss, nothing is loaded or kept. One thread at a time.
class IndexCache {
 public:
  IndexCache(const elf::File& code, const elf::File& debug, const std::string& build_id);

  [[nodiscard]] std::optional<FunctionIndex> load() const;
  /// Keeps it, if the files are still as they were. Only the newest are kept.
  void save(const FunctionIndex& index) const;

  /// Bytes of .debug_info from which on it is worth it: what takes longer than a tenth of a second.
  static constexpr std::uint64_t smallest = 32U << 20;

 private:
  [[nodiscard]] bool is_sound(const std::vector<std::uint64_t>& words) const;

  const elf::File& code_;
  const elf::File& debug_;
  std::string name_;
  std::array<std::uint64_t, 12> head_{};  ///< of the words that are kept: version, what they are of
};

}  // namespace usdt::dwarf
