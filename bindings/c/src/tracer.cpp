// SPDX-License-Identifier: BSD-2-Clause
// Tracers: usdt::Tracer, whose events and rows are handed out as values.
#include <unistd.h>

#include <chrono>
#include <deque>
#include <utility>

#include "handles.hpp"
#include "tracer_record.hpp"

struct usdtc_tracer {
  usdtc_tracer(usdt::Tracer&& started, const usdtc_plan& plan, usdt::Question&& question)
      : tracer(std::move(started)),
        texts(plan.texts),
        notices(plan.notices.begin(), plan.notices.end()),
        asked(std::move(question)) {
    for (const usdt::SkippedSite& site : tracer.link().refused())
      notices.push_back(texts->notice_of(site, USDTC_NOTICE_REFUSED));
    attachment = fmt::format("{}, {}", tracer.link().backend_text(), tracer.link().carrier_text());
  }

  /// Adds the notices that came up since the last look.
  void look_for_changes() {
    const std::vector<usdt::FileChange> changes = tracer.link().changes();
    for (; seen_changes < changes.size(); ++seen_changes)
      notices.push_back(
          {USDTC_NOTICE_FILE_CHANGED, UINT32_MAX, usdt::change_text(tracer.plan(), changes[seen_changes], false)});
  }

  /// Records an event that came. Returns what the time of day is more than its own, ns.
  std::int64_t take(const usdt::Event& event) {
    around.begin(event);
    if (record) record->event(event);
    return around.wall_offset();
  }
  usdt::Result<void> end_record();

  usdt::Tracer tracer;
  std::shared_ptr<const usdtc::PlanTexts> texts;
  std::deque<usdtc::Notice> notices;  // their texts stay where they are
  usdt::Question asked;               // what it does, as recordings tell it
  usdt::LiveSurroundings around = usdt::LiveSurroundings(asked);
  std::size_t seen_changes = 0;
  std::string attachment = {};
  const pid_t process = ::getpid();
  std::optional<usdtc::TracerRecord> record = {};
};

namespace usdtc {
namespace {

usdt::Result<void> choose_family(const usdtc_trace_options& given, usdt::TraceOptions& options) {
  auto pids = read_pids(given.family, given.family_count, "family");
  if (!pids) return usdt::fail(std::move(pids.error()));
  if (pids->empty()) return {};
  auto family = usdt::Processes::of(std::move(*pids));
  if (!family) return usdt::fail(std::move(family.error()));
  options.family_of = std::move(*family);
  return {};
}

usdt::Result<usdt::TraceOptions> options_of(const usdtc_trace_options& given) {
  constexpr std::uint32_t flags =
      USDTC_TRACE_COUNT_ONLY | USDTC_TRACE_DESCENDANTS | USDTC_TRACE_WAIT_FOR_PAGES | USDTC_TRACE_NEVER_WAIT;
  if ((given.flags & ~flags) != 0) return invalid(fmt::format("flags {:#x} have bits that mean nothing", given.flags));
  usdt::TraceOptions options;
  options.count_only = (given.flags & USDTC_TRACE_COUNT_ONLY) != 0;
  options.descendants_only = (given.flags & USDTC_TRACE_DESCENDANTS) != 0;
  if ((given.flags & USDTC_TRACE_NEVER_WAIT) != 0) options.wait_for_pages = false;
  if ((given.flags & USDTC_TRACE_WAIT_FOR_PAGES) != 0) options.wait_for_pages = true;
  if (given.string_size != 0) options.string_size = given.string_size;
  if (given.ring_bytes != 0) options.ring_bytes = given.ring_bytes;
  options.max_open_calls = given.max_open_calls;
  if (given.sample != 0) options.sample = given.sample;
  options.max_rate = given.max_rate;
  options.max_overhead = given.max_overhead;
  if (auto chosen = choose_family(given, options); !chosen) return usdt::fail(std::move(chosen.error()));
  return options;
}

std::chrono::milliseconds wait_of(int timeout_ms) {
  return timeout_ms < 0 ? std::chrono::milliseconds(std::chrono::hours(24)) : std::chrono::milliseconds(timeout_ms);
}

usdt::Result<std::unique_ptr<usdtc_tracer>> start(const usdtc_plan& plan, const usdtc_trace_options& given) {
  auto options = options_of(given);
  if (!options) return usdt::fail(std::move(options.error()));
  if (plan.recorded) return invalid("the plan is that of a recording, which cannot be attached");
  auto tracer = usdt::Tracer::start(plan.plan, *options);
  if (!tracer) return usdt::fail(std::move(tracer.error()));
  usdt::Question asked = plan.asked;
  asked.limits.sample = options->sample;
  asked.limits.max_rate = options->max_rate;
  asked.limits.max_overhead = options->max_overhead;
  return std::make_unique<usdtc_tracer>(std::move(*tracer), plan, std::move(asked));
}

}  // namespace
}  // namespace usdtc

usdt::Result<void> usdtc_tracer::end_record() {
  auto ended = std::exchange(record, std::nullopt);
  if (process != ::getpid())  // its parent goes on writing to the file
    return usdtc::invalid(fmt::format("the recording is that of process {}, which forked this one", process));
  return ended->finish(tracer);
}

extern "C" {

int usdtc_tracer_start(const usdtc_plan* plan, const usdtc_trace_options* options, usdtc_tracer** tracer,
                       usdtc_error** error) {
  if (tracer) *tracer = nullptr;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!plan || !tracer) return usdtc::invalid("the plan, or the place for the tracer, is NULL");
    auto read = usdtc::read_struct(options, usdtc::kTraceOptions, "usdtc_trace_options");
    if (!read) return usdt::fail(std::move(read.error()));
    auto started = usdtc::start(*plan, *read);
    if (!started) return usdt::fail(std::move(started.error()));
    *tracer = started->release();
    return {};
  });
}

int usdtc_tracer_take(usdtc_tracer* tracer, int timeout_ms, size_t limit, usdtc_batch** batch, usdtc_error** error) {
  if (batch) *batch = nullptr;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!tracer || !batch) return usdtc::invalid("the tracer, or the place for the batch, is NULL");
    auto out = std::make_unique<usdtc_batch>();
    auto events = tracer->tracer.take(usdtc::wait_of(timeout_ms), usdtc::limit_of(limit));
    if (!events) return usdt::fail(std::move(events.error()));
    out->events.reserve(events->size());
    for (usdt::OwnedEvent& event : *events)
      out->events.push_back({tracer->texts, tracer->take(*event), nullptr, std::move(event)});
    if (tracer->record) tracer->record->flush();
    *batch = out.release();
    return {};
  });
}

int usdtc_tracer_poll(usdtc_tracer* tracer, usdtc_on_event on_event, void* user, int timeout_ms, size_t limit,
                      size_t* handed, usdtc_error** error) {
  if (handed) *handed = 0;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!tracer || (!on_event && !tracer->record)) return usdtc::invalid("the tracer, or its callback, is NULL");
    usdtc_event shown{tracer->texts};
    const auto show = [&](const usdt::Event& event) {
      shown.wall_offset = tracer->take(event);
      shown.view = &event;
      if (on_event) on_event(&shown, user);
    };
    auto polled = tracer->tracer.poll(show, usdtc::wait_of(timeout_ms), usdtc::limit_of(limit));
    if (!polled) return usdt::fail(std::move(polled.error()));
    if (tracer->record) tracer->record->flush();
    if (handed) *handed = *polled;
    return {};
  });
}

void usdtc_tracer_wake(const usdtc_tracer* tracer) {
  if (tracer) tracer->tracer.wake();
}

int usdtc_tracer_fd(usdtc_tracer* tracer, int* fd, usdtc_error** error) {
  if (fd) *fd = -1;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!tracer || !fd) return usdtc::invalid("the tracer, or the place for the descriptor, is NULL");
    auto own = tracer->tracer.fd();
    if (!own) return usdt::fail(std::move(own.error()));
    *fd = *own;
    return {};
  });
}

void usdtc_tracer_detach(usdtc_tracer* tracer) {
  if (tracer) tracer->tracer.detach();
}

void usdtc_tracer_discard(usdtc_tracer* tracer) {
  if (!tracer) return;
  tracer->tracer.detach();
  usdtc::guarded(nullptr, [&]() -> usdt::Result<void> {
    tracer->tracer.drain(nullptr);
    return {};
  });
}

int usdtc_tracer_notice(usdtc_tracer* tracer, size_t n, usdtc_notice* notice, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!tracer) return usdtc::invalid("the tracer is NULL");
    if (n >= tracer->notices.size()) tracer->look_for_changes();
    const auto& all = tracer->notices;
    return usdtc::write_notice(n < all.size() ? &all[n] : nullptr, n, all.size(), notice);
  });
}

const char* usdtc_tracer_attachment(const usdtc_tracer* tracer) {
  return tracer ? tracer->attachment.c_str() : nullptr;
}

void usdtc_tracer_free(usdtc_tracer* tracer) {
  if (tracer && tracer->record) {
    tracer->tracer.detach();
    usdtc_tracer_record_end(tracer, nullptr);
  }
  delete tracer;
}

int usdtc_tracer_record(usdtc_tracer* tracer, const char* path, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!tracer || !path) return usdtc::invalid("the tracer, or the path of the recording, is NULL");
    if (tracer->record) return usdtc::invalid("this tracer is being recorded already");
    auto record = usdtc::TracerRecord::open(path, tracer->tracer, tracer->asked, tracer->around);
    if (!record) return usdt::fail(std::move(record.error()));
    tracer->record.emplace(std::move(*record));
    return {};
  });
}

int usdtc_tracer_record_end(usdtc_tracer* tracer, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!tracer || !tracer->record) return usdtc::invalid("no tracer, or one that is not being recorded");
    return tracer->end_record();
  });
}

int usdtc_tracer_rows(const usdtc_tracer* tracer, usdtc_rows** rows, usdtc_error** error) {
  if (rows) *rows = nullptr;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!tracer || !rows) return usdtc::invalid("the tracer, or the place for the rows, is NULL");
    const auto table = tracer->tracer.table();
    if (!table) return usdt::fail(table.error());
    const usdt::PlannedTable& planned = *tracer->tracer.plan().table;
    const usdt::View& view = tracer->asked.view;
    *rows = new usdtc_rows{tracer->texts, view, planned, usdt::arrange_rows(view, planned, *table)};
    return {};
  });
}

int usdtc_tracer_ledger(const usdtc_tracer* tracer, usdtc_ledger** ledger, usdtc_error** error) {
  if (ledger) *ledger = nullptr;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!tracer || !ledger) return usdtc::invalid("the tracer, or the place for the ledger, is NULL");
    *ledger = new usdtc_ledger(usdt::summarize(tracer->tracer));
    return {};
  });
}
}
