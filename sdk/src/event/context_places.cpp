// SPDX-License-Identifier: BSD-2-Clause
#include "event/context_places.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/bpf.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "base/try.hpp"
#include "event/thread_ends.hpp"
#include "proc/process_image.hpp"
#include "proc/process_maps.hpp"
#include "usdt/clock.hpp"

namespace usdt::event {
namespace {

using Clock = std::chrono::steady_clock;

/// A process that maps code without a pause, as just-in-time compilers do, is not looked at more often. Nor is one for
/// which that takes long, as it does where there are many mappings, looked at for more than a part of the time.
constexpr std::chrono::milliseconds kPause{5};
constexpr int kPart = 4;

/// Nothing: it is not known now, and may be later.
std::optional<__s32> state_of(const Result<usdt_thread_variable>& variable) {
  if (variable) return USDT_CONTEXT_SET;
  if (variable.error().kind == ErrorKind::not_found) return USDT_CONTEXT_NONE;
  return variable.error().kind == ErrorKind::not_supported ? std::optional(-EOPNOTSUPP) : std::nullopt;
}

const usdt_thread_attributes& attributes_of(const Event& event) {
  return *reinterpret_cast<const usdt_thread_attributes*>(event.record().data() + event.layout().attributes_at());
}

std::shared_ptr<const AttributeKeys> no_keys(std::string why) {
  return std::make_shared<const AttributeKeys>(AttributeKeys{{}, std::move(why)});
}

/// Whether each number has a name.
bool names_all(const AttributeKeys& keys, const usdt_thread_attributes& attributes) {
  const std::span bytes(attributes.bytes, std::min<std::size_t>(static_cast<std::size_t>(attributes.size),
                                                                std::size_t{USDT_CONTEXT_ATTRIBUTE_BYTES}));
  for (std::size_t at = 0; at + 2 <= bytes.size(); at += 2U + bytes[at + 1])
    if (bytes[at] >= keys.names.size()) return false;
  return true;
}

}  // namespace

ContextPlaces::ContextPlaces(sys::UniqueFd map, sys::UniqueFd wanted, bool attributes)
    : map_(std::move(map)),
      wanted_(std::move(wanted)),
      attributes_(attributes),
      finder_(USDT_CONTEXT_VARIABLE),
      unknown_(no_keys("it was not known yet what the process calls it")) {}

Result<void> ContextPlaces::size(BpfObject& object) {
  constexpr const char* found = "usdt_found_variables";
  TRY(object.set_max_entries(kMap, kMost));
  TRY(object.set_max_entries(kWanted, kMostWanted));
  TRY(object.set_max_entries(found, 0));
  return object.set_map_type(found, BPF_MAP_TYPE_TASK_STORAGE, BPF_F_NO_PREALLOC);
}

Result<void> ContextPlaces::check_kernel() {
  static const bool has_it = libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_task_storage_get, nullptr) != 0;
  if (has_it) return {};
  return fail(ErrorKind::not_supported,
              "traces and spans that threads work for need Linux 5.12, which keeps with each thread where it has them");
}

Result<ContextPlaces> ContextPlaces::open(const LoadedObject& object, bool attributes) {
  std::array<sys::UniqueFd, 2> own;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const int fd = TRY(object.map_fd(i == 0 ? kMap : kWanted));
    own[i] = sys::UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!own[i]) return fail(os_failure(ErrorKind::io, "the places of thread contexts", errno));
  }
  return ContextPlaces(std::move(own[0]), std::move(own[1]), attributes);
}

/// The latest come first where nobody is named: of those that wait since long ago there are seldom hits.
void ContextPlaces::look_at(const std::vector<pid_t>& named) {
  for (const pid_t pid : named) look(pid);
  if (named.empty()) {
    std::vector<pid_t> all = proc::numbers_in("/proc");
    std::ranges::sort(all, std::greater());
    const auto end = Clock::now() + std::chrono::seconds(1);
    for (auto pid = all.begin(); pid != all.end() && Clock::now() < end; ++pid) look(*pid);
  }
  budget_ = LookBudget();  // no event waits yet
}

void ContextPlaces::expect(pid_t pid) {
  if (expected_.is_due() && look(pid)) expected_.end();
}

/// What is not looked at now, or is asked about meanwhile, comes next time. Anybody may have many processes that take
/// long to look at, and events wait.
void ContextPlaces::look_at_wanted() {
  constexpr std::chrono::milliseconds most{20};
  const auto began = Clock::now();
  if (!budget_.has_time()) return;
  std::vector<__u32> wanted;
  __u32 pid = 0;
  const __u32* before = nullptr;
  while (wanted.size() < kMostWanted && bpf_map_get_next_key(wanted_.get(), before, &pid) == 0) {
    wanted.push_back(pid);
    before = &wanted.back();
  }
  for (const __u32 each : wanted) {
    if (!is_due(static_cast<pid_t>(each))) continue;
    static_cast<void>(bpf_map_delete_elem(wanted_.get(), &each));
    look(static_cast<pid_t>(each));
    if (Clock::now() - began > most) break;
  }
}

void ContextPlaces::look_again(const Event& event) {
  if (!event.layout().contexts) return;
  const auto* context =
      reinterpret_cast<const usdt_thread_context*>(event.record().data() + event.layout().context_at());
  const auto pid = static_cast<pid_t>(event.pid());
  const bool is_unknown = context->state == -ENOENT || context->state == -ENXIO;
  // One that is known by its parent is looked at as well: what it forks is known by it.
  if ((is_unknown || !seen_.contains(pid)) && is_due(pid)) look(pid);
}

bool ContextPlaces::is_due(pid_t pid) {
  const auto known = seen_.find(pid);
  return (known == seen_.end() || Clock::now() - known->second.at >= known->second.pause) && budget_.has_time();
}

const std::shared_ptr<const AttributeKeys>& ContextPlaces::keys_of(const Event& event) {
  const usdt_thread_attributes& attributes = attributes_of(event);
  const auto found = named_.find(attributes.place);
  if (attributes.size <= 0 || found == named_.end()) return unknown_;
  const auto is_read_since = [&] { return found->second.read_at >= event.timestamp(); };
  const auto is_valid = [&] { return found->second.has_read(attributes.published_at); };
  if (!is_read_since() && (!is_valid() || !names_all(*found->second.keys, attributes)) && is_due(found->second.pid)) {
    look(found->second.pid);
    if (!named_.contains(attributes.place)) return unknown_;  // its number is another process's
  }
  return is_valid() || !found->second.keys->why.empty() ? found->second.keys : unknown_;
}

/// The image is read before and after: what a program has that is executed meanwhile is not taken for this one's.
bool ContextPlaces::look(pid_t pid) {
  if (pid <= 0) return false;
  if (seen_.size() >= kMost) forget_ended();
  Seen& seen = seen_[pid];
  seen.at = Clock::now();
  const bool found = look(pid, seen);
  const Clock::duration took = Clock::now() - seen.at;
  budget_.spend(took);
  seen.pause = std::max<Clock::duration>(kPause, kPart * took);
  return found;
}

bool ContextPlaces::look(pid_t pid, Seen& seen) {
  const auto before = proc::image_of(pid);
  if (!before) return false;
  const auto variable = finder_.find(pid);
  const std::uint64_t now = event_clock();
  const bool asks_names = attributes_ && variable.has_value();
  auto names = asks_names ? proc::read_process_context(pid, page_of(seen, *before))
                          : Result<proc::PublishedContext>(fail(ErrorKind::not_found, ""));
  const auto after = proc::image_of(pid);
  const auto state = state_of(variable);
  if (!after || after->words != before->words || after->began != before->began || !state) return false;
  usdt_context_place place{};
  std::ranges::copy(before->words, std::begin(place.image));
  place.state = *state;
  place.code_pages = before->code_pages;
  if (variable) place.variable = *variable;
  place.pid = static_cast<__u32>(pid);
  place.looked_at = event_clock();
  if (asks_names) {
    Named& named = this->named(seen, pid, *before);
    named.take(std::move(names), now);
    place.number = seen.number;
    place.page = named.page.value;
  }
  const std::uint64_t key = usdt_context_key(place.pid, place.image);
  if (seen.key != key) static_cast<void>(bpf_map_delete_elem(map_.get(), &seen.key));
  seen.key = key;
  static_cast<void>(bpf_map_update_elem(map_.get(), &key, &place, BPF_ANY));
  return variable.has_value();
}

ProcessAddr ContextPlaces::page_of(const Seen& seen, const proc::ProcessImage& image) const {
  const auto known = named_.find(seen.number);
  return known != named_.end() && known->second.is_of(image) ? known->second.page : ProcessAddr(0);
}

ContextPlaces::Named& ContextPlaces::named(Seen& seen, pid_t pid, const proc::ProcessImage& image) {
  const auto known = named_.find(seen.number);
  if (known != named_.end() && known->second.is_of(image)) return known->second;
  named_.erase(seen.number);
  seen.number = ++last_number_;
  Named& made = named_[seen.number];
  made.pid = pid;
  made.image = image;
  return made;
}

bool ContextPlaces::Named::is_of(const proc::ProcessImage& other) const noexcept {
  return image.words == other.words && image.began == other.began;
}

bool ContextPlaces::Named::has_read(std::uint64_t published_at) const noexcept {
  return std::ranges::find(published, published_at) != published.end();
}

/// What could not be read leaves what was known before, which is valid for what was published then.
void ContextPlaces::Named::take(Result<proc::PublishedContext> read, std::uint64_t now) {
  if (!read && !keys->names.empty()) return;
  if (!read) {
    read_at = now;
    keys = no_keys(read.error().message);
    return;
  }
  page = read->page;
  read_at = now;
  if (published.size() >= kMostPublished) published.erase(published.begin());
  if (!has_read(read->published_at)) published.push_back(read->published_at);
  std::vector<std::string>& names = read->context.keys;
  const std::vector<std::string>& before = keys->names;
  was_other |= names.size() < before.size() || !std::equal(before.begin(), before.end(), names.begin());
  if (was_other)
    keys = no_keys("the process has changed what its attributes are called");
  else if (names.size() > before.size() || !keys->why.empty())
    keys = std::make_shared<const AttributeKeys>(AttributeKeys{std::move(names), {}});
}

void ContextPlaces::forget_ended() {
  std::erase_if(seen_, [&](const auto& each) {
    if (ThreadEnds::exists(static_cast<std::uint32_t>(each.first))) return false;
    static_cast<void>(bpf_map_delete_elem(map_.get(), &each.second.key));
    named_.erase(each.second.number);
    return true;
  });
}

}  // namespace usdt::event
