// SPDX-License-Identifier: BSD-2-Clause
#include "record/block_stream.hpp"

#include <sys/utsname.h>

#include "base/try.hpp"

namespace usdt::record {
namespace {

/// A block of events is ended once they take so much unpacked: large enough to compress well (docs/recording.md).
constexpr std::size_t kEnough = 256U << 10;
/// Nor does an event wait for longer.
constexpr std::chrono::seconds kLongest{1};

RecordingInfo with_system(RecordingInfo info) {
  utsname system{};
  if (::uname(&system) != 0) return info;
  if (info.machine.empty()) info.machine = system.machine;
  if (info.kernel.empty()) info.kernel = system.release;
  return info;
}

}  // namespace

BlockStream::BlockStream(const AttachPlan& plan, const EventLayout& layout, const RecordingInfo& info)
    : plan_(&plan), string_size_(layout.string_size), events_(layout.weight) {
  definitions_.info(with_system(info), layout, plan.kernel_machine);
  definitions_.plan(plan);
}

Result<void> BlockStream::event(const Event& event, std::int64_t wall_offset, const EventStacks& stacks,
                                const Emit& emit) {
  if (&event.plan() != plan_ || definitions_.has_grown(*plan_)) {
    TRY(plan(event.plan(), emit));
  }
  if (event.layout().string_size > string_size_) {
    string_size_ = event.layout().string_size;
    definitions_.string_size(string_size_);
    TRY(flush(emit));
  }
  if (events_.events() == 0) oldest_ = Clock::now();
  events_.add(event, wall_offset, stacks);
  const std::uint32_t probe = event.site().probe.value;
  if (probe >= of_probe_.size()) of_probe_.resize(plan_->probes.size());
  if (of_probe_[probe]++ == 0) probes_.push_back(probe);
  return events_.size() < kEnough ? Result<void>() : flush(emit);
}

Result<void> BlockStream::plan(const AttachPlan& plan, const Emit& emit) {
  plan_ = &plan;
  definitions_.plan(plan);
  return definitions_.empty() ? Result<void>() : emit_between(emit);
}

Result<void> BlockStream::property(std::string_view name, std::string_view text, const Emit& emit) {
  definitions_.property(name, text);
  return emit_definitions(emit);
}

Result<void> BlockStream::followed(const Followed& followed, const Emit& emit) {
  definitions_.followed(followed);
  return emit_between(emit);
}

/// The events so far refer to what was defined before.
Result<void> BlockStream::emit_between(const Emit& emit) {
  TRY(emit_events(emit));
  return emit_definitions(emit);
}

Result<void> BlockStream::notice(const RecordedNotice& notice, const Emit& emit) {
  definitions_.notice(notice);
  return emit_definitions(emit);
}

Result<void> BlockStream::ledger(const RecordedLedger& ledger, const Emit& emit) {
  definitions_.plan(*plan_);
  definitions_.ledger(ledger);
  return flush(emit);
}

/// Events come behind what they refer to.
Result<void> BlockStream::flush(const Emit& emit) {
  TRY(emit_definitions(emit));
  return emit_events(emit);
}

Result<void> BlockStream::flush_if_due(const Emit& emit) {
  if (events_.events() == 0 || Clock::now() - oldest_ < kLongest) return {};
  return flush(emit);
}

Result<void> BlockStream::end(const Emit& emit) {
  TRY(flush(emit));
  return emit({.kind = BlockKind::end, .bytes = packer_.pack(BlockKind::end, {})});
}

Result<void> BlockStream::emit_definitions(const Emit& emit) {
  Result<void> emitted;
  definitions_.take([&](ByteSpan content) {
    Block block{.kind = BlockKind::definitions, .bytes = packer_.pack(BlockKind::definitions, content)};
    if (emitted) emitted = emit(std::move(block));
  });
  return emitted;
}

Result<void> BlockStream::emit_events(const Emit& emit) {
  if (events_.events() == 0) return {};
  Block block{.kind = BlockKind::events, .events = events_.events(), .first = events_.first(), .last = events_.last()};
  block.bytes = packer_.pack(BlockKind::events, events_.bytes(), block.first, block.last);
  for (const std::uint32_t probe : probes_) block.by_probe.emplace_back(probe, std::exchange(of_probe_[probe], 0));
  probes_.clear();
  events_.clear();
  return emit(std::move(block));
}

}  // namespace usdt::record
