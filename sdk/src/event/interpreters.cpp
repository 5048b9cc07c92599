// SPDX-License-Identifier: BSD-2-Clause
#include "event/interpreters.hpp"

#include <bpf/bpf.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/try.hpp"
#include "event/thread_ends.hpp"
#include "interpreter/find.hpp"
#include "usdt/clock.hpp"

namespace usdt::event {
namespace {

constexpr std::uint64_t kFirstPause = 2'000'000;
constexpr std::uint64_t kLongestPause = 5'000'000'000;
/// Where looking takes longer than this, as it does at a process that has mapped thousands of files, there are so many
/// times as long until the next time.
constexpr std::uint64_t kLong = 50'000'000, kTimes = 4;
constexpr std::size_t kMostSeen = 1 << 16;
constexpr std::size_t kMostTold = 64;

/// Whether the process may have become one with another interpreter since it was looked at.
bool is_unknown(usdt_script_state state) { return state == USDT_SCRIPT_NONE || state == USDT_SCRIPT_OTHER_IMAGE; }

}  // namespace

Result<Interpreters> Interpreters::of(const LoadedObject& object) {
  Interpreters interpreters;
  interpreters.map_ = TRY(object.map_fd("usdt_interpreters"));
  return interpreters;
}

void Interpreters::see(const Event& event) {
  if (map_ < 0 || event.pid() == 0 || !is_unknown(event.script().state)) return;
  Seen& seen = seen_[event.pid()];
  if (event.timestamp() < seen.next || !budget_.has_time()) return;
  seen.pause = std::clamp(2 * seen.pause, kFirstPause, kLongestPause);
  seen.next = event.timestamp() + seen.pause;
  const std::uint64_t began = event_clock();
  look_at(static_cast<pid_t>(event.pid()));
  const std::uint64_t took = event_clock() - began;
  budget_.spend(took);
  if (took < kLong) return;
  if (const auto there = seen_.find(event.pid()); there != seen_.end())
    there->second.next = event.timestamp() + std::max(there->second.pause, kTimes * took);
}

void Interpreters::expect(pid_t pid) {
  if (map_ >= 0 && expected_.is_due() && look_at(pid)) expected_.end();
}

bool Interpreters::look_at(pid_t pid) {
  if (map_ < 0) return false;
  if (seen_.size() > kMostSeen) forget_ended();
  const interpreter::ProcessMemory memory(pid);
  interpreter::Found found = interpreter::find_interpreter(pid, memory);
  if (!found.is_known()) {
    if (!found.name.empty()) say_unknown(pid, found.name, found.why_not);
    return false;
  }
  const auto added = add_variable(pid, found);
  // Else it has just begun: its dynamic linker has not done its work yet.
  if (!added && added.error().kind == ErrorKind::not_supported) say_unknown(pid, found.name, added.error().message);
  if (!added) return false;
  put(static_cast<std::uint32_t>(pid), found.walk);
  return true;
}

Result<void> Interpreters::add_variable(pid_t pid, interpreter::Found& found) {
  if (found.ruby != nullptr) found.walk.stacked.variable = TRY(ruby_variable_.find(pid));
  return {};
}

void Interpreters::say_unknown(pid_t pid, const std::string& interpreter, std::string_view why) {
  if (told_.size() >= kMostTold || std::ranges::find(told_, interpreter) != told_.end()) return;
  told_.push_back(interpreter);
  unknown_.push_back(
      fmt::format("process {} runs {}: its stacks have no functions of scripts, since {}", pid, interpreter, why));
}

std::vector<std::string> Interpreters::take_unknown() { return std::exchange(unknown_, {}); }

void Interpreters::put(std::uint32_t pid, const usdt_interpreter& walk) {
  if (::bpf_map_update_elem(map_, &pid, &walk, BPF_ANY) == 0) return;
  forget_ended();
  ::bpf_map_update_elem(map_, &pid, &walk, BPF_ANY);  // without room it goes without
}

void Interpreters::forget_ended() {
  std::erase_if(seen_, [this](const auto& each) {
    if (ThreadEnds::exists(each.first)) return false;
    ::bpf_map_delete_elem(map_, &each.first);
    return true;
  });
}

}  // namespace usdt::event
