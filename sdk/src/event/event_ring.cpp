// SPDX-License-Identifier: BSD-2-Clause
#include "event/event_ring.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include "sys/syscalls.hpp"
#include "sys/thread.hpp"
#include "sys/uapi.hpp"

namespace usdt {
namespace {

/// -1 where the kernel refuses: older than 5.8, not permitted, or, before 5.11, more than RLIMIT_MEMLOCK, which libbpf
/// raises for the ring that is made instead.
sys::UniqueFd create(std::uint32_t bytes) {
  constexpr std::string_view name = "usdt_events";  // of the stock programs' map
  sys::MapCreate of;
  of.map_type = sys::kBpfMapTypeRingbuf;
  of.key_size = 0;
  of.max_entries = bytes;
  static_assert(name.size() < sizeof(of.map_name));
  std::memcpy(of.map_name, name.data(), name.size());
  return sys::UniqueFd(sys::syscalls().bpf(sys::kBpfMapCreateCmd, &of, sizeof(of)));
}

}  // namespace

std::uint32_t event::ring_size(std::uint32_t wanted) {
  const auto page = static_cast<std::uint32_t>(::sysconf(_SC_PAGESIZE));
  return std::bit_ceil(std::clamp(wanted, page, 1u << 31));
}

inline namespace v1 {

struct EventRing::Impl {
  explicit Impl(std::uint32_t size) : bytes(size) {
    // Without a thread there is no ring ahead.
    if (auto thread = sys::start_thread("that makes a ring", [this] { map = create(bytes); }))
      maker = std::move(*thread);
  }

  ~Impl() {
    if (maker.joinable()) maker.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::uint32_t bytes;
  sys::UniqueFd map;
  std::thread maker;
};

EventRing::EventRing(std::uint32_t bytes) : impl_(std::make_unique<Impl>(event::ring_size(bytes))) {}
EventRing::~EventRing() = default;

}  // namespace v1

sys::UniqueFd event::RingTaker::take(EventRing& ring, std::uint32_t bytes) {
  EventRing::Impl& made = *ring.impl_;
  if (made.bytes != bytes) return {};
  if (made.maker.joinable()) made.maker.join();
  return std::exchange(made.map, {});
}

}  // namespace usdt
