// SPDX-License-Identifier: BSD-2-Clause
#include "output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>

namespace usdt_trace {

std::int64_t WallClock::at(std::uint64_t monotonic_ns) {
  constexpr std::uint64_t second = 1'000'000'000;
  if (monotonic_ns >= asked_until_) {
    timespec real{}, monotonic{};
    ::clock_gettime(CLOCK_REALTIME, &real);
    ::clock_gettime(CLOCK_MONOTONIC, &monotonic);
    offset_ = (real.tv_sec - monotonic.tv_sec) * 1'000'000'000LL + (real.tv_nsec - monotonic.tv_nsec);
    asked_until_ = monotonic_ns + second;
  }
  return static_cast<std::int64_t>(monotonic_ns) + offset_;
}

Account Summary::total() const {
  Account sum;
  for (const Account& probe : probes) {
    sum.hits += probe.hits;
    sum.delivered += probe.delivered;
    sum.rejected += probe.rejected;
    sum.undecided += probe.undecided;
    sum.ring_full += probe.ring_full;
    sum.calls_full += probe.calls_full;
    sum.unfinished += probe.unfinished;
    sum.discarded += probe.discarded;
    sum.not_written += probe.not_written;
  }
  return sum;
}

bool has_calls(const usdt::AttachPlan& plan) {
  return std::ranges::any_of(plan.groups,
                             [](const usdt::AttachGroup& group) { return group.moment == usdt::Moment::both; });
}

Columns::Columns(const usdt::AttachPlan& plan, const Printed& printed)
    : printed_(printed), positions_(printed.lists.size(), std::vector<Positions>(plan.args.size())) {
  for (const usdt::PlannedSite& site : plan.sites) {
    Positions& row = positions_[printed.of_probe[site.probe.value]][site.args.value];
    if (!row.empty()) continue;
    for (const PrintItem& item : printed.of(site)) row.push_back(position_of(item, plan.args[site.args]));
  }
}

bool has_members(const usdt::Arg& arg) {
  return arg.type.kind == usdt::TypeKind::structure || arg.type.kind == usdt::TypeKind::array;
}

std::optional<usdt::Text> unasked_text(const usdt::AttachPlan& plan, const usdt::Event& event, std::size_t n) {
  const auto& args = plan.specs[event.site().spec].args;
  if (n >= args.size() || args[n].capture == USDT_CAPTURE_NONE) return std::nullopt;
  auto text = event.text(n);
  return text ? std::optional(*text) : std::nullopt;
}

std::optional<usdt::Text> described_text(const usdt::AttachPlan& plan, const usdt::Event& event, std::size_t n) {
  const bool site = event.probe().file && !event.probe().function;
  return site && event.arg_info(n).type.kind == usdt::TypeKind::text ? unasked_text(plan, event, n) : std::nullopt;
}

std::vector<std::string> short_names(const usdt::AttachPlan& plan) {
  std::map<std::string, std::size_t> files;
  std::vector<std::string> names;
  for (const usdt::PlannedProbe& probe : plan.probes)
    ++files[names.emplace_back(fmt::format("{}:{}", probe.provider, probe.name))];
  for (std::size_t i = 0; i < names.size(); ++i)
    if (files[names[i]] > 1) names[i] = usdt::full_name(plan, plan.probes[usdt::Index<usdt::PlannedProbe>(i)]);
  return names;
}

void begin_stacks(usdt::Symbolizer& symbolizer, const Flags& flags) {
  if (flags.user_stack_depth == 0) return;
  // Where the kernel does not let us, what /proc has makes do.
  static_cast<void>(symbolizer.watch());
  for (const pid_t pid : flags.pids) symbolizer.see(pid);
}

std::string issue_text(const usdt::Frame& frame) {
  return fmt::format("{}{}{}", to_string(frame.issue), frame.detail.empty() ? "" : ": ", frame.detail);
}

std::string kernel_frame_text(const usdt::Frame& frame) {
  if (frame.function.empty()) return fmt::format("{:#x}", frame.address.value);
  return fmt::format("{}+{:#x}{}", frame.function, frame.distance,
                     frame.module.empty() ? "" : fmt::format(" [{}]", frame.module));
}

void Output::event(const usdt::Event& event) {
  const std::uint32_t probe = event.site().probe.value;
  if (given_up_) {
    ++not_written_[probe];
    return;
  }
  write_event(event);
  lines_.push_back({out_.printed(), probe});
}

Output::Flushed Output::flush(const usdt::tools::Stream::Patience& patience) {
  if (given_up_) return Flushed::failed;
  const Flushed result = out_.flush(patience);
  if (result == Flushed::all) lines_.clear();
  if (result == Flushed::failed) give_up();
  return result;
}

void Output::give_up() {
  given_up_ = true;
  for (const Line& line : lines_)
    if (line.end > out_.written()) ++not_written_[line.probe];
  lines_.clear();
}

}  // namespace usdt_trace
