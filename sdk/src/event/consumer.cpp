// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/consumer.hpp"

#include <utility>

#include "base/try.hpp"
#include "event/ring.hpp"

namespace usdt {
inline namespace v1 {

Result<void> consume_records(const LoadedObject& object, std::string_view map, const StopToken& stop,
                             const OnRecord& on_record) {
  auto fd = TRY(object.map_fd(map));
  auto ring = event::Ring::open(fd, nullptr);
  if (!ring) return fail(ring.error());
  const std::stop_callback wake(stop, [&ring] { ring->wake(); });
  while (!stop.stop_requested()) {
    TRY(ring->poll(on_record, std::chrono::hours(1)));
  }
  TRY(ring->consume(on_record));
  return {};
}

struct RingReader::Impl {
  event::Ring ring;
  int fd;
};

RingReader::RingReader(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
RingReader::RingReader(RingReader&&) noexcept = default;
RingReader& RingReader::operator=(RingReader&&) noexcept = default;
RingReader::~RingReader() = default;

Result<RingReader> RingReader::open(int map_fd) {
  auto ring = TRY(event::Ring::open(map_fd, nullptr));
  auto fd = TRY(ring.fd());
  return RingReader(std::make_unique<Impl>(Impl{std::move(ring), fd}));
}

Result<RingReader> RingReader::open(const LoadedObject& object, std::string_view map) {
  auto fd = TRY(object.map_fd(map));
  return open(fd);
}

int RingReader::fd() const noexcept { return impl_->fd; }

Result<std::size_t> RingReader::read(const OnRecord& on_record, std::size_t limit) {
  return impl_->ring.poll(on_record, std::chrono::milliseconds(0), limit);
}

void RingReader::wake() const noexcept { impl_->ring.wake(); }

}  // namespace v1
}  // namespace usdt
