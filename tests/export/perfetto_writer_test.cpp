// SPDX-License-Identifier: BSD-2-Clause
#include "export/perfetto_writer.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <map>
#include <protozero/pbf_message.hpp>
#include <string>
#include <vector>

namespace usdt::exports::perfetto {
namespace {

using protozero::pbf_message;

/// The packets of a block, as zlib inflates them.
std::string packets_of(PacketBlock& block) {
  const Bytes trace = block.take();
  pbf_message<Trace> outer(trace.data(), trace.size());
  EXPECT_TRUE(outer.next(Trace::packet));
  pbf_message<Packet> packet(outer.get_message());
  EXPECT_TRUE(packet.next(Packet::compressed));
  const auto deflated = packet.get_view();
  std::string inflated(1 << 22, '\0');
  uLongf size = inflated.size();
  EXPECT_EQ(::uncompress(reinterpret_cast<Bytef*>(inflated.data()), &size,
                         reinterpret_cast<const Bytef*>(deflated.data()), deflated.size()),
            Z_OK);
  inflated.resize(size);
  return inflated;
}

/// The names of events as a reader has them, which forgets all names where a sequence begins anew.
class NameReader {
 public:
  std::vector<std::string> read(const std::string& packets) {
    for (pbf_message<Trace> trace(packets); trace.next(Trace::packet);) take(pbf_message<Packet>(trace.get_message()));
    return seen_;
  }
  [[nodiscard]] int begun() const noexcept { return begun_; }

 private:
  /// The order of the fields says nothing: an event has the names that its own packet sends.
  void take(pbf_message<Packet> packet) {
    for (pbf_message<Packet> fields = packet; fields.next(Packet::sequence_flags);)
      if ((fields.get_uint32() & kStateCleared) != 0) names_.clear(), ++begun_;
    for (pbf_message<Packet> fields = packet; fields.next(Packet::interned);) {
      pbf_message<Interned> interned(fields.get_message());
      while (interned.next(Interned::event_name)) learn(pbf_message<InternedText>(interned.get_message()));
    }
    while (packet.next(Packet::track_event)) {
      pbf_message<TrackEvent> event(packet.get_message());
      while (event.next(TrackEvent::name_iid)) seen_.push_back(names_.at(event.get_uint64()));
    }
  }
  void learn(pbf_message<InternedText> text) {
    std::uint64_t number = 0;
    while (text.next()) {
      if (text.tag() == InternedText::iid)
        number = text.get_uint64();
      else
        names_[number] = text.get_string();
    }
  }

  std::map<std::uint64_t, std::string> names_;
  std::vector<std::string> seen_;
  int begun_ = 0;
};

TEST(TrackSequence, begins_anew_before_its_names_take_much_memory_and_readers_know_each) {
  PacketBlock block;
  TrackSequence sequence(1, 1);
  std::vector<std::string> names;
  for (int n = 0; n < 5000; ++n) {
    names.push_back(fmt::format("function_{}", n % 3000));
    sequence.begin_event();
    sequence.add(block, 1000 + static_cast<std::uint64_t>(n), [&](Builder<TrackEvent>& event) {
      event.add_uint64(TrackEvent::name_iid, sequence.names().number_of(Interned::event_name, names.back()));
    });
    EXPECT_LE(sequence.names().size(), 1024U);
  }
  NameReader reader;
  EXPECT_EQ(reader.read(packets_of(block)), names);
  EXPECT_EQ(reader.begun(), 5);
}

}  // namespace
}  // namespace usdt::exports::perfetto
