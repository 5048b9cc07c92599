// SPDX-License-Identifier: BSD-2-Clause
#include "event/context_places.hpp"

#include <bpf/bpf.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <iterator>
#include <utility>

#include "base/try.hpp"
#include "event/thread_ends.hpp"
#include "proc/process_image.hpp"
#include "proc/process_maps.hpp"

namespace usdt::event {
namespace {

using Clock = std::chrono::steady_clock;

/// A process that maps code without a pause, as just-in-time compilers do, is not looked at more often.
constexpr std::chrono::milliseconds kPause{5};

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
  if (context->state != -ENOENT) return;
  const auto pid = static_cast<pid_t>(event.pid());
  const auto known = seen_.find(pid);
  if (known == seen_.end() || Clock::now() - known->second.at >= kPause) look(pid);
}

/// The image is read before and after: what a program has that is executed meanwhile is not taken for this one's.
bool ContextPlaces::look(pid_t pid) {
  if (pid <= 0) return false;
  if (seen_.size() >= kMost / 2) forget_ended();
  Seen& seen = seen_[pid];
  seen.at = Clock::now();
  const auto before = proc::image_of(pid);
  if (!before) return false;
  const auto variable = finder_.find(pid);
  const auto after = proc::image_of(pid);
  const bool is_known = variable || variable.error().kind == ErrorKind::not_found;
  if (!after || after->words != before->words || !is_known) return false;
  usdt_context_place place{};
  std::ranges::copy(before->words, std::begin(place.image));
  place.has = variable ? 1 : 0;
  place.code_pages = before->code_pages;
  if (variable) place.variable = *variable;
  place.pid = static_cast<__u32>(pid);
  put(place, seen.keys[0]);
  place.pid = 0;
  put(place, seen.keys[1]);
  return place.has != 0;
}

void ContextPlaces::put(const usdt_context_place& place, std::uint64_t& key) {
  key = usdt_context_key(place.pid, place.image);
  static_cast<void>(bpf_map_update_elem(map_.get(), &key, &place, BPF_ANY));
}

void ContextPlaces::forget_ended() {
  std::erase_if(seen_, [&](const auto& each) {
    if (ThreadEnds::exists(static_cast<std::uint32_t>(each.first))) return false;
    for (const std::uint64_t& key : each.second.keys) static_cast<void>(bpf_map_delete_elem(map_.get(), &key));
    return true;
  });
}

}  // namespace usdt::event
