// SPDX-License-Identifier: BSD-2-Clause
#include "event/context_places.hpp"

#include <bpf/bpf.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "base/try.hpp"
#include "event/thread_ends.hpp"
#include "proc/process_image.hpp"
#include "proc/process_maps.hpp"
#include "usdt/clock.hpp"

namespace usdt::event {
namespace {

using Clock = std::chrono::steady_clock;

/// A process that maps code without a pause, as just-in-time compilers do, is not looked at more often.
constexpr std::chrono::milliseconds kPause{5};

/// Nothing: it is not known now, and may be later.
std::optional<__s32> state_of(const Result<usdt_thread_variable>& variable) {
  if (variable) return USDT_CONTEXT_SET;
  if (variable.error().kind == ErrorKind::not_found) return USDT_CONTEXT_NONE;
  return variable.error().kind == ErrorKind::not_supported ? std::optional(-EOPNOTSUPP) : std::nullopt;
}

}  // namespace

Result<void> ContextPlaces::size(BpfObject& object) { return object.set_max_entries(kMap, kMost); }

Result<ContextPlaces> ContextPlaces::open(const LoadedObject& object) {
  const int fd = TRY(object.map_fd(kMap));
  sys::UniqueFd own(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own) return fail(os_failure(ErrorKind::io, "the places of thread contexts", errno));
  return ContextPlaces(std::move(own));
}

/// The latest come first where nobody is named: of those that wait since long ago there are seldom hits.
void ContextPlaces::look_at(const std::vector<pid_t>& named) {
  for (const pid_t pid : named) look(pid);
  if (!named.empty()) return;
  const auto end = Clock::now() + std::chrono::seconds(1);
  std::vector<pid_t> all = proc::numbers_in("/proc");
  std::ranges::sort(all, std::greater());
  for (const pid_t pid : all) {
    if (Clock::now() > end) return;
    look(pid);
  }
}

void ContextPlaces::expect(pid_t pid) {
  if (expected_.is_due() && look(pid)) expected_.end();
}

void ContextPlaces::look_again(const Event& event) {
  if (!event.layout().contexts) return;
  const auto* context =
      reinterpret_cast<const usdt_thread_context*>(event.record().data() + event.layout().context_at());
  const auto pid = static_cast<pid_t>(event.pid());
  const auto known = seen_.find(pid);
  // One that is known by its parent is looked at as well: what it forks is known by it.
  if (known == seen_.end() || (context->state == -ENOENT && Clock::now() - known->second.at >= kPause)) look(pid);
}

/// The image is read before and after: what a program has that is executed meanwhile is not taken for this one's.
bool ContextPlaces::look(pid_t pid) {
  if (pid <= 0) return false;
  if (seen_.size() >= kMost) forget_ended();
  Seen& seen = seen_[pid];
  seen.at = Clock::now();
  const auto before = proc::image_of(pid);
  if (!before) return false;
  const auto variable = finder_.find(pid);
  const auto after = proc::image_of(pid);
  const auto state = state_of(variable);
  if (!after || after->words != before->words || !state) return false;
  usdt_context_place place{};
  std::ranges::copy(before->words, std::begin(place.image));
  place.state = *state;
  place.code_pages = before->code_pages;
  if (variable) place.variable = *variable;
  place.pid = static_cast<__u32>(pid);
  place.looked_at = event_clock();
  const std::uint64_t key = usdt_context_key(place.pid, place.image);
  if (seen.key != key) static_cast<void>(bpf_map_delete_elem(map_.get(), &seen.key));
  seen.key = key;
  static_cast<void>(bpf_map_update_elem(map_.get(), &key, &place, BPF_ANY));
  return variable.has_value();
}

void ContextPlaces::forget_ended() {
  std::erase_if(seen_, [&](const auto& each) {
    if (ThreadEnds::exists(static_cast<std::uint32_t>(each.first))) return false;
    static_cast<void>(bpf_map_delete_elem(map_.get(), &each.second.key));
    return true;
  });
}

}  // namespace usdt::event
