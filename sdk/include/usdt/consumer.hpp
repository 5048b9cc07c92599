// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <stop_token>
#include <string_view>
#include <type_traits>

#include "usdt/bpf_object.hpp"
#include "usdt/result.hpp"

namespace usdt {

/// What a consumer took from its ring.
struct ConsumeStats {
  std::uint64_t records = 0;     ///< handed to the callback
  std::uint64_t wrong_size = 0;  ///< not exactly sizeof(T): counted, never guessed at
};

/// Reads ring buffer `map` of a loaded object on the calling thread until `stop` is requested (seen within 100 ms),
/// then drains it. Errors: not_found (no such map), io.
[[nodiscard]] Result<void> consume_records(const LoadedObject& object, std::string_view map,
                                           const std::stop_token& stop,
                                           const std::function<void(std::span<const std::byte>)>& on_record);

/// The same for records of one trivially copyable type, as the BPF program writes them.
///     struct query { std::uint64_t id; char sql[64]; };
///     auto stats = usdt::consume<query>(object, "events", stop, [](const query& q) { ... });
template <class T, class Callback>
requires std::is_trivially_copyable_v<T> && std::is_invocable_v<Callback, const T&>
[[nodiscard]] Result<ConsumeStats> consume(const LoadedObject& object, std::string_view map,
                                           const std::stop_token& stop, Callback callback) {
  ConsumeStats stats;
  auto read = consume_records(object, map, stop, [&](std::span<const std::byte> bytes) {
    // Ring records are padded to 8 bytes by the kernel only behind their length: the length itself is exact.
    if (bytes.size() != sizeof(T)) {
      ++stats.wrong_size;
      return;
    }
    T record;
    std::memcpy(&record, bytes.data(), sizeof(T));
    callback(static_cast<const T&>(record));
    ++stats.records;
  });
  if (!read) return fail(read.error());
  return stats;
}

}  // namespace usdt
