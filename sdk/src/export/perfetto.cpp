// SPDX-License-Identifier: BSD-2-Clause
// A time line for ui.perfetto.dev: calls and spans as slices of the track of their thread, hits as instants there,
// values and stacks with them, and what was lost as a counter. What is written goes out in blocks; nothing needs all of
// a trace in memory.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "export/formats.hpp"
#include "export/output.hpp"
#include "export/perfetto_writer.hpp"
#include "export/slice_lanes.hpp"
#include "export/value_tree.hpp"

namespace usdt::exports {
namespace {

using perfetto::AnnotationWriter;
using perfetto::Builder;
using perfetto::Bytes;
using perfetto::EventType;
using perfetto::Interned;
using perfetto::Packet;
using perfetto::TrackEvent;
using perfetto::TrackSequence;

/// A track: its packets, and the slices that it has room for.
struct Lane {
  TrackSequence sequence;
  SliceLane slices = {};
};

/// A thread as the tracer's pid namespace numbers it, and its name.
struct ThreadName {
  explicit ThreadName(const Event& event) : pid(event.pid()), tid(event.tid()), comm(event.comm()) {}
  explicit ThreadName(const SpanEnder& ender) : pid(ender.pid), tid(ender.tid), comm(ender.comm) {}

  std::uint32_t pid, tid;
  std::string_view comm;
};

/// The tracks of a thread: the first is its own, the others have calls and spans that cross those of the tracks before.
struct ThreadTracks {
  std::uint64_t uuid = 0;  ///< of its own track
  std::deque<Lane> lanes;
};

/// The tracks of a trace, each of which is described before its first event.
class Tracks {
 public:
  /// `given`: how many numbers are given to tracks of this file. Both live as long.
  Tracks(perfetto::PacketBlock& block, std::uint32_t& given) : block_(block), given_(given) {}

  /// Adds a track that `describe` describes.
  template <class Describe>
  [[nodiscard]] TrackSequence add(const Describe& describe) {
    const std::uint32_t number = ++given_;
    block_.add([&](Builder<Packet>& packet) {
      packet.add_uint32(Packet::sequence, number);
      Builder<perfetto::Track> track(packet, Packet::track_descriptor);
      track.add_uint64(perfetto::Track::uuid, number);
      describe(track);
    });
    return {number, number};
  }
  /// Returns those of a thread.
  [[nodiscard]] ThreadTracks& of(const ThreadName& thread);
  /// Returns the track of `thread` that has room for what the event is of.
  [[nodiscard]] Lane& lane_for(const Event& event, ThreadTracks& thread);

 private:
  void add_process(const ThreadName& thread);

  perfetto::PacketBlock& block_;
  std::uint32_t& given_;
  std::unordered_map<std::uint64_t, ThreadTracks> threads_;  ///< by process and thread
  std::set<std::uint32_t> processes_;                        ///< that are described
  std::size_t lanes_ = 0;                                    ///< of all threads
};

void Tracks::add_process(const ThreadName& thread) {
  if (!processes_.insert(thread.pid).second) return;
  static_cast<void>(add([&](Builder<perfetto::Track>& track) {
    Builder<perfetto::Process> process(track, perfetto::Track::process);
    process.add_int32(perfetto::Process::pid, static_cast<std::int32_t>(thread.pid));
    process.add_string(perfetto::Process::name, perfetto::safe_text(thread.comm));
  }));
}

/// Threads come and go: of very many the tracks so far are forgotten, and what goes on has new ones.
ThreadTracks& Tracks::of(const ThreadName& name) {
  constexpr std::size_t kMost = 8192;
  if (lanes_ >= kMost) {
    threads_.clear();
    processes_.clear();
    lanes_ = 0;
  }
  ThreadTracks& thread = threads_[std::uint64_t{name.pid} << 32 | name.tid];
  if (!thread.lanes.empty()) return thread;
  const bool is_visible = name.pid != 0;
  if (is_visible) add_process(name);
  thread.lanes.push_back({add([&](Builder<perfetto::Track>& track) {
    if (!is_visible) return track.add_string(perfetto::Track::name, "threads of another pid namespace");
    Builder<perfetto::Thread> described(track, perfetto::Track::thread);
    described.add_int32(perfetto::Thread::pid, static_cast<std::int32_t>(name.pid));
    described.add_int64(perfetto::Thread::tid, name.tid);
    described.add_string(perfetto::Thread::name, perfetto::safe_text(name.comm));
  })});
  thread.uuid = thread.lanes.front().sequence.track();
  ++lanes_;
  return thread;
}

Lane& Tracks::lane_for(const Event& event, ThreadTracks& thread) {
  const std::uint64_t begin = event.timestamp(), end = begin + event.duration();
  for (Lane& lane : thread.lanes)
    if (lane.slices.take(begin, end)) return lane;
  thread.lanes.push_back({add([&](Builder<perfetto::Track>& track) {
    track.add_string(perfetto::Track::name, "at the same time");
    track.add_uint64(perfetto::Track::parent, thread.uuid);
  })});
  ++lanes_;
  Lane& lane = thread.lanes.back();
  static_cast<void>(lane.slices.take(begin, end));
  return lane;
}

void add_type(Builder<TrackEvent>& event, EventType type) {
  event.add_int32(TrackEvent::type, static_cast<std::int32_t>(type));
}

class PerfettoOutput final : public Output {
 public:
  PerfettoOutput(const AnswerStart& start, const OutputPlace& place)
      : Output(start, place),
        question_(start.question),
        tracks_(block_, place.shared.tracks),
        flows_(place.shared.flows),
        values_(annotations_, start, unreadable_) {
    trace(start.plan, start.plan.probes.size());
  }

  void know(std::size_t probes) override { short_names_.know(probes); }
  void slowest(const SlowestEvents& events, bool last) override {
    if (!last) return;
    for (const KeptEvent& kept : events.events()) {
      around_.begin(kept);
      show(*kept.event);
    }
  }
  void notice(const SessionNotice& notice) override {
    constexpr std::size_t kMostEarly = 100;
    if (!notice.is_of_trace()) return;
    if (latest_ > 0) return show_notice(notice.text);
    if (early_notices_.size() < kMostEarly) early_notices_.push_back(notice.text);
  }
  bool wants_account() const override { return Clock::now() - accounted_ >= std::chrono::seconds(1); }
  void account(const SessionSummary& summary) override {
    accounted_ = Clock::now();
    show_losses(summary);
  }

 protected:
  void look_up(const AttachPlan& plan, std::size_t probes) override {
    values_.look_up(plan);
    short_names_ = ShortNames(plan, probes);
  }
  void write_event(const Event& event) override {
    show(event);
    ++events_;
    if (block_.is_full()) put_block();
  }
  /// A notice says it.
  void write_followed(const Followed& /*followed*/) override {}
  void write_summary(const SessionSummary& summary) override {
    show_losses(summary);
    put_block();
  }
  void print_due() override {
    if (!block_.is_empty() && Clock::now() - put_ >= std::chrono::seconds(1)) put_block();
  }
  void ending(const SessionSummary& /*summary*/) override { put_block(); }

 private:
  using Clock = std::chrono::steady_clock;

  void put_block() {
    if (!block_.is_empty()) {
      const Bytes packets = block_.take();
      out_.bytes(std::as_bytes(std::span(packets)));
    }
    Output::printed(std::exchange(events_, 0));
    put_ = Clock::now();
  }

  void show(const Event& event);
  void show_end(const Event& event, std::uint64_t flow);
  void add_values(const Event& event, Builder<TrackEvent>& shown, TrackSequence& sequence);
  void add_stacks(const Event& event, Builder<TrackEvent>& shown, TrackSequence& sequence);
  void show_notice(std::string_view text);
  void show_losses(const SessionSummary& summary);
  void tell_time(const Event& event);

  const Question& question_;
  perfetto::PacketBlock block_;
  Tracks tracks_;
  std::uint32_t& flows_;    ///< given so far
  std::size_t events_ = 0;  ///< in the block
  Clock::time_point put_ = Clock::now(), accounted_ = Clock::now();
  ShortNames short_names_;
  AnnotationWriter annotations_;
  ValueTree<AnnotationWriter> values_;
  std::optional<TrackSequence> notices_, losses_;
  std::vector<std::string> early_notices_;   ///< that came before there was a time to draw them at
  std::uint64_t lost_ = 0;                   ///< as shown last
  std::optional<std::int64_t> wall_offset_;  ///< as told last
  std::uint64_t latest_ = 0;                 ///< time of the last event so far
};

/// Says which time of day it is at the event, where it was set since.
void PerfettoOutput::tell_time(const Event& event) {
  constexpr std::int64_t kMuch = 1'000'000;
  const std::int64_t offset = around_.wall_offset();
  if (wall_offset_ && std::abs(offset - *wall_offset_) < kMuch) return;
  wall_offset_ = offset;
  block_.add([&](Builder<Packet>& packet) {
    Builder<perfetto::Clocks> clocks(packet, Packet::clock_snapshot);
    const auto add = [&](std::uint32_t id, std::uint64_t time) {
      Builder<perfetto::Clock> clock(clocks, perfetto::Clocks::clock);
      clock.add_uint32(perfetto::Clock::id, id);
      clock.add_uint64(perfetto::Clock::timestamp, time);
    };
    add(perfetto::kMonotonic, event.timestamp());
    add(perfetto::kRealtime, static_cast<std::uint64_t>(wall_time(event)));
    clocks.add_uint32(perfetto::Clocks::primary, perfetto::kMonotonic);
  });
}

void PerfettoOutput::show(const Event& event) {
  tell_time(event);
  if (latest_ == 0) {
    latest_ = event.timestamp();
    for (const std::string& text : std::exchange(early_notices_, {})) show_notice(text);
  }
  latest_ = std::max(latest_, event.timestamp() + event.duration());
  ThreadTracks& thread = tracks_.of(ThreadName(event));
  const bool is_open = question_.view.in_flight;
  const bool lasts = event.duration() > 0 || event.site().span || is_open;
  TrackSequence& sequence =
      lasts && !is_open ? tracks_.lane_for(event, thread).sequence : thread.lanes.front().sequence;
  const std::uint64_t flow = ends_elsewhere(event) ? ++flows_ : 0;
  sequence.begin_event();
  sequence.add(block_, event.timestamp(), [&](Builder<TrackEvent>& shown) {
    add_type(shown, lasts ? EventType::begin : EventType::instant);
    if (flow != 0) shown.add_fixed64(TrackEvent::flow, flow);
    shown.add_uint64(TrackEvent::name_iid,
                     sequence.names().number_of(Interned::event_name, short_names_[event.site().probe.value]));
    add_values(event, shown, sequence);
    add_stacks(event, shown, sequence);
  });
  if (!lasts || is_open) return;
  sequence.add(block_, event.timestamp() + event.duration(),
               [](Builder<TrackEvent>& shown) { add_type(shown, EventType::end); });
  if (flow != 0) show_end(event, flow);
}

/// An arrow leads from the span to its end in another thread.
void PerfettoOutput::show_end(const Event& event, std::uint64_t flow) {
  TrackSequence& sequence = tracks_.of(ThreadName(*event.ended_by())).lanes.front().sequence;
  sequence.begin_event();
  sequence.add(block_, event.timestamp() + event.duration(), [&](Builder<TrackEvent>& shown) {
    add_type(shown, EventType::instant);
    shown.add_uint64(TrackEvent::name_iid,
                     sequence.names().number_of(Interned::event_name, short_names_[event.site().probe.value]));
    shown.add_fixed64(TrackEvent::terminating_flow, flow);
  });
}

void PerfettoOutput::add_values(const Event& event, Builder<TrackEvent>& shown, TrackSequence& sequence) {
  const auto begin = [&](std::string_view name) {
    annotations_.begin(shown, sequence.names().number_of(Interned::annotation_name, name));
  };
  if (event.weight() != 1) {
    begin("weight");
    annotations_.real(event.weight());
  }
  values_.each(event, question_, begin);
}

/// An event has room for one stack; the kernel's beside a process's is one of its values.
void PerfettoOutput::add_stacks(const Event& event, Builder<TrackEvent>& shown, TrackSequence& sequence) {
  const AskedStacks& asked = question_.stacks;
  const bool user = asked.user_depth > 0 && !asked.user_in_lists;
  const bool kernel = asked.kernel_depth > 0 && !asked.kernel_in_lists && !event.probe().file;
  const auto add = [&](const Result<Stack>& stack, std::string_view name, bool first) {
    if (stack && first) return perfetto::add_stack(shown, *stack);
    annotations_.begin(shown, sequence.names().number_of(Interned::annotation_name, name));
    stack ? annotations_.frames(*stack) : values_.error(stack.error().message);
  };
  if (user) add(around_.user_stack(), "ustack", true);
  if (kernel) add(around_.kernel_stack(), "kstack", !user);
}

void PerfettoOutput::show_notice(std::string_view text) {
  if (!notices_) {
    notices_ = tracks_.add([](Builder<perfetto::Track>& track) { track.add_string(perfetto::Track::name, "notices"); });
  }
  notices_->add(block_, latest_, [&](Builder<TrackEvent>& shown) {
    add_type(shown, EventType::instant);
    shown.add_string(TrackEvent::name, perfetto::safe_text(text, io::Escapes::controls));
  });
}

/// A counter on its own track: the hits that have no event although nobody asked for that.
void PerfettoOutput::show_losses(const SessionSummary& summary) {
  const std::uint64_t lost = summary.total().lost();
  if (latest_ == 0 || (losses_ && lost == lost_)) return;
  if (!losses_) {
    losses_ = tracks_.add([](Builder<perfetto::Track>& track) {
      track.add_string(perfetto::Track::name, "lost");
      Builder<perfetto::Counter> counter(track, perfetto::Track::counter);
      counter.add_int32(perfetto::Counter::unit, perfetto::kUnitCount);
    });
  }
  lost_ = lost;
  losses_->add(block_, latest_, [&](Builder<TrackEvent>& shown) {
    add_type(shown, EventType::counter);
    shown.add_int64(TrackEvent::counter_value, static_cast<std::int64_t>(lost));
  });
}

}  // namespace

std::unique_ptr<Output> make_perfetto_output(const AnswerStart& start, const OutputPlace& place) {
  return std::make_unique<PerfettoOutput>(start, place);
}

}  // namespace usdt::exports
