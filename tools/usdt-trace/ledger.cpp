// SPDX-License-Identifier: BSD-2-Clause
#include "ledger.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "common/report.hpp"
#include "io/number_text.hpp"
#include "missed.hpp"

namespace usdt_trace {
namespace {

using usdt::tools::counted;

void say(const std::string& text) { usdt::tools::print_notice(text); }

}  // namespace

bool Ledger::has_losses() const {
  const usdt::Account total = facts_.summary.total();
  const bool let_go =
      std::ranges::any_of(facts_.summary.changed, [](const usdt::FileChange& change) { return change.let_go > 0; });
  // Calls that have not ended are no loss, and events that were discarded are so as asked for.
  const std::uint64_t lost = total.lost() - total.without_end() - total.discarded;
  return let_go || lost + total.undecided > 0 || facts_.summary.shielded > 0 || any_unseen() ||
         any_missed(facts_.summary.missed_hits);
}

void Ledger::print() const {
  const usdt::Account total = facts_.summary.total();
  say((flags_.question.name.empty() ? "" : flags_.question.name + ": ") + headline(total) +
      missed_text(facts_.summary.missed_hits));
  print_guarded(total);
  print_filtered(total);
  print_losers();
  print_changes();
  if (const std::uint64_t unknown = facts_.summary.undecided; unknown > 0)
    say(fmt::format("  {} not counted: processes too many generations down to tell whether they are the command's",
                    counted(unknown, "hit")));
  if (const std::uint64_t programs = facts_.summary.shielded; programs > 0)
    say(fmt::format(
        "  {} executed with which the kernel took the events of their processes (setuid, or not readable by "
        "its user): their hits from then on are in no number",
        counted(programs, "program")));
  print_started();
  if (total.ring_full > 0)
    say(fmt::format("  a larger --ring-size than {} MiB loses fewer", flags_.question.attaching.ring_size(false)));
  if (total.table_full > 0)
    say(fmt::format("  more --max-rows than {} lose fewer", flags_.question.view.question->max_rows));
  hint_at_children();
  hint_at_command();
}

/// Whether processes that were started, which usdt-broker attaches to one by one, were not attached.
bool Ledger::any_unseen() const {
  const auto& started = facts_.summary.started;
  return started && started->too_short + started->refused > 0;
}

void Ledger::print_started() const {
  if (!facts_.summary.started) return;
  const usdt::StartedProcesses& started = *facts_.summary.started;
  if (started.attached > 0)
    say(fmt::format("  {} attached some milliseconds after their start: earlier hits of theirs are in no number",
                    counted(started.attached, "process")));
  if (started.too_short > 0)
    say(fmt::format("  {} ended before they could be attached: their hits are in no number",
                    counted(started.too_short, "process")));
  if (started.refused > 0)
    say(fmt::format("  {} not attached, and their hits are in no number: {}", counted(started.refused, "process"),
                    started.why));
}

/// Returns the account of all hits in one line.
std::string Ledger::headline(const usdt::Account& total) const {
  if (flags_.question.view.count_only) {
    const auto silent = std::count_if(facts_.summary.probes.begin(), facts_.summary.probes.end(),
                                      [](const usdt::Account& probe) { return probe.hits == 0; });
    const std::uint64_t unasked =
        total.calls_full + total.unfinished + total.abandoned;  // of calls that are asked at their ends
    // A recording has the events, and not those hits that came to none.
    const bool some = flags_.question.where != nullptr ||
                      (!flags_.question.recording.replay.empty() && total.matched(false) < total.hits);
    const std::string asked = some ? fmt::format("{} of ", total.matched(false)) : "";
    return fmt::format("{}{} counted; {} without hits{}", asked, counted(total.hits, "hit"),
                       counted(static_cast<std::size_t>(silent), "probe"),
                       unasked > 0 ? "; lost: " + lost_text(total) : "");
  }
  const std::string all = counted(total.hits, "hit");
  if (flags_.question.view.in_flight) {
    const std::uint64_t begun = plan_.spans ? total.begun() : total.hits;
    return fmt::format("{} in flight of {}; lost: {}", total.unfinished, counted(begun, plan_.spans ? "span" : "call"),
                       lost_text(total));
  }
  if (flags_.question.view.question && plan_.spans)
    return fmt::format("{} of {} in the table; lost: {}", total.delivered, counted(total.begun(), "span"),
                       lost_text(total));
  if (flags_.question.view.question)
    return fmt::format("{} of {} in the table; lost: {}", total.delivered, all, lost_text(total));
  if (flags_.question.view.slowest > 0)
    return fmt::format("the {} slowest of {}; lost: {}",
                       std::min<std::uint64_t>(total.delivered, flags_.question.view.slowest),
                       plan_.spans ? counted(total.begun(), "span") : counted(total.hits, "call"), lost_text(total));
  if (plan_.spans)
    return fmt::format("{} of {}{}; lost: {}", counted(total.delivered, "event"), counted(total.begun(), "span"),
                       limit_text(total), lost_text(total));
  return fmt::format("{} of {}{}; lost: {}", counted(total.delivered, "event"), all, limit_text(total),
                     lost_text(total));
}

/// Prints the hits that were left out on purpose.
void Ledger::print_guarded(const usdt::Account& total) const {
  const auto& limits = flags_.question.limits;
  if (limits.sample > 1)
    print_left_out(
        total, usdt::kOfSample, "hit",
        fmt::format("(--sample 1/{}){}", limits.sample,
                    flags_.question.view.no_events() ? "" : fmt::format(": each event stands for {}", limits.sample)));
  if (limits.max_rate > 0)
    print_left_out(total, usdt::kOfRate, plan_.spans ? "span" : "hit",
                   fmt::format("(--max-rate {}/s)", limits.max_rate));
  const bool leaves_out_ended = flags_.question.view.slowest > 0 || flags_.question.view.in_flight;
  if (total.faster > 0 && !leaves_out_ended)  // of a program's recording
    say(fmt::format("  {} took less than the slowest that were recorded", counted(total.faster, "hit")));
  if (flags_.question.limits.max_overhead > 0 && !facts_.summary.overhead)  // of a recording
    say(fmt::format("  {} not looked at (--max-overhead {:g}); events stand for {}", counted(total.not_sampled, "hit"),
                    flags_.question.limits.max_overhead * 100, counted(total.estimated, "hit")));
  if (facts_.summary.overhead) print_overhead(*facts_.summary.overhead, total);
}

/// The numbers that come of one guard, by their names: "5 hits held back (--max-rate 10/s)".
void Ledger::print_left_out(const usdt::Account& total, usdt::CountCause guard, std::string_view noun,
                            std::string_view option) const {
  for (const usdt::CountInfo& count : usdt::counts()) {
    if (count.role != usdt::CountRole::left_out || (count.comes_of & guard) == 0) continue;
    std::string name(count.name);
    std::ranges::replace(name, '_', ' ');
    say(fmt::format("  {} {} {}", counted(total.*count.member, noun), name, option));
  }
}

void Ledger::print_overhead(const usdt::Overhead& overhead, const usdt::Account& total) const {
  const double hit_us = static_cast<double>(overhead.of_hit.count()) / 1000;
  say(fmt::format("  --max-overhead {:g}: {} of {}, {} of {:.2f} us{}", overhead.allowed * 100,
                  usdt::io::percent_text(overhead.caused),
                  overhead.of_processors ? "what the processes did" : "one processor's time",
                  counted(total.hits, "hit"), hit_us, overhead.clocked ? "" : " (programs' share a rule of thumb)"));
  if (overhead.looked_at < 1) {
    say(fmt::format("  looked at {} of {}, in {} of {} together; {}{}", usdt::io::percent_text(overhead.looked_at),
                    overhead.of_processors ? "what they did" : "it", counted(overhead.windows, "window"),
                    usdt::io::duration_text(static_cast<double>(overhead.looked_for.count())),
                    estimated_text(total.estimated, overhead),
                    flags_.question.view.no_events() ? "" : ": events say how many they stand for (weight)"));
    say(fmt::format("  {} while the sites were being attached or detached were not looked at",
                    counted(total.not_sampled, "hit")));
  }
  // A window that is not paid for yet, in a short trace.
  if (overhead.caused > overhead.allowed * 1.2)
    say(fmt::format(
        "  that is more than allowed: a window costs more than the share of {:.1f} s; longer traces keep it",
        static_cast<double>(overhead.lasted.count()) / 1e9));
  if (!overhead.trouble.empty()) say(fmt::format("  nothing was attached in the end: {}", overhead.trouble));
}

void Ledger::print_filtered(const usdt::Account& total) const {
  if (plan_.spans)
    say(fmt::format("  of {}: {} paired, {} in flight, {}{} that ended nothing{}", counted(total.hits, "hit"),
                    2 * total.paired, total.unfinished,
                    total.abandoned == 0 ? "" : fmt::format("{} abandoned, ", total.abandoned), total.unmatched,
                    total.unpaired == 0 ? "" : fmt::format(", {} whose pair could not be told", total.unpaired)));
  if (plan_.spans) hint_at_pairs(total);
  if (flags_.question.where != nullptr && !flags_.question.view.in_flight) print_matched(total);
  if (total.undecided > 0)
    say(fmt::format(
        "  {} left out without an answer: something that is asked for could not be read there, is of another "
        "type there, is no number (NaN), or was divided by 0",
        counted(total.undecided, "hit")));
}

/// Prints for how many the condition held. Who asks by a preset wrote none: it is named, and only where it left out
/// some.
void Ledger::print_matched(const usdt::Account& total) const {
  const std::uint64_t matched = total.matched(plan_.spans.has_value());
  const std::uint64_t asked = total.sampled(plan_.spans.has_value());
  const bool is_of_preset = !flags_.script.preset.empty();
  if (is_of_preset && matched == asked) return;
  say(fmt::format("  {} held for {} of {}",
                  is_of_preset ? fmt::format("its condition '{}'", flags_.question.where->text) : "--where", matched,
                  counted(asked, plan_.spans ? "span" : "hit")));
}

/// Where many beginnings have no end, and as many ends no beginning, they may be in different threads.
void Ledger::hint_at_pairs(const usdt::Account& total) const {
  constexpr std::uint64_t many = 10;  // to one; some are half seen where the trace begins and ends
  const std::uint64_t halves = std::min(total.unmatched, total.unfinished + total.abandoned);
  if (!flags_.question.points.pairing.begin.empty() || halves <= total.paired / many) return;
  say("  many beginnings and ends found no partner in their own thread: --pair-by pairs them across threads, by a "
      "value "
      "that both have");
}

/// Prints changes of files, which the numbers above do not cover.
void Ledger::print_changes() const {
  // A file may be replaced a thousand times: equal texts are one line. Each change had a notice when it happened.
  std::map<std::string, std::size_t> times;
  std::vector<std::string> texts;
  for (const usdt::FileChange& change : facts_.summary.changed) {
    std::string text = change_text(plan_, change, facts_.followed);
    if (++times[text] == 1) texts.push_back(std::move(text));
  }
  constexpr std::size_t most = 20;
  for (std::size_t n = 0; n < std::min(texts.size(), most); ++n)
    say(fmt::format("  {}{}", texts[n], times[texts[n]] > 1 ? fmt::format(" ({} times)", times[texts[n]]) : ""));
  if (texts.size() > most) say(fmt::format("  and {} changed", counted(texts.size() - most, "more file")));
  if (facts_.nothing_left) say("  nothing is left to trace");
  if (!facts_.summary.cut.empty()) say(fmt::format("  the recording is not whole: {}", facts_.summary.cut));
}

/// A server's first process has often no hits itself: its children do the work.
void Ledger::hint_at_children() const {
  if (flags_.question.processes.children || facts_.summary.total().hits > 0) return;
  std::vector<pid_t> children;
  for (const pid_t pid : flags_.question.processes.pids) {
    for (const pid_t child : usdt::descendants_of(pid))
      if (std::ranges::find(flags_.question.processes.pids, child) == flags_.question.processes.pids.end())
        children.push_back(child);
  }
  if (children.empty()) return;
  constexpr std::size_t most = 5;
  const auto shown = std::min(children.size(), most);
  const bool one = flags_.question.processes.pids.size() == 1;
  say(fmt::format("  {} {} had no hits; {} {} ({}{}): --children traces them as well", one ? "process" : "processes",
                  fmt::join(flags_.question.processes.pids, ", "), one ? "it has" : "they have",
                  children.size() == 1 ? "a child" : fmt::format("{} descendants", children.size()),
                  fmt::join(children.begin(), children.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                  shown < children.size() ? ", ..." : ""));
}

/// A command that ran something else than what is traced had no hits for that reason.
void Ledger::hint_at_command() const {
  if (!facts_.command_ended || plan_.files.empty() || facts_.summary.total().hits > 0) return;
  const std::string& word = flags_.question.processes.command.front();
  std::error_code unknown;
  std::filesystem::path program = word;
  if (word.find('/') == word.npos) {
    auto found = usdt::find_program(word);
    if (!found) return;
    program = std::move(*found);
  }
  std::vector<std::string> traced;
  for (const usdt::PlannedFile& file : plan_.files) {
    // Libraries are for whoever opens them.
    if (file.target.path.filename().native().find(".so") != std::string::npos) return;
    if (std::filesystem::equivalent(file.target.access, program, unknown)) return;
    traced.push_back(file.target.path.native());
  }
  std::ranges::sort(traced);
  traced.erase(std::unique(traced.begin(), traced.end()), traced.end());
  constexpr std::size_t most = 3;
  const std::size_t shown = std::min(traced.size(), most);
  say(fmt::format("  the command ran {}; what is traced is in {}{}, which nothing that it started came by",
                  program.native(),
                  fmt::join(traced.begin(), traced.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                  shown < traced.size() ? fmt::format(" and {}", counted(traced.size() - shown, "more file")) : ""));
}

/// Why there are fewer events than hits where that was asked for.
std::string Ledger::limit_text(const usdt::Account& total) const {
  if (!flags_.question.recording.replay.empty() && facts_.shown >= flags_.question.limits.max_events)
    return fmt::format(" (the {} asked for; the recording has {} more)", flags_.question.limits.max_events,
                       facts_.not_shown);
  if (flags_.question.recording.last) return " (those of the last while; what was before is discarded)";
  if (facts_.shown < flags_.question.limits.max_events) return {};
  const std::string more =
      total.discarded == 0 ? "" : fmt::format("; {} more came before all was detached", total.discarded);
  return fmt::format(" (the {} asked for{})", flags_.question.limits.max_events, more);
}

/// The probes that lost events, those that lost most.
void Ledger::print_losers() const {
  constexpr std::size_t most = 10;
  std::vector<std::pair<std::uint64_t, std::size_t>> losers;
  for (std::size_t i = 0; i < facts_.summary.probes.size(); ++i) {
    std::uint64_t lost = facts_.summary.probes[i].lost() + facts_.summary.probes[i].missed.value_or(0);
    if (plan_.spans) lost -= facts_.summary.probes[i].unfinished;  // they are in flight
    if (facts_.shown >= flags_.question.limits.max_events || flags_.question.recording.last)
      lost -= facts_.summary.probes[i].discarded;  // as asked for
    if (lost > 0) losers.emplace_back(lost, i);
  }
  std::stable_sort(losers.begin(), losers.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::size_t n = 0; n < std::min(losers.size(), most); ++n) {
    const usdt::Account& probe = facts_.summary.probes[losers[n].second];
    say(fmt::format(
        "  {}: {}{}", full_name(plan_, plan_.probes[usdt::Index<usdt::PlannedProbe>(losers[n].second)]),
        flags_.question.view.count_only && probe.lost() == 0 ? counted(probe.hits, "hit") : lost_text(probe),
        missed_text(probe)));
  }
  if (losers.size() > most) say(fmt::format("  and {}", counted(losers.size() - most, "more probe")));
}

std::string Ledger::lost_text(const usdt::Account& counts) const {
  const std::uint16_t causes = usdt::count_causes(flags_.question, plan_);
  std::vector<std::string> always;
  std::vector<std::string> seldom;  // behind the others, the last of the table first
  for (const usdt::CountInfo& count : usdt::counts()) {
    const auto told = usdt::tell_count(count, counts, plan_.spans.has_value());
    if (!told || told->role != usdt::CountRole::lost) continue;
    if (count.seldom ? told->value == 0 : count.comes_of != 0 && (count.comes_of & causes) == 0) continue;
    auto& texts = count.seldom ? seldom : always;
    texts.insert(count.seldom ? texts.begin() : texts.end(), fmt::format("{} {}", told->value, told->name));
  }
  always.insert(always.end(), seldom.begin(), seldom.end());
  return fmt::format("{}", fmt::join(always, ", "));
}

}  // namespace usdt_trace
