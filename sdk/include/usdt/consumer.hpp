// SPDX-License-Identifier: BSD-2-Clause
// Records that BPF programs of your own write into a ring buffer: consume() reads one type of record until it is asked
// to stop, RingReader serves an event loop, record_as() checks the size of a record.
//     struct query { std::uint64_t id; char sql[64]; };
//     auto stats = usdt::consume<query>(object, "events", stop, [](const query& q) { ... });
// Threads: one at a time reads a ring; only RingReader::wake() is for other threads. Records are valid in the callback.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "usdt/bpf_object.hpp"
#include "usdt/result.hpp"
#include "usdt/stop.hpp"

namespace usdt {
inline namespace v1 {

/// Takes the bytes of one record, which are valid until it returns.
using OnRecord = std::function<void(std::span<const std::byte>)>;

/// Returns a copy of a record as the type that the BPF program writes; nothing: it has not exactly that size.
template <class T>
requires std::is_trivially_copyable_v<T>
[[nodiscard]] std::optional<T> record_as(std::span<const std::byte> record) noexcept {
  // Ring records are padded to 8 bytes by the kernel only behind their length: the length itself is exact.
  if (record.size() != sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, record.data(), sizeof(T));
  return value;
}

/// Reads a ring buffer (BPF_MAP_TYPE_RINGBUF) of a BPF program of your own, without ever waiting: an event loop does
/// that, on fd().
///     auto ring = usdt::RingReader::open(object, "events");
///     epoll_ctl(loop, EPOLL_CTL_ADD, ring->fd(), ...);
///     ring->read([](std::span<const std::byte> record) { if (auto q = usdt::record_as<query>(record)) ... });
/// A ring has one reader: records go to whoever takes them first. One thread at a time; only wake() is for others.
class RingReader {
 public:
  /// Opens ring `map` of a loaded object. Errors: not_found (no such map), invalid_argument (no ring buffer), limit
  /// (descriptors), io.
  [[nodiscard]] static Result<RingReader> open(const LoadedObject& object, std::string_view map);
  /// Opens the ring behind any descriptor, of a pinned map for example. The reader keeps the ring; `map_fd` stays
  /// yours. Errors: as above, without not_found.
  [[nodiscard]] static Result<RingReader> open(int map_fd);
  RingReader(RingReader&&) noexcept;
  RingReader& operator=(RingReader&&) noexcept;
  ~RingReader();

  /// Returns a descriptor for epoll, libuv, asio and their like. It belongs to the reader: do not read from it or close
  /// it. It is readable as long as read() has something to hand over, and from a wake() to the next read(), which
  /// answers it. While a program is writing the next record it is readable, too, though read() hands over nothing yet.
  /// A program that submits with BPF_RB_NO_WAKEUP leaves it as it was.
  [[nodiscard]] int fd() const noexcept;

  /// Hands over what is in the ring, at most `limit` records; the rest stays there. Returns how many those were. An
  /// exception of `on_record` comes out of here: its record counts as handed over, and those behind it come with the
  /// next call. Errors: invalid_argument (called by its own callback).
  [[nodiscard]] Result<std::size_t> read(const OnRecord& on_record, std::size_t limit = SIZE_MAX);

  /// Makes fd() readable until the next read(). May be called by any thread and by signal handlers.
  void wake() const noexcept;

 private:
  struct Impl;
  explicit RingReader(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

/// Counts the records that a consumer took from its ring.
struct ConsumeStats {
  std::uint64_t records = 0;     ///< handed to the callback
  std::uint64_t wrong_size = 0;  ///< not exactly sizeof(T): counted, never guessed at
};

/// Reads ring buffer `map` of a loaded object on the calling thread until `stop` is requested, which ends a wait at
/// once, then drains it. Errors: not_found (no such map), invalid_argument (no ring buffer), io.
[[nodiscard]] Result<void> consume_records(const LoadedObject& object, std::string_view map, const StopToken& stop,
                                           const OnRecord& on_record);

/// Reads records of one trivially copyable type, as the BPF program writes them, as consume_records() does.
///     struct query { std::uint64_t id; char sql[64]; };
///     auto stats = usdt::consume<query>(object, "events", stop, [](const query& q) { ... });
template <class T, class Callback>
requires std::is_trivially_copyable_v<T> && std::is_invocable_v<Callback, const T&>
[[nodiscard]] Result<ConsumeStats> consume(const LoadedObject& object, std::string_view map, const StopToken& stop,
                                           Callback callback) {
  ConsumeStats stats;
  auto read = consume_records(object, map, stop, [&](std::span<const std::byte> bytes) {
    const std::optional<T> record = record_as<T>(bytes);
    if (!record) {
      ++stats.wrong_size;
      return;
    }
    callback(*record);
    ++stats.records;
  });
  if (!read) return fail(read.error());
  return stats;
}

}  // namespace v1
}  // namespace usdt
