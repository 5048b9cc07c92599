// SPDX-License-Identifier: BSD-2-Clause
#include "session/replay_run.hpp"

#include <utility>

#include "base/try.hpp"

namespace usdt::session {

Result<bool> ReplayRun::step() {
  if (parts_.empty()) return false;
  auto more = step(parts_.front());
  if (more && *more) return true;
  if (more) finish(parts_.front());
  const std::string place = std::move(parts_.front().place);
  parts_.pop_front();
  if (!more) return fail(place.empty() ? std::move(more.error()) : more.error().within(place));
  return !parts_.empty();
}

void ReplayRun::finish() {
  if (!parts_.empty() && parts_.front().replay) finish(parts_.front());
  parts_.clear();
}

/// Takes a portion of events, so that who steps can look at other things.
Result<bool> ReplayRun::step(Part& part) {
  constexpr int portion = 4096;
  if (!part.replay) {
    auto opened = TRY(QuestionReplay::open(part.question));
    part.replay.emplace(std::move(opened));
    part.replay->begin(part.consumer);
    tell_notices(part);
  }
  for (int n = 0; n < portion; ++n) {
    auto more = part.replay->step();
    if (!more || !*more) {
      tell_notices(part);
      return more;
    }
  }
  tell_notices(part);
  return part.consumer.flush();
}

void ReplayRun::finish(Part& part) {
  QuestionReplay& replay = *part.replay;
  replay.finish();
  tell_notices(part);
  part.consumer.ending(replay.summary());
  part.consumer.flush_rest();
  const SessionSummary summary = replay.summary();
  part.consumer.summary(summary);
  part.consumer.flush_rest();
  part.consumer.end(
      {.plan = replay.plan(), .summary = summary, .given = replay.given(), .beyond = replay.beyond(), .follows = true});
}

void ReplayRun::tell_notices(Part& part) {
  for (const SessionNotice& each : part.replay->take_notices()) part.consumer.notice(each);
}

}  // namespace usdt::session
