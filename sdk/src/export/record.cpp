// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <utility>

#include "export/formats.hpp"
#include "export/output.hpp"
#include "usdt/recorded_question.hpp"
#include "usdt/recording.hpp"
#include "usdt/replay.hpp"

namespace usdt::exports {
namespace {

/// Whether value `n`, of those that are shown, could not be read. What is no number is read by its parts.
bool is_unreadable(const Event& event, std::size_t n) {
  const Arg& arg = event.arg_info(n);
  if (arg.hidden || !is_there(event, n)) return false;
  if (arg.is_list()) return !length_of(event, n);
  for (std::size_t part = n + 1; has_members(arg) && part < event.arg_count(); ++part)
    if (event.arg_info(part).part_of == n) return false;
  return std::holds_alternative<ArgError>(event.value(n));
}

/// The common part of both ways to record.
class Recorder : public Output {
 protected:
  Recorder(const AnswerStart& start, const OutputPlace& place)
      : Output(start, place), printed_(start.printed), wanted_(start.question.stacks), options_(place.shared.options) {}
  void count_unreadable(const Event& event) {
    for (std::size_t n = 0; options_.counts_unreadable && n < event.arg_count(); ++n)
      if (is_unreadable(event, n)) ++unreadable_;
  }

  const Printed& printed_;
  const AskedStacks& wanted_;
  const SinkOptions& options_;
};

/// Says by which list the probes from `first` on are printed.
template <class Recording>
void tell_lists(const Printed& printed, std::size_t first, Recording& recording) {
  for (const auto& [name, text] : list_properties(printed, first)) static_cast<void>(recording.property(name, text));
}

RecordingInfo info_of(const AnswerStart& start, const OutputPlace& place) {
  return recording_info(start.question, start.printed, place.shared.options.program);
}

class RecordOutput final : public Recorder {
 public:
  RecordOutput(const AnswerStart& start, const OutputPlace& place) : Recorder(start, place) {
    // The stream tells later whether what it was given is written.
    const auto sink = [this](const RecordedBlock& block) -> Result<void> {
      out_.bytes(block.bytes);
      Output::printed(block.events);
      return {};
    };
    auto writer = RecordingWriter::start(sink, start.plan, *start.layout, info_of(start, place));
    if (writer) writer_.emplace(std::move(*writer));
    trace(start.plan, start.plan.probes.size());
  }

  void notice(const SessionNotice& notice) override {
    if (!notice.is_of_trace()) return;
    static_cast<void>(writer_->notice({.timestamp = event_clock(), .text = notice.text}));
  }
  bool wants_account() const override { return Clock::now() - accounted_ >= std::chrono::seconds(10); }
  void account(const SessionSummary& summary) override {
    static_cast<void>(writer_->ledger(recorded_ledger(summary)));
    accounted_ = Clock::now();
  }

 protected:
  void look_up(const AttachPlan& plan, std::size_t /*probes*/) override {
    static_cast<void>(writer_->plan(plan));
    tell_lists(printed_, std::exchange(lists_told_, plan.probes.size()), *writer_);
  }
  void write_followed(const Followed& followed) override { static_cast<void>(writer_->followed(followed)); }
  void write_event(const Event& event) override {
    static_cast<void>(writer_->event(event, around_.wall_offset(), around_.stacks(wanted_, event)));
    count_unreadable(event);
  }
  void write_summary(const SessionSummary& summary) override {
    static_cast<void>(writer_->finish(recorded_ledger(summary)));
  }
  void print_due() override { static_cast<void>(writer_->flush_if_due()); }

 private:
  using Clock = std::chrono::steady_clock;
  std::size_t lists_told_ = 0;  ///< probes of which it was said by which list they are printed
  Clock::time_point accounted_ = Clock::now();
  std::optional<RecordingWriter> writer_;
};

/// --last: what is kept reaches the file at the end.
class FlightOutput final : public Recorder {
 public:
  FlightOutput(const AnswerStart& start, const OutputPlace& place)
      : Recorder(start, place),
        recorder_(FlightRecorder::start(start.plan, *start.layout, info_of(start, place),
                                        {.time = *start.question.recording.last})) {
    trace(start.plan, start.plan.probes.size());
  }

  void event(const Event& event) override {
    ++taken_[event.site().probe.value];
    recorder_.event(event, around_.wall_offset(), around_.stacks(wanted_, event));
    count_unreadable(event);
  }
  void notice(const SessionNotice& notice) override {
    if (!notice.is_of_trace()) return;
    recorder_.notice({.timestamp = event_clock(), .text = notice.text});
  }

  std::vector<std::uint64_t> forgotten() override {
    std::vector<std::uint64_t> forgotten = taken_;
    const std::vector<std::uint64_t> kept = recorder_.kept().events;
    for (std::size_t n = 0; n < kept.size(); ++n) forgotten[n] -= kept[n];
    return forgotten;
  }

  void ending(const SessionSummary& summary) override {
    const FlightRecorder::Kept kept = recorder_.kept();
    static_cast<void>(recorder_.write(
        [this](const RecordedBlock& block) -> Result<void> {
          out_.bytes(block.bytes);
          return {};
        },
        recorded_ledger(summary)));
    written_at_ = out_.printed();
    if (!options_.tell) return;
    options_.tell(fmt::format(
        "kept the last {:.1f} s in {:.1f} MiB{}", static_cast<double>(kept.last - kept.first) / 1e9,
        static_cast<double>(kept.bytes) / (1 << 20), kept.out_of_room ? ": there was no room for more" : ""));
  }
  /// A file that is not whole may be read as far as it goes, but nobody has promised how far.
  void give_up() override {
    Output::give_up();
    if (out_.written() >= written_at_) return;
    const std::vector<std::uint64_t> kept = recorder_.kept().events;
    for (std::size_t n = 0; n < kept.size(); ++n) not_written_[n] = kept[n];
  }

 protected:
  void look_up(const AttachPlan& plan, std::size_t /*probes*/) override {
    recorder_.plan(plan);
    tell_lists(printed_, taken_.size(), recorder_);
    taken_.resize(plan.probes.size());
  }
  void write_followed(const Followed& followed) override { recorder_.followed(followed); }
  void write_event(const Event&) override {}
  void write_summary(const SessionSummary&) override {}

 private:
  FlightRecorder recorder_;
  std::vector<std::uint64_t> taken_;  ///< events, by probe
  std::uint64_t written_at_ = 0;      ///< where the recording ends in the stream
};

}  // namespace

std::unique_ptr<Output> make_record_output(const AnswerStart& start, const OutputPlace& place) {
  if (start.question.recording.last) return std::make_unique<FlightOutput>(start, place);
  return std::make_unique<RecordOutput>(start, place);
}

}  // namespace usdt::exports
