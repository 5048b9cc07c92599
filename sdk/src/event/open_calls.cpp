// SPDX-License-Identifier: BSD-2-Clause
#include "event/open_calls.hpp"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "event/row_map.hpp"
#include "event/stock_program.hpp"
#include "usdt/bpf/event.h"
#include "usdt/bpf/filter.h"

namespace usdt::event {
namespace {

constexpr const char* kOpenCallsMap = "usdt_open_calls";
/// The kernel keeps room for all of them: with stacks in their records that has to end somewhere.
constexpr std::uint32_t kMostBytes = 64U << 20;
/// What a processor may set aside of an LRU map, where nobody else gets it (LOCAL_FREE_TARGET of
/// kernel/bpf/bpf_lru_list.c).
constexpr std::uint32_t kSetAside = 128;

/// Bytes of an entry: a record, and what the programs keep behind it.
std::uint32_t value_size(const AttachPlan& plan, const EventLayout& layout) {
  std::uint32_t size = layout.record_size();
  if (plan.spans)
    size += static_cast<std::uint32_t>(asks_for_owner(plan) ? sizeof(usdt_open_span) : offsetof(usdt_open_span, owner));
  // Behind the record of a call are its stacks (keep_stacks() of bpf/trace/stacks.h).
  if (plan.table && has_stacks(*plan.table)) size += 2 * sizeof(usdt_row_stack);
  return size;
}

std::uint32_t key_size(const AttachPlan& plan) {
  if (!plan.spans) return sizeof(usdt_call_key);
  return static_cast<std::uint32_t>(offsetof(usdt_row, key)) + plan.spans->key_bytes;
}

/// Those that were asked for, and of many what processors set aside beside them.
std::uint32_t entries_for(std::uint32_t wanted, std::uint32_t size) {
  constexpr std::uint32_t many = 1024;
  const auto processors = static_cast<std::uint32_t>(std::clamp(::sysconf(_SC_NPROCESSORS_CONF), 1L, 1024L));
  const std::uint32_t entries = std::max(wanted, 1U) + (wanted < many ? 0 : kSetAside * processors);
  return std::min(entries, std::max(kMostBytes / size, 1U));
}

/// Whether key number `n` of what pairs the ends of spans is that field, wherever they begin and end.
bool is_paired_by(const AttachPlan& plan, std::size_t n, HitField field) {
  for (std::uint32_t place = 0; place < plan.places(); ++place) {
    const auto& pair = plan.sites[Index<PlannedSite>(place)].pair;
    if (!pair) return false;
    const auto& parts = plan.filters[*pair].root().of;  // which hits count, and then the keys (Operator::row)
    if (n + 1 >= parts.size()) return false;
    const TypedExpression::Node* key = &parts[n + 1];
    while (key->op == Operator::part && !key->of.empty()) key = &key->of.front();
    if (key->op != Operator::field || static_cast<HitField>(key->bits) != field) return false;
  }
  return true;
}

bool is_paired_by(const AttachPlan& plan, HitField field) {
  for (std::size_t n = 0; n < USDT_PAIR_WORDS; ++n)
    if (is_paired_by(plan, n, field)) return true;
  return false;
}

}  // namespace

/// A program that a thread executes has no end of what the one before it began. The kernel may: at what executes it.
usdt_pair_life life_of_beginnings(const AttachPlan& plan) {
  if (plan.spans && !is_paired_by(plan, HitField::tid))
    return is_paired_by(plan, HitField::pid) ? USDT_PAIR_PROCESS : USDT_PAIR_FOREVER;
  const bool in_kernel =
      std::ranges::any_of(plan.groups, [](const AttachGroup& group) { return group.source != USDT_SOURCE_USER; });
  return in_kernel ? USDT_PAIR_THREAD : USDT_PAIR_IMAGE;
}

bool keeps_record(const AttachGroup& group) {
  return group.moment == Moment::both && !(group.session && group.source == USDT_SOURCE_SLOTS);
}

bool keeps_beginnings(const AttachPlan& plan, const TraceOptions& options) {
  return plan.spans || (!counts_beginnings(plan, options) && std::ranges::any_of(plan.groups, keeps_record));
}

Result<void> size_open_calls(BpfObject& object, const AttachPlan& plan, const EventLayout& layout,
                             const TraceOptions& options) {
  if (!keeps_beginnings(plan, options)) return {};
  const std::uint32_t size = value_size(plan, layout);
  if (auto set = object.set_max_entries(kOpenCallsMap, entries_for(options.max_open_calls, size)); !set) return set;
  if (auto set = object.set_key_size(kOpenCallsMap, key_size(plan)); !set) return set;
  if (auto set = object.set_value_size(kOpenCallsMap, size); !set) return set;
  return object.set_value_size("usdt_blank", size);
}

/// One of them, as the map had it.
struct OpenCalls::Entry {
  std::span<const std::byte> key, value;

  [[nodiscard]] usdt_event head() const { return read<usdt_event>(value, 0); }
  /// Of spans: what pairs their ends, which one it is of those that it pairs, and of the outermost of these how many
  /// there are; 0: it is not the outermost.
  [[nodiscard]] std::string_view pair() const {
    constexpr std::size_t at = offsetof(usdt_span_key, key);
    return {reinterpret_cast<const char*>(key.data()) + at, key.size() - at};
  }
  [[nodiscard]] std::uint64_t part() const { return read<std::uint64_t>(key, offsetof(usdt_span_key, part)); }
  [[nodiscard]] std::uint64_t open(std::uint32_t record_size) const {
    return read<std::uint64_t>(value, record_size + offsetof(usdt_open_span, open));
  }
  [[nodiscard]] bool is_of_goroutine() const {
    return read<std::uint64_t>(key, offsetof(usdt_call_key, goroutine)) != 0;
  }

 private:
  template <class T>
  static T read(std::span<const std::byte> from, std::size_t at) {
    T value;
    std::memcpy(&value, from.data() + at, sizeof(value));
    return value;
  }
};

/// What the map has while it is looked at. A record that is blank is being filled, or is of what was not sampled.
class OpenCalls::Copy {
 public:
  explicit Copy(const OpenCalls& of) : of_(of) {
    constexpr std::uint32_t batch = 512;  // buckets, which are not divided, have a few
    std::uint32_t token = 0;
    int error = 0;
    for (bool first = true; error == 0; first = false) {
      std::vector<std::byte> keys(std::size_t{batch} * of.key_size_), values(std::size_t{batch} * of.value_size_);
      __u32 count = batch;
      DECLARE_LIBBPF_OPTS(bpf_map_batch_opts, options);
      error = bpf_map_lookup_batch(of.map_.get(), first ? nullptr : &token, &token, keys.data(), values.data(), &count,
                                   &options);
      if (error != 0 && errno != ENOENT) break;  // ENOENT: these are the last ones
      keep(std::move(keys), std::move(values), count);
    }
    for (const Entry& entry : entries_)
      if (of.spans_ && entry.open(of.record_size_) > 0) outermost_[entry.pair()].emplace(entry.part(), entry);
  }

  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  /// Whether it is a span within others of which the outermost was given up: its end finds nothing any more.
  [[nodiscard]] bool is_orphan(const Entry& entry) const {
    if (!of_.spans_ || entry.open(of_.record_size_) > 0) return false;
    const auto known = outermost_.find(entry.pair());
    if (known == outermost_.end()) return true;
    auto around = known->second.upper_bound(entry.part());
    if (around == known->second.begin()) return true;
    const Entry& first = (--around)->second;
    return entry.part() - first.part() >= first.open(of_.record_size_) || entry.head().ts < first.head().ts;
  }

 private:
  void keep(std::vector<std::byte> keys, std::vector<std::byte> values, std::size_t count) {
    const std::span<const std::byte> all_keys = memory_.emplace_back(std::move(keys));
    const std::span<const std::byte> all_values = memory_.emplace_back(std::move(values));
    for (std::size_t n = 0; n < count; ++n) {
      const Entry entry{all_keys.subspan(n * of_.key_size_, of_.key_size_),
                        all_values.subspan(n * of_.value_size_, of_.value_size_)};
      if (entry.head().ts != 0) entries_.push_back(entry);
    }
  }

  const OpenCalls& of_;
  std::deque<std::vector<std::byte>> memory_;
  std::vector<Entry> entries_;
  std::map<std::string_view, std::map<std::uint64_t, Entry>> outermost_;
};

Result<OpenCalls> OpenCalls::open(const LoadedObject& object, const AttachPlan& plan, const EventLayout& layout,
                                  const TraceOptions& options) {
  OpenCalls open;
  if (!keeps_beginnings(plan, options)) return open;
  auto map = object.map_fd(kOpenCallsMap);
  if (!map) return fail(map.error());
  open.map_ = sys::UniqueFd(::fcntl(*map, F_DUPFD_CLOEXEC, 0));
  if (!open.map_) return fail(os_failure(ErrorKind::limit, "keep the map of what has not ended", errno));
  open.key_size_ = key_size(plan);
  open.value_size_ = (value_size(plan, layout) + 7) / 8 * 8;  // as the kernel hands them over
  open.record_size_ = layout.record_size();
  open.room_ = entries_for(options.max_open_calls, value_size(plan, layout));
  open.life_ = life_of_beginnings(plan);
  open.spans_ = plan.spans.has_value();
  return open;
}

bool OpenCalls::has_left(const Entry& entry, const ThreadEnds& ends) const {
  const usdt_event head = entry.head();
  if (life_ == USDT_PAIR_PROCESS || (!spans_ && entry.is_of_goroutine()))
    return ThreadEnds::process_ended_since(head.pid, head.ts);
  if (life_ == USDT_PAIR_THREAD) return ends.ended_since(head.tid, head.ts);
  return life_ == USDT_PAIR_IMAGE && ends.left_since(head.tid, head.ts);
}

/// Whether what the map has in its place is it still.
bool OpenCalls::is_unchanged(const Entry& entry) const {
  std::vector<std::byte> now(value_size_);
  usdt_event head{};
  if (bpf_map_lookup_elem(map_.get(), entry.key.data(), now.data()) != 0) return false;
  std::memcpy(&head, now.data(), sizeof(head));
  return head.ts == entry.head().ts;
}

std::size_t OpenCalls::look(const ThreadEnds& ends, const Visit& visit, const Visit& left) const {
  if (!any()) return 0;
  const Copy copy(*this);
  for (const Entry& entry : copy.entries()) {
    const std::span<const std::byte> record = entry.value.first(record_size_);
    // A look takes a while: what is an orphan in it may have ended meanwhile, and another one begun in its place.
    const bool gone = has_left(entry, ends) || (copy.is_orphan(entry) && is_unchanged(entry));
    if (!gone)
      visit(record);
    else if (bpf_map_delete_elem(map_.get(), entry.key.data()) == 0)
      left(record);
  }
  return copy.entries().size();
}

}  // namespace usdt::event
