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
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/try.hpp"
#include "event/row_map.hpp"
#include "event/stock_program.hpp"
#include "expr/kept_texts.hpp"
#include "usdt/bpf/event.h"
#include "usdt/bpf/filter.h"
#include "usdt/features.hpp"

namespace usdt::event {
namespace {

constexpr const char* kOpenCallsMap = "usdt_open_calls";
/// Bytes that the map may take: stacks make its records large.
constexpr std::uint32_t kMostBytes = 64U << 20;
/// The same where a service makes the map, which counts it at what it may grow to, and bounds what a user gets within
/// an hour.
constexpr std::uint32_t kMostLentBytes = 4U << 20;
/// As many as there is room for where nobody says how many: of a map that the kernel makes whole at once, and of one
/// that grows (only its buckets, 16 bytes each, are made at once).
constexpr std::uint32_t kMostWhole = 8192;
constexpr std::uint32_t kMostGrown = 131'072;
/// Entries that a processor may set aside in an LRU map, where nobody else gets them (LOCAL_FREE_TARGET of
/// kernel/bpf/bpf_lru_list.c).
constexpr std::uint32_t kSetAside = 128;

/// Bytes of an entry: a record, and what the programs keep behind it.
std::uint32_t value_size(const AttachPlan& plan, const EventLayout& layout, const TraceOptions& options) {
  std::uint32_t size = layout.record_size();
  if (plan.spans)
    size += static_cast<std::uint32_t>(asks_for_owner(plan) ? sizeof(usdt_open_span) : offsetof(usdt_open_span, owner));
  // Behind the record of a call are its stacks (keep_stacks() of bpf/trace/stacks.h).
  if (plan.table && has_stacks(*plan.table)) size += 2 * sizeof(usdt_row_stack);
  // Looks at kept texts stay within the entry, whatever somebody writes there: usdt-broker insists on that.
  const auto has_texts = [](const TypedExpression& filter) { return !filter.kept_texts().empty(); };
  if (options.broker && std::ranges::any_of(plan.filters, has_texts))
    size += static_cast<std::uint32_t>(expr::kFarthestLook);
  return size;
}

std::uint32_t key_size(const AttachPlan& plan) {
  if (!plan.spans) return sizeof(usdt_call_key);
  return static_cast<std::uint32_t>(offsetof(usdt_row, key)) + plan.spans->key_bytes;
}

/// Returns how many entries to make: those that were asked for, and if they are many, also what processors set aside.
std::uint32_t with_set_aside(std::uint32_t wanted) {
  constexpr std::uint32_t many = 1024;
  const auto processors = static_cast<std::uint32_t>(std::clamp(::sysconf(_SC_NPROCESSORS_CONF), 1L, 1024L));
  return wanted + (wanted < many ? 0 : kSetAside * processors);
}

/// A map that grows allocates when something begins, of memory that the kernel keeps at hand for that. Where kernel
/// functions are traced that may be what is traced, and their calls end sooner or later.
bool may_grow(const AttachPlan& plan) {
  return std::ranges::all_of(plan.groups, [](const AttachGroup& group) { return group.source == USDT_SOURCE_USER; }) &&
         probe_feature(Feature::growing_hash).answer == Answer::yes;
}

struct Room {
  std::uint32_t entries;
  bool grows;
};

Room room_for(const AttachPlan& plan, const TraceOptions& options, std::uint32_t size) {
  const std::uint32_t wanted = options.max_open_calls;
  const std::uint32_t most = options.broker && wanted == 0 ? kMostLentBytes : kMostBytes;
  const bool grows = wanted == 0 && may_grow(plan);
  const std::uint32_t entries = grows ? kMostGrown : with_set_aside(wanted == 0 ? kMostWhole : wanted);
  return {std::min(entries, std::max(most / size, 1U)), grows};
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

bool may_end_elsewhere(const AttachPlan& plan) { return plan.spans && !is_paired_by(plan, HitField::tid); }

/// A program that a thread executes has no end of what the one before it began. The kernel may: at what executes it.
usdt_pair_life life_of_beginnings(const AttachPlan& plan) {
  if (may_end_elsewhere(plan)) return is_paired_by(plan, HitField::pid) ? USDT_PAIR_PROCESS : USDT_PAIR_FOREVER;
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
  const std::uint32_t size = value_size(plan, layout, options);
  const Room room = room_for(plan, options, size);
  if (room.grows) {
    TRY(object.set_map_type(kOpenCallsMap, BPF_MAP_TYPE_HASH, BPF_F_NO_PREALLOC));
  }
  TRY(object.set_max_entries(kOpenCallsMap, room.entries));
  TRY(object.set_key_size(kOpenCallsMap, key_size(plan)));
  TRY(object.set_value_size(kOpenCallsMap, size));
  return object.set_value_size("usdt_blank", size);
}

/// One of them, as the map had it. `record`: where it is asked for.
struct OpenCalls::Entry {
  std::span<const std::byte> key, record;
  usdt_event head;
  std::uint64_t open;  ///< of spans, see usdt_open_span; 0: it is not the outermost of those that its key pairs

  /// The bytes that pair the ends of a span. Spans with equal ones differ by part().
  [[nodiscard]] std::string_view pair() const {
    constexpr std::size_t at = offsetof(usdt_span_key, key);
    return {reinterpret_cast<const char*>(key.data()) + at, key.size() - at};
  }
  [[nodiscard]] std::uint64_t part() const { return read<std::uint64_t>(key, offsetof(usdt_span_key, part)); }
  [[nodiscard]] bool is_of_goroutine() const {
    return read<std::uint64_t>(key, offsetof(usdt_call_key, goroutine)) != 0;
  }

  template <class T>
  static T read(std::span<const std::byte> from, std::size_t at) {
    T value;
    std::memcpy(&value, from.data() + at, sizeof(value));
    return value;
  }
};

/// The contents of the map at one time. A record that is blank is being filled, or is of what was not sampled.
class OpenCalls::Copy {
 public:
  Copy(const OpenCalls& of, bool with_records) : of_(of), with_records_(with_records) {
    constexpr std::uint32_t batch = 512;  // buckets, which are not divided, have a few
    std::uint32_t token = 0;
    int error = 0;
    std::vector<std::byte> values;
    for (bool first = true; error == 0; first = false) {
      std::vector<std::byte> keys(std::size_t{batch} * of.key_size_);
      values.resize(std::size_t{batch} * of.value_size_);
      __u32 count = batch;
      DECLARE_LIBBPF_OPTS(bpf_map_batch_opts, options);
      error = bpf_map_lookup_batch(of.map_.get(), first ? nullptr : &token, &token, keys.data(), values.data(), &count,
                                   &options);
      if (error != 0 && errno != ENOENT) break;  // ENOENT: these are the last ones
      keep(std::move(keys), values, count);
    }
    for (const Entry& entry : entries_)
      if (entry.open > 0) outermost_[entry.pair()].emplace(entry.part(), entry);
    given_up_until_ = find_given_up();
  }

  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  /// Whether it is a span within others of which the outermost was given up: its end finds nothing any more.
  [[nodiscard]] bool is_orphan(const Entry& entry) const {
    if (!of_.spans_ || entry.open > 0) return false;
    const auto known = outermost_.find(entry.pair());
    if (known == outermost_.end()) return true;
    auto around = known->second.upper_bound(entry.part());
    if (around == known->second.begin()) return true;
    const Entry& first = (--around)->second;
    return entry.part() - first.part() >= first.open || entry.head.ts < first.head.ts;
  }
  /// Whether some are given up for others, or soon will be. A map that cannot grow has some of its room in lists of
  /// processors; in one that can, something has to be left for what begins until the next look.
  [[nodiscard]] bool is_crowded() const { return entries_.size() >= (of_.grows_ ? of_.room_ / 2 : of_.room_ / 4 * 3); }
  /// Whether it is one of those that have to be given up for others. What keeps the account of spans within it stays
  /// as long as one of these does.
  [[nodiscard]] bool has_to_go(const Entry& entry) const {
    if (entry.head.ts > given_up_until_) return false;
    return entry.open <= 1 || newest_.at(entry.pair()) <= given_up_until_;
  }

 private:
  /// When those began, or before, that have to be given up: half of all. (Of a map that cannot grow, the kernel gives
  /// up what was looked at longest ago.)
  std::uint64_t find_given_up() {
    if (!of_.grows_ || !is_crowded()) return 0;
    std::vector<std::uint64_t> times;
    for (const Entry& entry : entries_) {
      times.push_back(entry.head.ts);
      if (!of_.spans_) continue;
      std::uint64_t& newest = newest_[entry.pair()];
      newest = std::max<std::uint64_t>(newest, entry.head.ts);
    }
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::ranges::nth_element(times, middle);
    return *middle;
  }

  void keep(std::vector<std::byte> keys, std::vector<std::byte>& values, std::size_t count) {
    const std::span<const std::byte> all_keys = memory_.emplace_back(std::move(keys));
    std::span<const std::byte> all_values = values;
    if (with_records_) all_values = memory_.emplace_back(std::move(values));
    for (std::size_t n = 0; n < count; ++n) {
      const auto value = all_values.subspan(n * of_.value_size_, of_.value_size_);
      const auto head = Entry::read<usdt_event>(value, 0);
      if (head.ts == 0) continue;
      entries_.push_back(
          {.key = all_keys.subspan(n * of_.key_size_, of_.key_size_),
           .record = with_records_ ? value.first(of_.record_size_) : std::span<const std::byte>(),
           .head = head,
           .open =
               of_.spans_ ? Entry::read<std::uint64_t>(value, of_.record_size_ + offsetof(usdt_open_span, open)) : 0});
    }
  }

  const OpenCalls& of_;
  bool with_records_;
  std::deque<std::vector<std::byte>> memory_;
  std::vector<Entry> entries_;
  std::map<std::string_view, std::map<std::uint64_t, Entry>> outermost_;
  std::unordered_map<std::string_view, std::uint64_t> newest_;  ///< by what pairs them: when the last one began
  std::uint64_t given_up_until_ = 0;
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
  const std::uint32_t size = value_size(plan, layout, options);
  open.value_size_ = (size + 7) / 8 * 8;  // as the kernel hands them over
  open.record_size_ = layout.record_size();
  const Room room = room_for(plan, options, size);
  open.room_ = room.entries;
  open.grows_ = room.grows;
  open.life_ = life_of_beginnings(plan);
  open.spans_ = plan.spans.has_value();
  return open;
}

bool OpenCalls::has_left(const Entry& entry, const ThreadEnds& ends) const {
  const usdt_event& head = entry.head;
  if (life_ == USDT_PAIR_PROCESS || (!spans_ && entry.is_of_goroutine())) return ends.process_ended(head);
  if (life_ == USDT_PAIR_THREAD) return ends.thread_ended(head);
  return life_ == USDT_PAIR_IMAGE && ends.thread_left(head);
}

/// Takes it out if it is still what has its place: else that is put back, unless another one has begun there already.
bool OpenCalls::give_up(const Entry& entry) const {
  std::vector<std::byte> now(value_size_);
  if (bpf_map_lookup_and_delete_elem(map_.get(), entry.key.data(), now.data()) != 0) return false;
  if (Entry::read<usdt_event>(now, 0).ts == entry.head.ts) return true;
  bpf_map_update_elem(map_.get(), entry.key.data(), now.data(), BPF_NOEXIST);
  return false;
}

/// Whether what the map has in its place is it still.
bool OpenCalls::is_unchanged(const Entry& entry) const {
  std::vector<std::byte> now(value_size_);
  usdt_event head{};
  if (bpf_map_lookup_elem(map_.get(), entry.key.data(), now.data()) != 0) return false;
  std::memcpy(&head, now.data(), sizeof(head));
  return head.ts == entry.head.ts;
}

bool OpenCalls::look(const ThreadEnds& ends, const Visitors& visitors) const {
  if (!any()) return false;
  const Copy copy(*this, static_cast<bool>(visitors.record));
  for (const Entry& entry : copy.entries()) {
    // A look takes a while: what it found may have ended meanwhile, and another one begun in its place.
    if (has_left(entry, ends) || (copy.is_orphan(entry) && is_unchanged(entry))) {
      if (bpf_map_delete_elem(map_.get(), entry.key.data()) == 0) visitors.left(entry.head);
    } else if (!copy.has_to_go(entry) || !give_up(entry)) {
      visitors.open(entry.head);
      if (visitors.record) visitors.record(entry.record);
    }
  }
  return copy.is_crowded();
}

}  // namespace usdt::event
