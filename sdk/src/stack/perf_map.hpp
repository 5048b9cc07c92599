// SPDX-License-Identifier: BSD-2-Clause
// A JIT compiler's list of the code it made: /tmp/perf-PID.map, a text with lines "START SIZE NAME", numbers in hex
// (tools/perf/Documentation/jit-interface.txt of the kernel). Others may have written it. Private to stack/.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sys/unique_fd.hpp"

namespace usdt::stack {

/// A range of addresses in which one line of the text is the last that has them.
struct PerfMapEntry {
  std::uint64_t start = 0;
  std::uint64_t last = 0;  ///< the last address of it
  std::uint64_t code = 0;  ///< where the code begins that the line is about
  std::uint32_t name = 0;  ///< where it begins in the text
  std::uint32_t length = 0;
};

/// The entries of a text, by address. The last of several lines about an address counts: JITs write the code that they
/// make, and not the code that they throw away for it. Lines of another form are passed over.
[[nodiscard]] std::vector<PerfMapEntry> parse_perf_map(std::string_view text);
/// The entry that has `address`; null: none has.
[[nodiscard]] const PerfMapEntry* find_entry(const std::vector<PerfMapEntry>& entries, std::uint64_t address) noexcept;

/// The map of one process, read as it grows.
class PerfMap {
 public:
  /// Takes hold of where the file is or will be, while the process lives. `root`: its directory below /proc.
  explicit PerfMap(const std::string& root);

  struct Found {
    std::string_view name;
    std::uint64_t distance = 0;
  };
  /// The answer is valid until the next call.
  [[nodiscard]] std::optional<Found> find(std::uint64_t address);
  /// Why the file is not believed; empty: it is, or there is none.
  [[nodiscard]] std::string_view why_not() const noexcept { return why_not_; }

 private:
  void read_again();
  [[nodiscard]] std::string_view judge(const struct stat& st) const noexcept;

  sys::UniqueFd directory_;  ///< the process's /tmp
  std::string name_;
  uid_t owner_ = 0;  ///< of the process
  std::string text_;
  std::vector<PerfMapEntry> entries_;
  std::int64_t read_at_ = 0;    ///< ns, event_clock()
  struct timespec written_ {};  ///< of what was read
  off_t size_ = -1;
  std::string_view why_not_;
};

}  // namespace usdt::stack
