// SPDX-License-Identifier: BSD-2-Clause
#include "record_output.hpp"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <utility>

#include "common/report.hpp"

namespace usdt_trace {
namespace {

/// Whether value `n`, of those that are shown, could not be read. What is no number is read by its parts.
bool is_unreadable(const usdt::Event& event, std::size_t n) {
  const usdt::Arg& arg = event.arg_info(n);
  if (arg.hidden || !is_there(event, n)) return false;
  if (arg.is_list()) return !length_of(event, n);
  for (std::size_t part = n + 1; has_members(arg) && part < event.arg_count(); ++part)
    if (event.arg_info(part).part_of == n) return false;
  return std::holds_alternative<usdt::ArgError>(event.value(n));
}

/// What both ways to record have in common.
class Recorder : public Output {
 protected:
  Recorder(const Flags& flags, usdt::Surroundings& around, usdt::tools::Stream& out)
      : Output(around, out), flags_(flags) {}
  void count_unreadable(const usdt::Event& event) {
    for (std::size_t n = 0; flags_.strict && n < event.arg_count(); ++n)
      if (is_unreadable(event, n)) ++unreadable_;
  }

  const Flags& flags_;
};

/// Says by which list the probes from `first` on are printed.
template <class Recording>
void tell_lists(const usdt::Printed& printed, std::size_t first, Recording& recording) {
  for (const auto& [name, text] : usdt::list_properties(printed, first))
    static_cast<void>(recording.property(name, text));
}

usdt::RecordingInfo info_of(const usdt::Printed& printed, const Flags& flags) {
  return usdt::recording_info(flags.question, printed, "usdt-trace " USDT_VERSION);
}

class RecordOutput final : public Recorder {
 public:
  RecordOutput(const usdt::AnswerStart& start, const Flags& flags, usdt::tools::Stream& out)
      : Recorder(flags, start.around, out), printed_(start.printed) {
    // The stream tells later whether what it was given is written.
    const auto sink = [this](const usdt::RecordedBlock& block) -> usdt::Result<void> {
      out_.bytes(block.bytes);
      Output::printed(block.events);
      return {};
    };
    auto writer = usdt::RecordingWriter::start(sink, start.plan, *start.layout, info_of(start.printed, flags));
    if (writer) writer_.emplace(std::move(*writer));
    trace(start.plan, start.plan.probes.size());
  }

  void notice(const usdt::SessionNotice& notice) override {
    if (!notice.is_of_trace()) return;
    static_cast<void>(writer_->notice({.timestamp = usdt::event_clock(), .text = notice.text}));
  }
  bool wants_account() const override { return Clock::now() - accounted_ >= std::chrono::seconds(10); }
  void account(const usdt::SessionSummary& summary) override {
    static_cast<void>(writer_->ledger(usdt::recorded_ledger(summary)));
    accounted_ = Clock::now();
  }

 protected:
  void look_up(const usdt::AttachPlan& plan, std::size_t /*probes*/) override {
    static_cast<void>(writer_->plan(plan));
    tell_lists(printed_, std::exchange(lists_told_, plan.probes.size()), *writer_);
  }
  void write_followed(const usdt::Followed& followed) override { static_cast<void>(writer_->followed(followed)); }
  void write_event(const usdt::Event& event) override {
    static_cast<void>(writer_->event(event, around_.wall_offset(), around_.stacks(flags_.question.stacks, event)));
    count_unreadable(event);
  }
  void write_summary(const usdt::SessionSummary& summary) override {
    static_cast<void>(writer_->finish(usdt::recorded_ledger(summary)));
  }
  void print_due() override { static_cast<void>(writer_->flush_if_due()); }

 private:
  using Clock = std::chrono::steady_clock;
  const usdt::Printed& printed_;
  std::size_t lists_told_ = 0;  ///< probes of which it was said by which list they are printed
  Clock::time_point accounted_ = Clock::now();
  std::optional<usdt::RecordingWriter> writer_;
};

/// --last: what is kept reaches the file at the end.
class FlightOutput final : public Recorder {
 public:
  FlightOutput(const usdt::AnswerStart& start, const Flags& flags, usdt::tools::Stream& out)
      : Recorder(flags, start.around, out),
        recorder_(usdt::FlightRecorder::start(start.plan, *start.layout, info_of(start.printed, flags),
                                              {.time = *flags.question.recording.last})),
        printed_(start.printed),
        quiet_(flags.output.quiet) {
    trace(start.plan, start.plan.probes.size());
  }

  void event(const usdt::Event& event) override {
    ++taken_[event.site().probe.value];
    recorder_.event(event, around_.wall_offset(), around_.stacks(flags_.question.stacks, event));
    count_unreadable(event);
  }
  void notice(const usdt::SessionNotice& notice) override {
    if (!notice.is_of_trace()) return;
    recorder_.notice({.timestamp = usdt::event_clock(), .text = notice.text});
  }

  std::vector<std::uint64_t> forgotten() override {
    std::vector<std::uint64_t> forgotten = taken_;
    const std::vector<std::uint64_t> kept = recorder_.kept().events;
    for (std::size_t n = 0; n < kept.size(); ++n) forgotten[n] -= kept[n];
    return forgotten;
  }

  void ending(const usdt::SessionSummary& summary) override {
    const usdt::FlightRecorder::Kept kept = recorder_.kept();
    static_cast<void>(recorder_.write(
        [this](const usdt::RecordedBlock& block) -> usdt::Result<void> {
          out_.bytes(block.bytes);
          return {};
        },
        usdt::recorded_ledger(summary)));
    written_at_ = out_.printed();
    if (quiet_) return;
    usdt::tools::print_notice(fmt::format(
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
  void look_up(const usdt::AttachPlan& plan, std::size_t /*probes*/) override {
    recorder_.plan(plan);
    tell_lists(printed_, taken_.size(), recorder_);
    taken_.resize(plan.probes.size());
  }
  void write_followed(const usdt::Followed& followed) override { recorder_.followed(followed); }
  void write_event(const usdt::Event&) override {}
  void write_summary(const usdt::SessionSummary&) override {}

 private:
  usdt::FlightRecorder recorder_;
  const usdt::Printed& printed_;
  bool quiet_;
  std::vector<std::uint64_t> taken_;  ///< events, by probe
  std::uint64_t written_at_ = 0;      ///< where the recording ends in the stream
};

}  // namespace

std::unique_ptr<Output> make_recorder(const usdt::AnswerStart& start, const Flags& flags, usdt::tools::Stream& out) {
  if (flags.question.recording.last) return std::make_unique<FlightOutput>(start, flags, out);
  return std::make_unique<RecordOutput>(start, flags, out);
}

}  // namespace usdt_trace
