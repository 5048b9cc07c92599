// SPDX-License-Identifier: BSD-2-Clause
#include "export/perfetto_writer.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <utility>

#include "export/frames.hpp"
#include "io/escape.hpp"

namespace usdt::exports::perfetto {

std::string safe_text(std::string_view text, io::Escapes escapes) {
  return io::needs_escapes(text, escapes) ? io::with_escapes(text, escapes) : std::string(text);
}

Bytes PacketBlock::take() {
  uLongf size = ::compressBound(packets_.size());
  Bytes deflated(size);
  // Fails for want of memory alone; then they go as they are.
  const int failed = ::compress2(reinterpret_cast<Bytef*>(deflated.data()), &size,
                                 reinterpret_cast<const Bytef*>(packets_.data()), packets_.size(), Z_BEST_SPEED);
  if (failed != Z_OK) return std::exchange(packets_, {});
  packets_.clear();
  Bytes encoded;
  {
    Builder<Trace> trace(encoded);
    Builder<Packet> packet(trace, Trace::packet);
    packet.add_bytes(Packet::compressed, deflated.data(), size);
  }
  return encoded;
}

void AnnotationWriter::begin(Builder<TrackEvent>& event, std::uint64_t name) {
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
  TextTable<std::uint64_t>& numbers = which == Interned::event_name ? events_ : annotations_;
  if (const auto known = numbers.find(name); known != numbers.end()) return known->second;
  const std::uint64_t number = numbers.size() + 1;
  numbers.emplace(name, number);
  Builder<Interned> pending(pending_);
  Builder<InternedText> text(pending, which);
  text.add_uint64(InternedText::iid, number);
  text.add_string(InternedText::text, safe_text(name, io::Escapes::controls));
  return number;
}

void SentNames::send(Builder<Packet>& packet) {
  if (pending_.empty()) return;
  packet.add_message(Packet::interned, pending_.data(), pending_.size());
  pending_ = {};
}

void TrackSequence::begin(PacketBlock& block, std::uint64_t time) {
  block.add([&](Builder<Packet>& packet) {
    packet.add_uint32(Packet::sequence, number_);
    packet.add_uint32(Packet::sequence_flags, kStateCleared);
    {
      Builder<Defaults> defaults(packet, Packet::defaults);
      defaults.add_uint32(Defaults::timestamp_clock, kSinceLast);
      Builder<TrackEvent> event(defaults, Defaults::track_event);
      event.add_uint64(TrackEvent::track, track_);
    }
    Builder<Clocks> clocks(packet, Packet::clock_snapshot);
    for (const std::uint32_t id : {kSinceLast, kMonotonic}) {
      Builder<Clock> clock(clocks, Clocks::clock);
      clock.add_uint32(Clock::id, id);
      clock.add_uint64(Clock::timestamp, time);
      if (id == kSinceLast) clock.add_bool(Clock::is_incremental, true);
    }
  });
  last_ = time;
}

void TrackSequence::add_time(Builder<Packet>& packet, std::uint64_t time) {
  if (time < last_) {
    packet.add_uint64(Packet::timestamp, time);
    packet.add_uint32(Packet::timestamp_clock, kMonotonic);
  } else {
    packet.add_uint64(Packet::timestamp, time - last_);
    last_ = time;
  }
}

void TrackSequence::begin_event() {
  constexpr std::size_t kMost = 1024;
  if (names_.size() < kMost) return;
  names_ = {};
  last_ = 0;
}

void add_stack(Builder<TrackEvent>& event, const Stack& stack) {
  Builder<Callstack> frames(event, TrackEvent::callstack);
  for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame) {
    Builder<CallstackFrame> one(frames, Callstack::frame);
    one.add_string(CallstackFrame::function, safe_text(function_text(*frame)));
    if (frame->line == 0) continue;
    one.add_string(CallstackFrame::source, safe_text(frame->source));
    one.add_uint32(CallstackFrame::line, frame->line);
  }
}

}  // namespace usdt::exports::perfetto
