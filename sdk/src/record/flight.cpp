// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <deque>
#include <utility>

#include "base/try.hpp"
#include "record/block_stream.hpp"
#include "usdt/recording.hpp"

namespace usdt {
inline namespace v1 {

struct FlightRecorder::Impl {
  Impl(const AttachPlan& p, const EventLayout& layout, const RecordingInfo& info, const Limits& l)
      : limits(l), stream(p, layout, info), in_blocks(p.probes.size()) {}

  Result<void> keep(record::Block block) {
    if (block.kind != record::BlockKind::events) {
      definitions.push_back(std::move(block));
      return {};
    }
    for (const auto& [probe, events] : block.by_probe) {
      if (probe >= in_blocks.size()) in_blocks.resize(probe + std::size_t{1});
      in_blocks[probe] += events;
    }
    bytes += block.bytes.size();
    blocks.push_back(std::move(block));
    forget_old();
    return {};
  }

  void forget_old() {
    const std::uint64_t now = blocks.back().last;
    const auto time = static_cast<std::uint64_t>(limits.time.count());
    while (blocks.size() > 1) {
      const bool old = blocks.front().last + time < now;
      if (!old && bytes <= limits.bytes) return;
      out_of_room = !old;
      for (const auto& [probe, events] : blocks.front().by_probe) in_blocks[probe] -= events;
      bytes -= blocks.front().bytes.size();
      blocks.pop_front();
    }
  }

  Limits limits;
  record::BlockStream stream;
  std::vector<record::Block> definitions;
  std::deque<record::Block> blocks;
  std::vector<std::uint64_t> in_blocks;  ///< events, by probe
  std::uint64_t bytes = 0;
  bool out_of_room = false;
  record::BlockStream::Emit emit = [this](record::Block block) { return keep(std::move(block)); };
};

FlightRecorder::FlightRecorder(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
FlightRecorder::FlightRecorder(FlightRecorder&&) noexcept = default;
FlightRecorder& FlightRecorder::operator=(FlightRecorder&&) noexcept = default;
FlightRecorder::~FlightRecorder() = default;

FlightRecorder FlightRecorder::start(const AttachPlan& plan, const EventLayout& layout, RecordingInfo info,
                                     const Limits& limits) {
  return FlightRecorder(std::make_unique<Impl>(plan, layout, info, limits));
}

// Nothing that keeps a block in memory fails.
void FlightRecorder::plan(const AttachPlan& plan) {
  static_cast<void>(impl_->stream.plan(plan, impl_->emit));
  impl_->in_blocks.resize(plan.probes.size());
}

void FlightRecorder::event(const Event& event, std::int64_t wall_offset, const EventStacks& stacks) {
  // Blocks are forgotten as a whole, so each has an eighth of the time that is kept, and no more than a second.
  const auto longest =
      static_cast<std::uint64_t>(std::min<std::int64_t>(impl_->limits.time.count() / 8, 1'000'000'000));
  if (impl_->stream.waiting(event.timestamp()) > longest) static_cast<void>(impl_->stream.flush(impl_->emit));
  static_cast<void>(impl_->stream.event(event, wall_offset, stacks, impl_->emit));
}

void FlightRecorder::notice(const RecordedNotice& notice) {
  static_cast<void>(impl_->stream.notice(notice, impl_->emit));
}

void FlightRecorder::followed(const Followed& followed) {
  static_cast<void>(impl_->stream.followed(followed, impl_->emit));
}

void FlightRecorder::property(std::string_view name, std::string_view text) {
  static_cast<void>(impl_->stream.property(name, text, impl_->emit));
}

FlightRecorder::Kept FlightRecorder::kept() {
  static_cast<void>(impl_->stream.flush(impl_->emit));
  Kept kept{.events = impl_->in_blocks, .bytes = impl_->bytes, .out_of_room = impl_->out_of_room};
  if (impl_->blocks.empty()) return kept;
  kept.first = impl_->blocks.front().first;
  kept.last = impl_->blocks.back().last;
  return kept;
}

Result<void> FlightRecorder::write(const RecordingWriter::Sink& sink, const RecordedLedger& ledger) {
  static_cast<void>(impl_->stream.flush(impl_->emit));
  const auto head = record::file_head();
  if (auto written = sink({std::as_bytes(std::span(head)), 0}); !written) return written;
  const auto put = [&sink](const record::Block& block) {
    return sink({std::as_bytes(std::span(block.bytes)), block.events});
  };
  for (const record::Block& block : impl_->definitions) TRY(put(block));
  for (const record::Block& block : impl_->blocks) TRY(put(block));
  // The account is of this file alone: the next one has another.
  record::DefinitionWriter account;
  account.ledger(ledger);
  record::Packer packer;
  Result<void> written;
  account.take([&](ByteSpan content) {
    if (written) written = put({.bytes = packer.pack(record::BlockKind::definitions, content)});
  });
  if (!written) return written;
  return put({.bytes = packer.pack(record::BlockKind::end, {})});
}

}  // namespace v1
}  // namespace usdt
