// SPDX-License-Identifier: BSD-2-Clause
// Recordings, read again.
#include <utility>

#include "handles.hpp"

struct usdtc_recording {
  usdt::Recording recording;
  usdtc_plan plan = {};
  usdtc::AskedTable asked = {};
  std::optional<usdt::EventFilter> filter = {};
  std::optional<usdt::EventTable> table = {};
  bool at_end = false;
};

namespace usdtc {
namespace {

/// The next event that counts; null: there are no more.
usdt::Result<const usdt::Event*> next(usdtc_recording& recording) {
  while (!recording.at_end) {
    auto event = recording.recording.next();
    if (!event) return usdt::fail(std::move(event.error()));
    if (!*event) recording.at_end = true;
    if (*event && (!recording.filter || (*recording.filter)(**event).value_or(false))) return *event;
  }
  return nullptr;
}

/// Takes up to `limit` events of which no row was asked for.
template <class Take>
usdt::Result<std::size_t> take(usdtc_recording& recording, std::size_t limit, Take&& take_one) {
  std::size_t taken = 0;
  while (!recording.table && taken < limit) {
    auto event = next(recording);
    if (!event) return usdt::fail(std::move(event.error()));
    if (!*event) break;
    take_one(**event, recording.recording.wall_offset());
    ++taken;
  }
  return taken;
}

usdt::Result<void> read_rows(usdtc_recording& recording) {
  for (;;) {
    auto event = next(recording);
    if (!event) return usdt::fail(std::move(event.error()));
    if (!*event) return {};
    recording.table->add(**event);
  }
}

/// Makes of the question, or of the table, what asks events.
usdt::Result<void> ask(usdtc_recording& recording, const usdtc_replay_options& options) {
  const usdt::AttachPlan& plan = *recording.recording.plan();
  auto where = read_where(options.where);
  if (!where) return usdt::fail(std::move(where.error()));
  auto asked = read_table(options.table);
  if (!asked) return usdt::fail(std::move(asked.error()));
  recording.asked = std::move(*asked);
  if (recording.asked.question) {
    auto table = usdt::EventTable::make(where->get(), *recording.asked.question, plan);
    if (!table) return usdt::fail(std::move(table.error()));
    recording.table.emplace(std::move(*table));
  } else if (*where) {
    auto filter = usdt::EventFilter::make(std::move(*where), plan);
    if (!filter) return usdt::fail(std::move(filter.error()));
    recording.filter.emplace(std::move(*filter));
  }
  return {};
}

usdt::Result<std::unique_ptr<usdtc_recording>> open(const char* path, const usdtc_replay_options& options) {
  auto file = usdt::Recording::open(path);
  if (!file) return usdt::fail(std::move(file.error()));
  auto recording = std::make_unique<usdtc_recording>(usdtc_recording{.recording = std::move(*file)});
  if (auto asked = ask(*recording, options); !asked) return usdt::fail(std::move(asked.error()));
  auto planned = std::make_shared<Planned>(recording->recording.plan());
  planned->recorded = true;
  planned->skipped.clear();
  if (const auto& ledger = recording->recording.ledger())
    for (const usdt::SkippedSite& site : ledger->skipped)
      planned->skipped.push_back(notice_of(*planned, site, USDTC_NOTICE_SKIPPED));
  for (const usdt::RecordedNotice& notice : recording->recording.notices())
    planned->skipped.push_back({USDTC_NOTICE_RECORDED, UINT32_MAX, notice.text});
  recording->plan.planned = std::move(planned);
  return recording;
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
    return usdtc::write_struct(usdtc::info_of(recording->recording), info, usdtc::kRecordingInfo,
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
    auto out = std::make_unique<usdtc_batch>();
    const auto keep = [&](const usdt::Event& event, std::int64_t wall_offset) {
      out->events.push_back({recording->plan.planned, wall_offset, nullptr, usdt::OwnedEvent(event)});
    };
    auto taken = usdtc::take(*recording, usdtc::limit_of(limit), keep);
    if (!taken) return usdt::fail(std::move(taken.error()));
    *batch = out.release();
    return {};
  });
}

int usdtc_recording_poll(usdtc_recording* recording, usdtc_on_event on_event, void* user, size_t limit, size_t* handed,
                         usdtc_error** error) {
  if (handed) *handed = 0;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!recording || !on_event) return usdtc::invalid("the recording, or its callback, is NULL");
    usdtc_event view{recording->plan.planned};
    const auto show = [&](const usdt::Event& event, std::int64_t wall_offset) {
      view.wall_offset = wall_offset;
      view.view = &event;
      on_event(&view, user);
    };
    auto taken = usdtc::take(*recording, usdtc::limit_of(limit), show);
    if (!taken) return usdt::fail(std::move(taken.error()));
    if (handed) *handed = *taken;
    return {};
  });
}

int usdtc_recording_rows(usdtc_recording* recording, usdtc_rows** rows, usdtc_error** error) {
  if (rows) *rows = nullptr;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!recording || !rows) return usdtc::invalid("the recording, or the place for the rows, is NULL");
    if (!recording->table) return usdtc::invalid("no table was asked for: see usdtc_replay_options.table");
    if (auto read = usdtc::read_rows(*recording); !read) return usdt::fail(std::move(read.error()));
    const usdt::EventTable& table = *recording->table;
    *rows = usdtc::rows_of(recording->plan.planned, recording->asked, table.table(), table.rows());
    return {};
  });
}

int usdtc_recording_ledger(const usdtc_recording* recording, usdtc_ledger** ledger, usdtc_error** error) {
  if (ledger) *ledger = nullptr;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!recording || !ledger) return usdtc::invalid("the recording, or the place for the ledger, is NULL");
    const auto& then = recording->recording.ledger();
    if (!then) return usdt::fail(usdt::ErrorKind::not_found, "the recording ends before any account");
    *ledger = new usdtc_ledger(usdtc::ledger_of(then->probes, then->missed, then->undecided));
    return {};
  });
}

void usdtc_recording_free(usdtc_recording* recording) { delete recording; }
}
