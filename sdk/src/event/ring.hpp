// SPDX-License-Identifier: BSD-2-Clause
// The ring of BPF programs, as tracers and consumers of records read it. Private to event/.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "usdt/result.hpp"

namespace usdt::event {

/// Reads one BPF ring buffer. Does not wait while there is work; waits in a way that costs the traced programs nothing.
/// Each record is handed over once: a callback that throws has had its record, and those behind it come next time.
class Ring {
 public:
  using OnRecord = std::function<void(std::span<const std::byte>)>;

  /// `asleep`, if the program has such a flag, is a word shared with it: it is set while this side sleeps, and the
  /// program wakes it only then. Without one, records must wake us themselves. The ring stays ours without `map_fd`.
  /// Records of more than `longest` bytes are handed over cut to that.
  [[nodiscard]] static Result<Ring> open(int map_fd, std::uint32_t* asleep, std::size_t longest = SIZE_MAX);
  /// Records of up to `longest` bytes from now on, if that is more. Not from a callback. Errors: io.
  [[nodiscard]] Result<void> expect(std::size_t longest);
  Ring(Ring&&) noexcept;
  Ring& operator=(Ring&&) noexcept;
  ~Ring();

  /// Hands over at most `limit` records that are there now. Errors: invalid_argument (called by its own callback).
  [[nodiscard]] Result<std::size_t> consume(const OnRecord& on_record, std::size_t limit = SIZE_MAX);
  /// Does what consume() does, after waiting up to `wait` for a record if there is none. 0 also when a signal came, or
  /// wake().
  [[nodiscard]] Result<std::size_t> poll(const OnRecord& on_record, std::chrono::milliseconds wait,
                                         std::size_t limit = SIZE_MAX);
  /// From any thread, or a signal handler: a poll() that waits returns, or the next one that would.
  void wake() const noexcept;

  /// A descriptor for event loops, the ring's own: readable as long as the ring holds records, and from a wake() to the
  /// next poll(), which answers it. From the first call on, the program is told to wake this side whenever the ring has
  /// been emptied. Errors: limit (descriptors).
  [[nodiscard]] Result<int> fd();

 private:
  class State;
  explicit Ring(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace usdt::event
