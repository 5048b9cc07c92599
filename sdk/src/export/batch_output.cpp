// SPDX-License-Identifier: BSD-2-Clause
#include "export/batch_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/counted.hpp"
#include "io/escape.hpp"

namespace usdt::exports {

BatchOutput::BatchOutput(const AnswerStart& start, const OutputPlace& place)
    : Output(start, place),
      poster_(*place.shared.poster),
      options_(place.shared.options),
      place_(place.shared.name),
      owner_(place.shared.posting_outputs++) {}

void BatchOutput::event(const Event& event) {
  if (given_up_)
    ++not_written_[event.site().probe.value];
  else
    add_event(event);
}

std::uint64_t BatchOutput::pending() const noexcept {
  return loses_what_comes() || poster_.has_room() ? 0 : UINT64_MAX;
}

void BatchOutput::send(std::string path, std::string_view type, std::string body, std::vector<std::uint32_t> probes) {
  if (loses_what_comes() && !poster_.has_room())
    return lose(probes, probes.size(), "a batch of numbers",
                poster_.backlog() ? "the spool is full" : "the server is too slow");
  const std::uint64_t events = probes.size();
  on_their_way_.emplace(++sent_, std::move(probes));
  poster_.put({.owner = owner_,
               .number = sent_,
               .path = std::move(path),
               .type = type,
               .body = std::move(body),
               .events = events});
}

bool BatchOutput::has_to_wait() const {
  return ending_ ? !on_their_way_.empty() : !loses_what_comes() && !poster_.has_room();
}

Output::Flushed BatchOutput::write_out(const io::Stream::Patience& patience) {
  constexpr std::chrono::seconds longest{1}, enough{5}, at_end{30};
  constexpr std::chrono::milliseconds step{20};
  if (given_up_) return Flushed::failed;
  if (!ending_ && Clock::now() - sent_rest_ >= longest) {
    sent_rest_ = Clock::now();
    send_rest();
  }
  take_outcomes();
  for (auto progress = Clock::now(); has_to_wait();) {
    tell_trouble();
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - progress);
    if (ending_ && (poster_.is_hopeless() || waited > at_end)) return Flushed::waiting;
    if (patience ? !patience(waited) : waited > enough) return Flushed::waiting;
    if (poster_.wait(step)) progress = Clock::now();
    take_outcomes();
  }
  return Flushed::all;
}

void BatchOutput::ending(const SessionSummary& summary) {
  if (given_up_) return;
  send_rest();
  send_numbers(summary, true);
  ending_ = true;
}

void BatchOutput::account(const SessionSummary& summary) {
  measured_ = Clock::now();
  if (!given_up_) send_numbers(summary, false);
}

/// Others that send to the place go on, but wait no more for their ends while it takes nothing.
void BatchOutput::give_up() {
  if (std::exchange(given_up_, true)) return;
  if (!ending_) send_rest();
  poster_.give_up(owner_);
  take_outcomes();
}

std::optional<std::string> BatchOutput::failure() const {
  if (lost_ == 0 && why_.empty()) return std::nullopt;
  return fmt::format("{} not taken: {}",
                     lost_ == 0   ? "numbers were"
                     : lost_ == 1 ? "1 event was"
                                  : fmt::format("{} events were", lost_),
                     why_);
}

void BatchOutput::take_outcomes() {
  for (const http::Outcome& outcome : poster_.take_outcomes(owner_)) take(outcome);
}

void BatchOutput::take(const http::Outcome& outcome) {
  const auto batch = on_their_way_.extract(outcome.number);
  if (batch.empty()) return;
  const std::vector<std::uint32_t>& probes = batch.mapped();
  if (!outcome.older_because.empty())
    tell(fmt::format("{}: {}: {}", place_, io::printable(outcome.older_because), in_older_form()));
  if (!outcome.accepted) return lose(probes, probes.size(), "a batch of numbers", outcome.why);
  if (outcome.maybe_twice && maybe_twice_++ == 0)
    tell(fmt::format("{}: what was sent when a connection was lost may be there twice{}", place_, unless()));
  const std::uint64_t rejected = std::min<std::uint64_t>(outcome.rejected, probes.size());
  if (outcome.rejected > 0)
    lose(probes, static_cast<std::size_t>(rejected), counted(outcome.rejected, "number"), outcome.why);
  else if (!outcome.why.empty())
    tell_sometimes(told_warning_, fmt::format("the server took all, and says: {}", io::printable(outcome.why)));
}

/// Which of a batch were rejected nobody says: the first ones are counted.
void BatchOutput::lose(const std::vector<std::uint32_t>& probes, std::size_t count, std::string_view without_events,
                       const std::string& why) {
  for (std::size_t n = 0; n < count; ++n) ++not_written_[probes[n]];
  lost_ += count;
  if (why_.empty()) why_ = io::printable(why);
  tell_sometimes(told_loss_,
                 fmt::format("{} not taken: {}", probes.empty() ? std::string(without_events) : counted(count, "event"),
                             io::printable(why)));
}

void BatchOutput::tell_sometimes(std::optional<Clock::time_point>& told, const std::string& text) {
  constexpr std::chrono::minutes pause{1};
  if (told && Clock::now() - *told < pause) return;
  told = Clock::now();
  tell(fmt::format("{}: {}", place_, text));
}

void BatchOutput::tell_trouble() {
  const std::string trouble = poster_.trouble();
  if (trouble.empty() || trouble == told_trouble_) return;
  told_trouble_ = trouble;
  tell(fmt::format("{}: {}; it is tried again", place_, io::printable(trouble)));
}

void BatchOutput::tell(const std::string& text) {
  if (options_.tell) options_.tell(text);
}

}  // namespace usdt::exports
