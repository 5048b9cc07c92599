// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/consumer.hpp"

#include "event/ring.hpp"

namespace usdt {

Result<void> consume_records(const LoadedObject& object, std::string_view map, const std::stop_token& stop,
                             const std::function<void(std::span<const std::byte>)>& on_record) {
  auto fd = object.map_fd(map);
  if (!fd) return fail(fd.error());
  auto ring = event::Ring::open(*fd, nullptr);
  if (!ring) return fail(ring.error());
  while (!stop.stop_requested()) {
    auto taken = ring->poll(on_record, std::chrono::milliseconds(100));
    if (!taken) return fail(taken.error());
  }
  auto rest = ring->consume(on_record);
  if (!rest) return fail(rest.error());
  return {};
}

}  // namespace usdt
