// SPDX-License-Identifier: BSD-2-Clause
// Recordings, read again: a QuestionReplay, whose answers are taken as values.
#include <utility>

#include "usdt/replay.hpp"
#include "values.hpp"

struct usdtc_recording {
  usdtc_recording(usdt::QuestionReplay&& opened, usdtc_plan&& of_it)
      : replay(std::move(opened)), plan(std::move(of_it)) {
    replay.begin(answers);
  }
  /// Reads until `limit` events were given to `answers`, or there are no more. Returns how many these were.
  usdt::Result<std::size_t> read(std::size_t limit);

  usdtc::ValueTaker answers = {};
  usdt::QuestionReplay replay;  // goes before what it feeds
  usdtc_plan plan;
  bool at_end = false;
};

usdt::Result<std::size_t> usdtc_recording::read(std::size_t limit) {
  const std::size_t before = answers.events_so_far();
  while (!at_end && answers.events_so_far() - before < limit) {
    const auto more = replay.step();
    if (!more) return usdt::fail(more.error());
    at_end = !*more;
    if (at_end) replay.finish();
  }
  return answers.events_so_far() - before;
}

namespace usdtc {
namespace {

usdtc_plan plan_of(const usdt::Recording& recording) {
  usdtc_plan plan{.plan = recording.plan()};
  plan.recorded = true;
  if (const auto& ledger = recording.ledger())
    for (const usdt::SkippedSite& site : ledger->skipped)
      plan.notices.push_back(plan.texts->notice_of(site, USDTC_NOTICE_SKIPPED));
  for (const usdt::RecordedNotice& notice : recording.notices())
    plan.notices.push_back({USDTC_NOTICE_RECORDED, UINT32_MAX, notice.text});
  return plan;
}

usdt::Result<std::unique_ptr<usdtc_recording>> open(const char* path, const usdtc_replay_options& options) {
  usdt::Question question{.recording = {.replay = path}};
  auto where = read_where(options.where);
  if (!where) return usdt::fail(std::move(where.error()));
  auto view = read_table(options.table);
  if (!view) return usdt::fail(std::move(view.error()));
  question.where = std::move(*where);
  question.view = std::move(*view);
  auto replay = usdt::QuestionReplay::open(std::move(question));
  if (!replay) return usdt::fail(std::move(replay.error()));
  usdtc_plan plan = plan_of(replay->recording());
  return std::make_unique<usdtc_recording>(std::move(*replay), std::move(plan));
}

usdtc_recording_info info_of(const usdt::Recording& recording) {
  usdtc_recording_info info{};
  info.made_by = recording.info().made_by.c_str();
  info.kernel = recording.info().kernel.c_str();
  info.machine = recording.info().machine.c_str();
  info.cut = or_null(recording.cut());
  return info;
}

}  // namespace
}  // namespace usdtc

extern "C" {

int usdtc_recording_open(const char* path, const usdtc_replay_options* options, usdtc_recording** recording,
                         usdtc_error** error) {
  if (recording) *recording = nullptr;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!path || !recording) return usdtc::invalid("the path, or the place for the recording, is NULL");
    auto read = usdtc::read_struct(options, usdtc::kReplayOptions, "usdtc_replay_options");
    if (!read) return usdt::fail(std::move(read.error()));
    auto opened = usdtc::open(path, *read);
    if (!opened) return usdt::fail(std::move(opened.error()));
    *recording = opened->release();
    return {};
  });
}

int usdtc_recording_read(const usdtc_recording* recording, usdtc_recording_info* info, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!recording) return usdtc::invalid("the recording is NULL");
    return usdtc::write_struct(usdtc::info_of(recording->replay.recording()), info, usdtc::kRecordingInfo,
                               "usdtc_recording_info");
  });
}

const usdtc_plan* usdtc_recording_plan(const usdtc_recording* recording) {
  return recording ? &recording->plan : nullptr;
}

int usdtc_recording_take(usdtc_recording* recording, size_t limit, usdtc_batch** batch, usdtc_error** error) {
  if (batch) *batch = nullptr;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!recording || !batch) return usdtc::invalid("the recording, or the place for the batch, is NULL");
    recording->answers.want_events(nullptr, nullptr);
    const auto taken = recording->read(usdtc::limit_of(limit));
    if (!taken) return usdt::fail(taken.error());
    *batch = recording->answers.take(SIZE_MAX).release();
    return {};
  });
}

int usdtc_recording_poll(usdtc_recording* recording, usdtc_on_event on_event, void* user, size_t limit, size_t* handed,
                         usdtc_error** error) {
  if (handed) *handed = 0;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!recording || !on_event) return usdtc::invalid("the recording, or its callback, is NULL");
    recording->answers.want_events(on_event, user);
    const auto taken = recording->read(usdtc::limit_of(limit));
    if (!taken) return usdt::fail(taken.error());
    if (handed) *handed = *taken;
    return {};
  });
}

int usdtc_recording_rows(usdtc_recording* recording, usdtc_rows** rows, usdtc_error** error) {
  if (rows) *rows = nullptr;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!recording || !rows) return usdtc::invalid("the recording, or the place for the rows, is NULL");
    if (!recording->replay.question().view.question)
      return usdtc::invalid("no table was asked for: see usdtc_replay_options.table");
    if (const auto read = recording->read(SIZE_MAX); !read) return usdt::fail(read.error());
    return usdtc::give(recording->answers.rows(), rows);
  });
}

int usdtc_recording_ledger(const usdtc_recording* recording, usdtc_ledger** ledger, usdtc_error** error) {
  if (ledger) *ledger = nullptr;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!recording || !ledger) return usdtc::invalid("the recording, or the place for the ledger, is NULL");
    const auto& then = recording->replay.recording().ledger();
    if (!then) return usdt::fail(usdt::ErrorKind::not_found, "the recording ends before any account");
    *ledger = new usdtc_ledger(usdt::summary_of(*then));
    return {};
  });
}

void usdtc_recording_free(usdtc_recording* recording) { delete recording; }
}
