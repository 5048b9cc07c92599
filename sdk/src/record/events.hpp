// SPDX-License-Identifier: BSD-2-Clause
// Events in the blocks of a recording. Each block can be read without those before it: threads and stacks are named
// once in it, and times and values are differences to what came before in it. Private to record/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "record/limits.hpp"
#include "usdt/event.hpp"
#include "usdt/recording.hpp"

namespace usdt::record {

/// Bits at the beginning of an entry of a block of events: its kind in the lowest two, and what else an event has.
enum Entry : std::uint8_t {
  kEvent = 1,
  kClock = 2,   ///< how far the time of day is from CLOCK_MONOTONIC, from here on
  kWeight = 3,  ///< how many hits each event stands for, from here on
  kKindBits = 3,
  kHasIp = 4,        ///< another one than the last event of its site
  kHasDuration = 8,  ///< of a call
  kHasNotes = 16,    ///< some argument has a text or an error
  kHasStacks = 32,
  kHasEnder = 64,  ///< of a span that another thread ended
};

/// The state of a site that both sides keep from one event to the next, within one block.
struct SiteState {
  std::uint32_t block = 0;  ///< of which it is; another one: all 0
  std::uint64_t ip = 0;
  std::vector<std::uint64_t> bits = {};  ///< by argument
};
class SiteStates {
 public:
  void next_block() noexcept { ++block_; }
  [[nodiscard]] SiteState& of(std::uint32_t site, std::size_t args);

 private:
  std::uint32_t block_ = 1;
  std::vector<SiteState> sites_;
};

/// By argument of a spec: the slot of the record that has its text.
using StringSlots = std::vector<std::optional<std::uint32_t>>;
[[nodiscard]] StringSlots string_slots(const EncodedSpec& spec, std::uint32_t slots);

class EventEncoder {
 public:
  /// Encodes events. Only those that do not stand for `weight` hits say for how many they do.
  explicit EventEncoder(double weight = 1) noexcept : usual_weight_(weight), weight_(weight) {}

  /// Begins a block.
  void clear();
  /// `wall_offset`: of the time of day, at this event.
  void add(const Event& event, std::int64_t wall_offset, const EventStacks& stacks);

  [[nodiscard]] ByteSpan bytes() const noexcept { return out_.bytes(); }
  [[nodiscard]] std::size_t size() const noexcept { return out_.size(); }
  [[nodiscard]] std::size_t events() const noexcept { return events_; }
  [[nodiscard]] std::uint64_t first() const noexcept { return first_; }
  [[nodiscard]] std::uint64_t last() const noexcept { return last_; }

 private:
  struct Thread {
    std::uint64_t ids = 0;
    std::uint64_t comm[2] = {};
    HitOwner owner = {};
    friend bool operator==(const Thread&, const Thread&) = default;
  };
  struct ThreadHash {
    std::size_t operator()(const Thread& thread) const noexcept {
      return static_cast<std::size_t>((thread.ids ^ thread.comm[0] ^ thread.comm[1] * 31) * 0x9e3779b97f4a7c15U >> 16);
    }
  };

  void clock(std::int64_t wall_offset);
  void weight(double weight);
  void thread(const Event& event);
  void ender(const std::optional<SpanEnder>& thread);  ///< nothing: the span has not ended
  void context(const Event& event);
  void attributes(const Event& event, std::uint32_t there_were);
  void ids_and_name(const Thread& thread);
  void stack(const Result<Stack>* stack);
  void frame(const Frame& frame);
  /// Indices keep their meaning while a plan grows.
  const StringSlots& slots_of(const Event& event);

  ByteWriter out_;
  std::size_t events_ = 0;
  std::uint64_t first_ = 0, last_ = 0;
  std::optional<std::int64_t> wall_offset_ = {};
  double usual_weight_, weight_;
  SiteStates sites_;
  std::vector<StringSlots> slots_;  ///< by spec
  std::unordered_map<Thread, std::size_t, ThreadHash> threads_;
  Thread last_thread_;
  std::size_t last_number_ = 0;  ///< its number
  std::unordered_map<Thread, std::size_t, ThreadHash> enders_;
  std::unordered_map<std::string, std::size_t> contexts_, stacks_, frames_;
  ByteWriter stack_key_, stack_text_, frame_text_, context_text_;
};

class EventDecoder {
 public:
  EventDecoder(const AttachPlan& plan, const EventLayout& layout);

  /// Begins a block, which stays as it is while it is read; its first event is of the time `first`.
  void begin(ByteSpan block, std::uint64_t first);
  /// The next record of the block; empty: it has no more. Errors: malformed.
  [[nodiscard]] Result<std::span<const std::byte>> next();
  [[nodiscard]] std::int64_t wall_offset() const noexcept { return wall_offset_; }
  /// Returns how many hits the last record stands for.
  [[nodiscard]] double weight() const noexcept { return weight_; }
  /// Returns what the attributes in the last record are called; null: it has none. Valid until the next record.
  [[nodiscard]] const std::shared_ptr<const AttributeKeys>& attribute_keys() const noexcept { return keys_; }
  /// Returns a stack of the last record.
  [[nodiscard]] Result<Stack> kernel_stack() const { return stack_of(kernel_); }
  [[nodiscard]] Result<Stack> user_stack() const { return stack_of(user_); }

 private:
  struct Thread {
    std::uint32_t pid = 0, tid = 0;
    std::string_view comm = {};
    usdt_owner owner = {};
  };
  struct RecordedStack {
    FrameIssue end = FrameIssue::none;
    std::vector<std::uint32_t> frames = {};
  };
  /// What a thread worked for.
  struct Context {
    usdt_thread_context ids = {};
    std::int32_t error = 0;  ///< why there are no attributes
    std::vector<std::uint8_t> attributes = {};
    std::shared_ptr<const AttributeKeys> keys = {};
  };
  /// Which stack an event has: none, one of stacks_, or why there is none.
  struct StackRef {
    std::optional<std::size_t> number = {};
    std::string_view error = {};
  };

  bool event(std::uint8_t entry);
  bool arguments(const PlannedSite& site, SiteState& state, bool notes);
  void note(usdt_event_arg& arg, std::optional<std::uint32_t> slot);
  [[nodiscard]] Thread thread();
  [[nodiscard]] Thread ender();
  [[nodiscard]] Thread ids_and_name();
  void put_ender(const Thread& thread, bool is_beginner = false);
  [[nodiscard]] const Context& context();
  void attributes(Context& context);
  void put_context(const Context& context);
  [[nodiscard]] StackRef stack();
  void frame();
  [[nodiscard]] Result<Stack> stack_of(const StackRef& ref) const;
  [[nodiscard]] std::byte* record() noexcept { return reinterpret_cast<std::byte*>(words_.data()); }

  const AttachPlan& plan_;
  EventLayout layout_;
  std::vector<StringSlots> slots_;
  std::vector<std::uint64_t> words_;  ///< a record, which is aligned to 8 bytes
  ByteReader in_{{}};
  SiteStates sites_;
  std::uint64_t last_ = 0;
  std::int64_t wall_offset_ = 0;
  double weight_ = 1;
  std::vector<Thread> threads_, enders_;
  std::vector<Context> contexts_;
  std::shared_ptr<const AttributeKeys> keys_;
  std::vector<RecordedStack> stacks_;
  std::vector<Frame> frames_;
  StackRef kernel_, user_;
};

}  // namespace usdt::record
