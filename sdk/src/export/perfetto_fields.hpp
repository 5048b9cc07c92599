// SPDX-License-Identifier: BSD-2-Clause
// Numbers of the protobuf fields of Perfetto's traces (protos/perfetto/trace/ of its sources, 58.2 of August 2026).
#pragma once

#include <cstdint>
#include <protozero/basic_pbf_builder.hpp>
#include <protozero/buffer_vector.hpp>
#include <vector>

namespace usdt::exports::perfetto {

using protozero::pbf_tag_type;

/// Encoded bytes. A vector takes a byte in a few instructions, a string in some twenty.
using Bytes = std::vector<char>;
template <class Tag>
using Builder = protozero::basic_pbf_builder<Bytes, Tag>;

enum class Trace : pbf_tag_type { packet = 1 };

enum class Packet : pbf_tag_type {
  clock_snapshot = 6,
  timestamp = 8,
  sequence = 10,
  track_event = 11,
  interned = 12,
  sequence_flags = 13,
  compressed = 50,  ///< packets, as zlib deflates them
  timestamp_clock = 58,
  defaults = 59,
  track_descriptor = 60,
};

/// Bits of Packet::sequence_flags.
inline constexpr std::uint32_t kStateCleared = 1, kNeedsState = 2;

enum class Defaults : pbf_tag_type { track_event = 11, timestamp_clock = 58 };

enum class Track : pbf_tag_type { uuid = 1, name = 2, process = 3, thread = 4, parent = 5, counter = 8 };
enum class Process : pbf_tag_type { pid = 1, name = 6 };
enum class Thread : pbf_tag_type { pid = 1, tid = 2, name = 5 };
enum class Counter : pbf_tag_type { unit = 3 };
inline constexpr std::int32_t kUnitCount = 2;

enum class TrackEvent : pbf_tag_type {
  annotation = 4,
  type = 9,
  name_iid = 10,
  track = 11,
  name = 23,
  counter_value = 30,
  flow = 47,              ///< fixed64: those of one number are joined by arrows, in the order of time
  terminating_flow = 48,  ///< fixed64
  callstack = 55,
};
/// TrackEvent::type.
enum class EventType : std::int32_t { begin = 1, end = 2, instant = 3, counter = 4 };

enum class Annotation : pbf_tag_type {
  name_iid = 1,
  natural = 3,
  whole = 4,
  real = 5,
  text = 6,
  name = 10,
  entry = 11,    ///< of a dictionary
  element = 12,  ///< of an array
};

/// Frames lie outermost first.
enum class Callstack : pbf_tag_type { frame = 1 };
enum class CallstackFrame : pbf_tag_type { function = 1, source = 2, line = 3 };

enum class Interned : pbf_tag_type { event_name = 2, annotation_name = 3 };
enum class InternedText : pbf_tag_type { iid = 1, text = 2 };

enum class Clocks : pbf_tag_type { clock = 1, primary = 2 };
enum class Clock : pbf_tag_type { id = 1, timestamp = 2, is_incremental = 3 };
inline constexpr std::uint32_t kRealtime = 1, kMonotonic = 3;
/// A clock of one sequence of packets, each of whose times is the difference to the one before.
inline constexpr std::uint32_t kSinceLast = 64;

}  // namespace usdt::exports::perfetto
