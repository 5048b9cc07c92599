// SPDX-License-Identifier: BSD-2-Clause
#include "event/ring.hpp"

#include <bpf/libbpf.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>

namespace usdt::event {
namespace {

/// Rounds without a record before this side asks to be woken. Until then it looks again every millisecond: at a high
/// rate a wake-up for each event would cost the traced program more than the event itself.
constexpr unsigned idle_rounds_before_sleep = 16;
constexpr std::chrono::milliseconds busy_pause{1};

struct FreeRing {
  void operator()(ring_buffer* ring) const noexcept { ring_buffer__free(ring); }
};

void pause_for(std::chrono::milliseconds time) {
  const timespec nap{0, static_cast<long>(std::chrono::nanoseconds(time).count())};
  ::nanosleep(&nap, nullptr);
}

}  // namespace

struct Ring::State {
  static int on_sample(void* context, void* data, std::size_t size) {
    auto& self = *static_cast<State*>(context);
    (*self.on_record)({static_cast<const std::byte*>(data), size});
    // libbpf stops behind this record on a negative result.
    return ++self.taken < self.limit ? 0 : -ECANCELED;
  }

  void begin(const OnRecord& sink, std::size_t most) {
    on_record = &sink;
    taken = 0;
    limit = most;
  }

  std::unique_ptr<ring_buffer, FreeRing> ring;
  std::uint32_t* asleep = nullptr;
  unsigned idle_rounds = 0;
  // The call under way.
  const OnRecord* on_record = nullptr;
  std::size_t taken = 0;
  std::size_t limit = 0;
};

Ring::Ring(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Ring::Ring(Ring&&) noexcept = default;
Ring& Ring::operator=(Ring&&) noexcept = default;
Ring::~Ring() = default;

Result<Ring> Ring::open(int map_fd, std::uint32_t* asleep) {
  auto state = std::make_unique<State>();
  state->asleep = asleep;
  state->ring.reset(ring_buffer__new(map_fd, State::on_sample, state.get(), nullptr));
  if (!state->ring) return fail(os_failure(ErrorKind::io, "map the event ring", errno));
  return Ring(std::move(state));
}

std::size_t Ring::consume(const OnRecord& on_record, std::size_t limit) {
  if (limit == 0) return 0;
  state_->begin(on_record, limit);
  ring_buffer__consume(state_->ring.get());
  if (state_->taken > 0) state_->idle_rounds = 0;
  return state_->taken;
}

Result<std::size_t> Ring::poll(const OnRecord& on_record, std::chrono::milliseconds wait, std::size_t limit) {
  State& self = *state_;
  if (const std::size_t n = consume(on_record, limit)) return n;
  if (wait.count() <= 0) return 0;
  if (self.asleep && self.idle_rounds < idle_rounds_before_sleep) {
    ++self.idle_rounds;
    pause_for(std::min(wait, busy_pause));
    return consume(on_record, limit);
  }
  if (self.asleep) std::atomic_ref(*self.asleep).store(1);
  // A record may have come before the program saw the flag; epoll looks at the ring's fill as well.
  self.begin(on_record, limit);
  const int woken = ring_buffer__poll(self.ring.get(), static_cast<int>(wait.count()));
  if (self.asleep) std::atomic_ref(*self.asleep).store(0);
  if (woken < 0 && woken != -EINTR && woken != -ECANCELED)
    return fail(os_failure(ErrorKind::io, "wait for events", -woken));
  if (self.taken > 0) self.idle_rounds = 0;
  return self.taken;
}

}  // namespace usdt::event
