// SPDX-License-Identifier: BSD-2-Clause
// A JIT compiler's list of the code it made: /tmp/perf-PID.map, a text with lines "START SIZE NAME", numbers in hex
// (tools/perf/Documentation/jit-interface.txt of the kernel). Others may have written it. Private to stack/.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stack/code_history.hpp"
#include "sys/unique_fd.hpp"

namespace usdt::stack {

/// Lines that are read of a map: as many as 16 MiB of usual ones, and no more memory than they take.
constexpr std::size_t kMostPerfMapLines = 1 << 18;

/// Adds the lines of `text` from `at` on to `history`, as made during `made`: the last of several lines about an
/// address counts, since JITs write the code that they make, and not the code that they throw away for it. Lines of
/// another form are passed over, and so is a last one without its end, which may be half of one. Returns where the next
/// line begins; nothing: there are more than kMostPerfMapLines with the `lines` before, which are counted.
[[nodiscard]] std::optional<std::size_t> add_lines(std::string_view text, std::size_t at, Period made,
                                                   std::size_t& lines, CodeHistory& history);

/// The map of one process, read as it grows.
class PerfMap {
 public:
  /// Takes hold of where the file is or will be, while the process lives. `root`: its directory below /proc. `growing`:
  /// it is written as code is made, and not all at once when somebody asks for it.
  explicit PerfMap(const std::string& root, bool growing = true);

  struct Found {
    std::string_view name;
    std::uint64_t distance = 0;   ///< from the beginning of the code
    bool uncertain = false;       ///< other code may have been there instead
    std::string_view other = {};  ///< its name; empty: not known
    /// The time of day in seconds at which the map was written, if what it said then need not be so at that time.
    std::optional<std::int64_t> listed_at = {};
  };
  /// Returns what was at `address` during `when`. The answer is valid until the next call.
  [[nodiscard]] std::optional<Found> find(std::uint64_t address, Period when);
  /// Reads what was written until `time`, if that was not done yet.
  void look(std::uint64_t time);
  /// Why the file is not believed; empty: it is, or there is none.
  [[nodiscard]] std::string_view why_not() const noexcept { return why_not_; }
  [[nodiscard]] bool is_there() const noexcept { return size_ >= 0; }
  [[nodiscard]] bool is_growing() const noexcept { return growing_; }
  /// When it was written last, on event_clock().
  [[nodiscard]] std::uint64_t written_at() const noexcept { return written_at_; }

 private:
  [[nodiscard]] std::string_view judge(const struct stat& st, std::int64_t wall_offset) const noexcept;
  [[nodiscard]] bool has_grown(const struct stat& st);
  [[nodiscard]] bool read(const struct stat& seen, std::int64_t wall_offset);
  void forget();

  sys::UniqueFd directory_;  ///< the process's /tmp
  sys::UniqueFd file_;       ///< what was read, whatever becomes of its name
  std::string name_;
  bool growing_;
  std::uint64_t written_at_ = 0;
  uid_t owner_ = 0;             ///< of the process
  std::uint64_t began_at_ = 0;  ///< the process, on event_clock()
  std::string text_;
  std::size_t parsed_ = 0;  ///< bytes of the text
  std::size_t lines_ = 0;
  CodeHistory history_;
  std::uint64_t looked_at_ = 0;   ///< on event_clock(): what was written before is known
  std::uint64_t renewed_at_ = 0;  ///< when it was last read from its beginning
  std::uint64_t patience_ = 0;    ///< from then on it is not read so again, ns
  struct stat read_ {};           ///< of the file, when it was read
  off_t size_ = -1;               ///< of what was read; -1: nothing was
  std::string_view why_not_;
};

}  // namespace usdt::stack
