// SPDX-License-Identifier: BSD-2-Clause
#include "export/perfetto_writer.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <utility>

#include "export/frames.hpp"
#include "io/escape.hpp"

namespace usdt::exports::perfetto {

using protozero::pbf_builder;

std::string safe_text(std::string_view text) {
  return io::is_printable(text) ? std::string(text) : io::printable(text);
}

std::string PacketBlock::take() {
  uLongf size = ::compressBound(packets_.size());
  std::string deflated(size, '\0');
  // Fails for want of memory alone; then they go as they are.
  const int failed = ::compress2(reinterpret_cast<Bytef*>(deflated.data()), &size,
                                 reinterpret_cast<const Bytef*>(packets_.data()), packets_.size(), Z_BEST_SPEED);
  if (failed != Z_OK) return std::exchange(packets_, {});
  deflated.resize(size);
  packets_.clear();
  std::string packet;
  pbf_builder<Packet>(packet).add_bytes(Packet::compressed, deflated);
  std::string trace;
  pbf_builder<Trace>(trace).add_message(Trace::packet, packet);
  return trace;
}

void AnnotationWriter::begin(pbf_builder<TrackEvent>& event, std::uint64_t name) {
  levels_.emplace_back(event, TrackEvent::annotation);
  levels_.back().builder.add_uint64(Annotation::name_iid, name);
}

AnnotationWriter::Level& AnnotationWriter::target() {
  if (levels_.back().kind == Level::Kind::list) levels_.emplace_back(levels_.back().builder, Annotation::element);
  return levels_.back();
}

void AnnotationWriter::member(std::string_view name) {
  levels_.emplace_back(levels_.back().builder, Annotation::entry);
  levels_.back().builder.add_string(Annotation::name, safe_text(name));
}

void AnnotationWriter::text(std::string_view text) {
  put([&](auto& value) { value.add_string(Annotation::text, safe_text(text)); });
}

void AnnotationWriter::cut_text(std::string_view text) {
  put([&](auto& value) { value.add_string(Annotation::text, safe_text(text) + "..."); });
}

void AnnotationWriter::error(std::string_view reason) { text(fmt::format("<{}>", reason)); }

void AnnotationWriter::frames(const Stack& stack) { text(folded_text(stack)); }

std::uint64_t SentNames::number_of(Interned which, std::string_view name) {
  Numbers& numbers = which == Interned::event_name ? events_ : annotations_;
  if (const auto known = numbers.find(name); known != numbers.end()) return known->second;
  const std::uint64_t number = numbers.size() + 1;
  numbers.emplace(name, number);
  pbf_builder<Interned> pending(pending_);
  pbf_builder<InternedText> text(pending, which);
  text.add_uint64(InternedText::iid, number);
  text.add_string(InternedText::text, safe_text(name));
  return number;
}

void SentNames::send(pbf_builder<Packet>& packet) {
  if (!pending_.empty()) packet.add_message(Packet::interned, std::exchange(pending_, {}));
}

/// Says what holds for all packets to come: the track of their events, and their clock.
void TrackSequence::begin(pbf_builder<Packet>& packet, std::uint64_t time) {
  {
    pbf_builder<Defaults> defaults(packet, Packet::defaults);
    defaults.add_uint32(Defaults::timestamp_clock, kSinceLast);
    pbf_builder<TrackEvent> event(defaults, Defaults::track_event);
    event.add_uint64(TrackEvent::track, track_);
  }
  pbf_builder<Clocks> clocks(packet, Packet::clock_snapshot);
  for (const std::uint32_t id : {kSinceLast, kMonotonic}) {
    pbf_builder<Clock> clock(clocks, Clocks::clock);
    clock.add_uint32(Clock::id, id);
    clock.add_uint64(Clock::timestamp, time);
    if (id == kSinceLast) clock.add_bool(Clock::is_incremental, true);
  }
}

void TrackSequence::begin_event() {
  constexpr std::size_t kMost = 1024;
  if (names_.size() < kMost) return;
  names_ = {};
  last_ = 0;
}

void TrackSequence::add(PacketBlock& block, std::uint64_t time, const std::string& track_event) {
  if (last_ == 0) {
    block.add([&](pbf_builder<Packet>& packet) {
      packet.add_uint32(Packet::sequence, number_);
      packet.add_uint32(Packet::sequence_flags, kStateCleared);
      begin(packet, time);
    });
    last_ = time;
  }
  block.add([&](pbf_builder<Packet>& packet) {
    if (time >= last_) {
      packet.add_uint64(Packet::timestamp, time - last_);
      last_ = time;
    } else {
      packet.add_uint64(Packet::timestamp, time);
      packet.add_uint32(Packet::timestamp_clock, kMonotonic);
    }
    packet.add_uint32(Packet::sequence, number_);
    packet.add_uint32(Packet::sequence_flags, kNeedsState);
    names_.send(packet);
    packet.add_message(Packet::track_event, track_event);
  });
}

void add_stack(pbf_builder<TrackEvent>& event, const Stack& stack) {
  pbf_builder<Callstack> frames(event, TrackEvent::callstack);
  for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame) {
    pbf_builder<CallstackFrame> one(frames, Callstack::frame);
    one.add_string(CallstackFrame::function, safe_text(function_text(*frame)));
    if (frame->line == 0) continue;
    one.add_string(CallstackFrame::source, safe_text(frame->source));
    one.add_uint32(CallstackFrame::line, frame->line);
  }
}

}  // namespace usdt::exports::perfetto
