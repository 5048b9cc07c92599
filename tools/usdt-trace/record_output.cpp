// SPDX-License-Identifier: BSD-2-Clause
#include "record_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <ctime>
#include <utility>

namespace usdt_trace {
namespace {

// Names of properties.
constexpr std::string_view kPrint = "print.", kPrintOf = "print_of.", kWhere = "where", kKernelStack = "kstack",
                           kUserStack = "ustack";

std::string text_of(const PrintList& list) {
  std::vector<std::string_view> items;
  for (const PrintItem& item : list) items.push_back(item.label);
  return fmt::format("{}", fmt::join(items, ", "));
}

usdt::RecordingInfo info_of(const Printed& printed, const Flags& flags) {
  usdt::RecordingInfo info{.made_by = "usdt-trace " USDT_VERSION};
  const auto add = [&](std::string name, std::string text) {
    info.properties.emplace_back(std::move(name), std::move(text));
  };
  for (std::size_t n = 0; n < printed.lists.size(); ++n) add(fmt::format("{}{}", kPrint, n), text_of(printed.lists[n]));
  for (std::size_t probe = 0; probe < printed.of_probe.size(); ++probe)
    if (const ListNumber list = printed.of_probe[probe]; list != 0)
      add(fmt::format("{}{}", kPrintOf, probe), fmt::format("{}", list));
  if (flags.where) add(std::string(kWhere), flags.where->text);
  if (flags.kernel_stack_depth > 0) add(std::string(kKernelStack), fmt::format("{}", flags.kernel_stack_depth));
  if (flags.user_stack_depth > 0) add(std::string(kUserStack), fmt::format("{}", flags.user_stack_depth));
  return info;
}

usdt::RecordedLedger ledger_of(const Summary& summary) {
  usdt::RecordedLedger ledger{.missed = summary.missed,
                              .missed_hits = summary.missed_hits,
                              .undecided = summary.undecided,
                              .skipped = summary.skipped,
                              .changes = summary.changed};
  ledger.probes.assign(summary.probes.begin(), summary.probes.end());
  return ledger;
}

std::uint64_t monotonic_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

RecordOutput::RecordOutput(const usdt::Tracer& tracer, const Printed& printed, const Flags& flags, Surroundings& around,
                           usdt::tools::Stream& out)
    : Output(around, out),
      kernel_stacks_(flags.kernel_stack_depth > 0),
      user_stacks_(flags.user_stack_depth > 0),
      strict_(flags.strict) {
  trace(tracer.plan());
  // The stream tells later whether what it was given is written.
  const auto sink = [this](const usdt::RecordedBlock& block) -> usdt::Result<void> {
    out_.bytes(block.bytes);
    Output::printed(block.events);
    return {};
  };
  auto writer = usdt::RecordingWriter::start(sink, tracer.plan(), tracer.layout(), info_of(printed, flags));
  if (writer) writer_.emplace(std::move(*writer));
}

void RecordOutput::write_event(const usdt::Event& event) {
  usdt::EventStacks stacks;
  if (kernel_stacks_ && !event.probe().file) stacks.kernel = &around_.kernel_stack();
  if (user_stacks_) stacks.user = &around_.user_stack();
  static_cast<void>(writer_->event(event, around_.wall_offset(), stacks));
  for (std::size_t n = 0; strict_ && n < event.arg_count(); ++n)
    if (!event.arg_info(n).hidden && std::holds_alternative<usdt::ArgError>(event.value(n))) ++unreadable_;
}

void RecordOutput::write_summary(const Summary& summary) { static_cast<void>(writer_->finish(ledger_of(summary))); }

void RecordOutput::print_due() { static_cast<void>(writer_->flush_if_due()); }

void RecordOutput::notice(const std::string& text) {
  static_cast<void>(writer_->notice({.timestamp = monotonic_now(), .text = text}));
}

bool RecordOutput::account_due() const { return Clock::now() - accounted_ >= std::chrono::seconds(10); }

void RecordOutput::account(const Summary& summary) {
  static_cast<void>(writer_->ledger(ledger_of(summary)));
  accounted_ = Clock::now();
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

std::uint32_t number_in(const usdt::Recording& recording, std::string_view name) {
  return static_cast<std::uint32_t>(number_behind(recording.property(name).value_or(""), "").value_or(0));
}

}  // namespace

usdt::Result<RecordedView> recorded_view(const usdt::Recording& recording) {
  RecordedView view;
  view.printed.of_probe.resize(recording.plan()->probes.size());
  for (const auto& [name, text] : recording.info().properties) {
    if (number_behind(name, kPrint)) {
      auto list = text.empty() ? PrintList() : parse_print_list(text);
      if (!list) return usdt::fail(list.error().within("the recording"));
      view.printed.lists.push_back(std::move(*list));
    } else if (const auto probe = number_behind(name, kPrintOf); probe && *probe < view.printed.of_probe.size()) {
      view.printed.of_probe[*probe] = static_cast<ListNumber>(number_behind(text, "").value_or(0));
    }
  }
  if (view.printed.lists.empty()) view.printed.lists.emplace_back();
  for (ListNumber& list : view.printed.of_probe)
    if (list >= view.printed.lists.size()) list = 0;
  view.where = recording.property(kWhere).value_or("");
  view.kernel_stack_depth = number_in(recording, kKernelStack);
  view.user_stack_depth = number_in(recording, kUserStack);
  return view;
}

}  // namespace usdt_trace
