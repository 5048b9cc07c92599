// SPDX-License-Identifier: BSD-2-Clause
#include "record_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <utility>

#include "common/report.hpp"

namespace usdt_trace {
namespace {

// Names of properties.
constexpr std::string_view kPrint = "print.", kPrintOf = "print_of.", kWhere = "where", kKernelStack = "kstack",
                           kUserStack = "ustack", kKernelStackInLists = "kstack_in_lists",
                           kUserStackInLists = "ustack_in_lists", kSample = "sample", kMaxRate = "max_rate",
                           kMaxOverhead = "max_overhead", kLast = "last", kBegan = "began";

std::string text_of(const usdt::PrintList& list) {
  std::vector<std::string_view> items;
  for (const usdt::PrintItem& item : list) items.push_back(item.label);
  return fmt::format("{}", fmt::join(items, ", "));
}

usdt::RecordingInfo info_of(const usdt::Printed& printed, const Flags& flags) {
  usdt::RecordingInfo info{.made_by = "usdt-trace " USDT_VERSION};
  const auto add = [&](std::string name, std::string text) {
    info.properties.emplace_back(std::move(name), std::move(text));
  };
  for (std::size_t n = 0; n < printed.lists.size(); ++n) add(fmt::format("{}{}", kPrint, n), text_of(printed.lists[n]));
  if (flags.question.where) add(std::string(kWhere), flags.question.where->text);
  add(std::string(kBegan), fmt::format("{}", flags.question.began));
  if (flags.question.stacks.kernel_depth > 0)
    add(std::string(kKernelStack), fmt::format("{}", flags.question.stacks.kernel_depth));
  if (flags.question.stacks.user_depth > 0)
    add(std::string(kUserStack), fmt::format("{}", flags.question.stacks.user_depth));
  if (flags.question.stacks.kernel_in_lists) add(std::string(kKernelStackInLists), "1");
  if (flags.question.stacks.user_in_lists) add(std::string(kUserStackInLists), "1");
  if (flags.question.limits.sample > 1) add(std::string(kSample), fmt::format("{}", flags.question.limits.sample));
  if (flags.question.limits.max_rate > 0) add(std::string(kMaxRate), fmt::format("{}", flags.question.limits.max_rate));
  if (flags.question.limits.max_overhead > 0)
    add(std::string(kMaxOverhead), fmt::format("{}", flags.question.limits.max_overhead));
  if (flags.question.recording.last) add(std::string(kLast), fmt::format("{}", flags.question.recording.last->count()));
  return info;
}

/// Says by which list the probes from `first` on are printed.
template <class Recording>
void tell_lists(const usdt::Printed& printed, std::size_t first, Recording& recording) {
  for (std::size_t probe = first; probe < printed.of_probe.size(); ++probe)
    if (const usdt::ListNumber list = printed.of_probe[probe]; list != 0)
      static_cast<void>(recording.property(fmt::format("{}{}", kPrintOf, probe), fmt::format("{}", list)));
}

usdt::RecordedLedger ledger_of(const usdt::SessionSummary& summary) {
  usdt::RecordedLedger ledger{.missed = summary.missed,
                              .missed_hits = summary.missed_hits,
                              .undecided = summary.undecided,
                              .skipped = summary.skipped,
                              .changes = summary.changed};
  ledger.probes.assign(summary.probes.begin(), summary.probes.end());
  return ledger;
}

class RecordOutput final : public Recorder {
 public:
  RecordOutput(const usdt::Tracer& tracer, const usdt::Printed& printed, const Flags& flags, usdt::Surroundings& around,
               usdt::tools::Stream& out)
      : Recorder(flags, around, out), printed_(printed) {
    // The stream tells later whether what it was given is written.
    const auto sink = [this](const usdt::RecordedBlock& block) -> usdt::Result<void> {
      out_.bytes(block.bytes);
      Output::printed(block.events);
      return {};
    };
    auto writer = usdt::RecordingWriter::start(sink, tracer.plan(), tracer.layout(), info_of(printed, flags));
    if (writer) writer_.emplace(std::move(*writer));
    trace(tracer.plan(), tracer.plan().probes.size());
  }

  void notice(const usdt::SessionNotice& notice) override {
    static_cast<void>(writer_->notice({.timestamp = usdt::event_clock(), .text = notice.text}));
  }
  bool account_due() const override { return Clock::now() - accounted_ >= std::chrono::seconds(10); }
  void account(const usdt::SessionSummary& summary) override {
    static_cast<void>(writer_->ledger(ledger_of(summary)));
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
    static_cast<void>(writer_->finish(ledger_of(summary)));
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
  FlightOutput(const usdt::Tracer& tracer, const usdt::Printed& printed, const Flags& flags, usdt::Surroundings& around,
               usdt::tools::Stream& out)
      : Recorder(flags, around, out),
        recorder_(usdt::FlightRecorder::start(tracer.plan(), tracer.layout(), info_of(printed, flags),
                                              {.time = *flags.question.recording.last})),
        printed_(printed),
        quiet_(flags.output.quiet) {
    trace(tracer.plan(), tracer.plan().probes.size());
  }

  void event(const usdt::Event& event) override {
    ++taken_[event.site().probe.value];
    recorder_.event(event, around_.wall_offset(), around_.stacks(flags_.question.stacks, event));
    count_unreadable(event);
  }
  void notice(const usdt::SessionNotice& notice) override {
    recorder_.notice({.timestamp = usdt::event_clock(), .text = notice.text});
  }

  std::vector<std::uint64_t> forgotten() override {
    std::vector<std::uint64_t> forgotten = taken_;
    const std::vector<std::uint64_t> kept = recorder_.kept().events;
    for (std::size_t n = 0; n < kept.size(); ++n) forgotten[n] -= kept[n];
    return forgotten;
  }

  void dump(const usdt::SessionSummary& summary) override {
    const usdt::FlightRecorder::Kept kept = recorder_.kept();
    static_cast<void>(recorder_.write(
        [this](const usdt::RecordedBlock& block) -> usdt::Result<void> {
          out_.bytes(block.bytes);
          return {};
        },
        ledger_of(summary)));
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

/// Whether value `n`, of those that are shown, could not be read. What is no number is read by its parts.
bool is_unreadable(const usdt::Event& event, std::size_t n) {
  const usdt::Arg& arg = event.arg_info(n);
  if (arg.hidden || !is_there(event, n)) return false;
  if (arg.is_list()) return !length_of(event, n);
  for (std::size_t part = n + 1; has_members(arg) && part < event.arg_count(); ++part)
    if (event.arg_info(part).part_of == n) return false;
  return std::holds_alternative<usdt::ArgError>(event.value(n));
}

}  // namespace

Recorder::Recorder(const Flags& flags, usdt::Surroundings& around, usdt::tools::Stream& out)
    : Output(around, out), flags_(flags) {}

void Recorder::count_unreadable(const usdt::Event& event) {
  for (std::size_t n = 0; flags_.strict && n < event.arg_count(); ++n)
    if (is_unreadable(event, n)) ++unreadable_;
}

std::unique_ptr<Recorder> make_recorder(const usdt::Tracer& tracer, const usdt::Printed& printed, const Flags& flags,
                                        usdt::Surroundings& around, usdt::tools::Stream& out) {
  if (flags.question.recording.last) return std::make_unique<FlightOutput>(tracer, printed, flags, around, out);
  return std::make_unique<RecordOutput>(tracer, printed, flags, around, out);
}

namespace {

/// The number behind `prefix`; nothing: `name` is another one.
std::optional<std::size_t> number_behind(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? std::optional(number) : std::nullopt;
}

/// 0: there is none.
double share_in(const usdt::Recording& recording, std::string_view name) {
  const std::string text(recording.property(name).value_or(""));
  double share = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
  const bool good = error == std::errc() && share > 0 && share <= usdt::TraceOptions::kMostOverhead;
  return good ? share : 0;
}

std::uint32_t number_in(const usdt::Recording& recording, std::string_view name) {
  return static_cast<std::uint32_t>(number_behind(recording.property(name).value_or(""), "").value_or(0));
}

}  // namespace

usdt::Result<RecordedView> recorded_view(const usdt::Recording& recording) {
  RecordedView view;
  view.printed.of_probe.resize(recording.plan()->probes.size());
  for (const auto& [name, text] : recording.info().properties) {
    if (number_behind(name, kPrint)) {
      auto list = text.empty() ? usdt::PrintList() : usdt::parse_print_list(text, kOptionPrefix);
      if (!list) return usdt::fail(list.error().within("the recording"));
      view.printed.lists.push_back(std::move(*list));
    } else if (const auto probe = number_behind(name, kPrintOf); probe && *probe < view.printed.of_probe.size()) {
      view.printed.of_probe[*probe] = static_cast<usdt::ListNumber>(number_behind(text, "").value_or(0));
    }
  }
  if (view.printed.lists.empty()) view.printed.lists.emplace_back();
  for (usdt::ListNumber& list : view.printed.of_probe)
    if (list >= view.printed.lists.size()) list = 0;
  view.where = recording.property(kWhere).value_or("");
  view.kernel_stack_depth = number_in(recording, kKernelStack);
  view.user_stack_depth = number_in(recording, kUserStack);
  view.kernel_stack_in_lists = number_in(recording, kKernelStackInLists) > 0;
  view.user_stack_in_lists = number_in(recording, kUserStackInLists) > 0;
  view.sample = std::max(number_in(recording, kSample), 1U);
  view.max_rate = number_in(recording, kMaxRate);
  if (const auto last = number_behind(recording.property(kLast).value_or(""), ""))
    view.last = std::chrono::nanoseconds(static_cast<std::int64_t>(std::min<std::size_t>(*last, INT64_MAX)));
  view.max_overhead = share_in(recording, kMaxOverhead);
  view.began = number_behind(recording.property(kBegan).value_or(""), "").value_or(0);
  return view;
}

}  // namespace usdt_trace
