// SPDX-License-Identifier: BSD-2-Clause
// Packets of Perfetto's traces, as small as its format can have them: names are sent once, times are differences, and
// many packets together are deflated.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "export/perfetto_fields.hpp"
#include "export/text_hash.hpp"
#include "io/escape.hpp"
#include "usdt/stack.hpp"

namespace usdt::exports::perfetto {

/// Packets that are not written yet.
class PacketBlock {
 public:
  /// Adds a packet, whose fields `write` adds.
  template <class Write>
  void add(const Write& write) {
    Builder<Trace> trace(packets_);
    Builder<Packet> packet(trace, Trace::packet);
    write(packet);
  }
  /// Whether more of them would make nothing smaller.
  [[nodiscard]] bool is_full() const noexcept { return packets_.size() >= (std::size_t{256} << 10); }
  [[nodiscard]] bool is_empty() const noexcept { return packets_.empty(); }
  /// Returns them as a piece of a trace, deflated, and has none any more.
  [[nodiscard]] Bytes take();

 private:
  Bytes packets_;
};

/// The values of one event as annotations, which have names (value_tree.hpp: TreeWriter).
class AnnotationWriter {
 public:
  /// Begins the annotation of `event` whose name has this number; one value follows.
  void begin(Builder<TrackEvent>& event, std::uint64_t name);

  void begin_object() { target().kind = Level::Kind::object; }
  void member(std::string_view name);
  void end_object() { levels_.pop_back(); }
  void begin_list() { target().kind = Level::Kind::list; }
  void end_list() { levels_.pop_back(); }
  void whole(std::int64_t number) {
    put([&](auto& value) { value.add_int64(Annotation::whole, number); });
  }
  void natural(std::uint64_t number) {
    put([&](auto& value) { value.add_uint64(Annotation::natural, number); });
  }
  void real(double number) {
    put([&](auto& value) { value.add_double(Annotation::real, number); });
  }
  void text(std::string_view text);
  void cut_text(std::string_view text);
  void error(std::string_view reason);
  void frames(const Stack& stack);

 private:
  /// An annotation that is not finished.
  struct Level {
    enum class Kind : std::uint8_t { value, object, list };
    template <class Tag>
    Level(protozero::basic_pbf_writer<Bytes>& outer, Tag tag) : builder(outer, tag) {}

    Builder<Annotation> builder;
    Kind kind = Kind::value;
  };

  /// Returns the annotation that the next value is of: of a list a new element.
  [[nodiscard]] Level& target();
  template <class Add>
  void put(const Add& add) {
    add(target().builder);
    levels_.pop_back();
  }

  std::deque<Level> levels_;  ///< each within the one before, to which its builder refers
};

/// Texts by number, each of which a sequence of packets has sent.
class SentNames {
 public:
  /// Returns the number of `name`, of those of `which`, and adds it to what is still to be sent.
  [[nodiscard]] std::uint64_t number_of(Interned which, std::string_view name);
  /// How many there are.
  [[nodiscard]] std::size_t size() const noexcept { return events_.size() + annotations_.size(); }
  /// Adds what is to be sent to a packet.
  void send(Builder<Packet>& packet);

 private:
  TextTable<std::uint64_t> events_, annotations_;
  Bytes pending_;  ///< encoded
};

/// The sequence of packets of one track.
class TrackSequence {
 public:
  TrackSequence(std::uint32_t number, std::uint64_t track) : number_(number), track_(track) {}

  [[nodiscard]] std::uint64_t track() const noexcept { return track_; }
  /// Begins with an event, before any of its names. The sequence begins anew where it has so many names that they would
  /// take much memory.
  void begin_event();
  [[nodiscard]] SentNames& names() noexcept { return names_; }
  /// Adds a packet with an event at `time`, ns of CLOCK_MONOTONIC, whose fields `write` adds; in any order, but
  /// quickest in that of time.
  template <class Write>
  void add(PacketBlock& block, std::uint64_t time, const Write& write) {
    if (last_ == 0) begin(block, time);
    block.add([&](Builder<Packet>& packet) {
      add_time(packet, time);
      packet.add_uint32(Packet::sequence, number_);
      packet.add_uint32(Packet::sequence_flags, kNeedsState);
      {
        Builder<TrackEvent> event(packet, Packet::track_event);
        write(event);
      }
      names_.send(packet);
    });
  }

 private:
  /// Says what holds for all packets to come: the track of their events, and their clock.
  void begin(PacketBlock& block, std::uint64_t time);
  void add_time(Builder<Packet>& packet, std::uint64_t time);

  std::uint32_t number_;
  std::uint64_t track_;
  std::uint64_t last_ = 0;  ///< time of the packet before; 0: there was none
  SentNames names_;
};

/// Adds the stack of an event, outermost first.
void add_stack(Builder<TrackEvent>& event, const Stack& stack);

/// Foreign text as protobuf has it, UTF-8, without control characters. Names of probes and of what was asked are
/// unambiguous by themselves, and have Escapes::controls.
[[nodiscard]] std::string safe_text(std::string_view text, io::Escapes escapes = io::Escapes::all);

}  // namespace usdt::exports::perfetto
