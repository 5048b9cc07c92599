// SPDX-License-Identifier: BSD-2-Clause
#include <unistd.h>

#include <chrono>
#include <deque>
#include <utility>

#include "handles.hpp"

struct usdtc_tracer {
  usdtc_tracer(usdt::Tracer&& started, std::shared_ptr<const usdtc::Planned> what,
               std::vector<std::pair<std::string, std::string>>&& with)
      : tracer(std::move(started)), planned(std::move(what)), guards(std::move(with)) {
    for (const usdtc::Notice& skipped : planned->skipped) notices.push_back(skipped);
    for (const usdt::SkippedSite& site : tracer.link().refused())
      notices.push_back(notice_of(*planned, site, USDTC_NOTICE_REFUSED));
    attachment = fmt::format("{}, {}", tracer.link().backend_text(), tracer.link().carrier_text());
  }

  /// Adds the notices that came up since the last look.
  void look_for_changes() {
    const std::vector<usdt::FileChange> changes = tracer.link().changes();
    for (; seen_changes < changes.size(); ++seen_changes) {
      const usdt::FileChange& change = changes[seen_changes];
      const std::string let_go = change.let_go > 0 ? fmt::format("; {} sites were let go", change.let_go) : "";
      notices.push_back(
          {USDTC_NOTICE_FILE_CHANGED, UINT32_MAX,
           fmt::format("{} was {}{}", planned->files[change.file.value], to_string(change.kind), let_go)});
    }
  }

  /// Writes the event to the recording, if there is one. What fails is told by end_recording().
  void record(const usdt::Event& event, std::int64_t wall_offset) {
    if (recorder && written) written = recorder->event(event, wall_offset);
  }
  /// What has waited for a second is written.
  void flush_recording() {
    if (recorder && written) written = recorder->flush_if_due();
  }
  usdt::Result<void> end_recording();

  usdt::Tracer tracer;
  std::shared_ptr<const usdtc::Planned> planned;
  std::vector<std::pair<std::string, std::string>> guards;  // as recordings have them
  std::deque<usdtc::Notice> notices = {};                   // their texts stay where they are
  std::size_t seen_changes = 0;
  std::string attachment = {};
  const pid_t process = ::getpid();
  std::optional<usdt::RecordingWriter> recorder = {};
  usdt::Result<void> written = {};  // of the recording, so far
};

namespace usdtc {
namespace {

constexpr const char* kMadeBy = "libusdt-c " USDTC_VERSION;

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

usdt::RecordedLedger recorded_ledger(const usdt::Tracer& tracer) {
  usdt::RecordedLedger ledger{.probes = tracer.counts(),
                              .missed = tracer.missed(),
                              .missed_hits = tracer.missed_hits(),
                              .undecided = tracer.undecided(),
                              .skipped = tracer.plan().skipped,
                              .changes = tracer.link().changes()};
  for (const usdt::SkippedSite& site : tracer.link().refused()) ledger.skipped.push_back(site);
  return ledger;
}

usdtc_overhead overhead_of(const usdtc::Planned& planned, usdt::Overhead&& overhead) {
  const auto nanoseconds = [](std::chrono::nanoseconds time) { return static_cast<std::uint64_t>(time.count()); };
  usdtc_overhead out{};
  out.flags = (overhead.of_processors ? std::uint32_t{USDTC_OVERHEAD_OF_PROCESSORS} : 0) |
              (overhead.clocked ? std::uint32_t{USDTC_OVERHEAD_CLOCKED} : 0);
  out.allowed = overhead.allowed;
  out.caused = overhead.caused;
  out.looked_at = overhead.looked_at;
  out.windows = overhead.windows;
  out.of_hit = nanoseconds(overhead.of_hit);
  out.looked_for = nanoseconds(overhead.looked_for);
  out.lasted = nanoseconds(overhead.lasted);
  if (!overhead.trouble.empty()) out.trouble = planned.keep(std::move(overhead.trouble)).data();
  return out;
}

/// What `usdt-trace --replay` shows of guards, by the names it has for them.
std::vector<std::pair<std::string, std::string>> guards_of(const usdt::TraceOptions& options) {
  std::vector<std::pair<std::string, std::string>> guards;
  if (options.sample > 1) guards.emplace_back("sample", fmt::format("{}", options.sample));
  if (options.max_rate > 0) guards.emplace_back("max_rate", fmt::format("{}", options.max_rate));
  if (options.max_overhead > 0) guards.emplace_back("max_overhead", fmt::format("{}", options.max_overhead));
  return guards;
}

/// Calls what takes events with their time of day, found when the first one is there.
template <class Take>
auto with_wall_offset(Take&& take) {
  return [take = std::forward<Take>(take), offset = std::optional<std::int64_t>()](const usdt::Event& event) mutable {
    if (!offset) offset = wall_offset_now();
    take(event, *offset);
  };
}

usdt::Result<std::unique_ptr<usdtc_tracer>> start(const usdtc_plan& plan, const usdtc_trace_options& given) {
  auto options = options_of(given);
  if (!options) return usdt::fail(std::move(options.error()));
  if (plan.planned->recorded) return invalid("the plan is that of a recording, which cannot be attached");
  auto tracer = usdt::Tracer::start(plan.planned->plan, *options);
  if (!tracer) return usdt::fail(std::move(tracer.error()));
  return std::make_unique<usdtc_tracer>(std::move(*tracer), plan.planned, guards_of(*options));
}

}  // namespace

std::int64_t wall_offset_now() noexcept { return usdt::read_clocks().wall_offset; }

}  // namespace usdtc

usdt::Result<void> usdtc_tracer::end_recording() {
  if (process != ::getpid()) {  // its parent goes on writing to the file
    recorder.reset();
    return usdtc::invalid(fmt::format("the recording is that of process {}, which forked this one", process));
  }
  if (written) written = recorder->finish(usdtc::recorded_ledger(tracer));
  recorder.reset();
  return std::exchange(written, usdt::Result<void>());
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
    const std::int64_t wall_offset = usdtc::wall_offset_now();
    for (usdt::OwnedEvent& event : *events) {
      tracer->record(*event, wall_offset);
      out->events.push_back({tracer->planned, wall_offset, nullptr, std::move(event)});
    }
    tracer->flush_recording();
    *batch = out.release();
    return {};
  });
}

int usdtc_tracer_poll(usdtc_tracer* tracer, usdtc_on_event on_event, void* user, int timeout_ms, size_t limit,
                      size_t* handed, usdtc_error** error) {
  if (handed) *handed = 0;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!tracer || (!on_event && !tracer->recorder)) return usdtc::invalid("the tracer, or its callback, is NULL");
    usdtc_event view{tracer->planned};
    const auto show = usdtc::with_wall_offset([&](const usdt::Event& event, std::int64_t wall_offset) {
      tracer->record(event, wall_offset);
      view.wall_offset = wall_offset;
      view.view = &event;
      if (on_event) on_event(&view, user);
    });
    auto polled = tracer->tracer.poll(show, usdtc::wait_of(timeout_ms), usdtc::limit_of(limit));
    if (!polled) return usdt::fail(std::move(polled.error()));
    tracer->flush_recording();
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
  if (tracer && tracer->recorder) {
    tracer->tracer.detach();
    usdtc_tracer_record_end(tracer, nullptr);
  }
  delete tracer;
}

int usdtc_tracer_record(usdtc_tracer* tracer, const char* path, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!tracer || !path) return usdtc::invalid("the tracer, or the path of the recording, is NULL");
    if (tracer->recorder) return usdtc::invalid("this tracer is being recorded already");
    auto recorder = usdt::RecordingWriter::create(path, tracer->tracer.plan(), tracer->tracer.layout(),
                                                  {.made_by = usdtc::kMadeBy, .properties = tracer->guards});
    if (!recorder) return usdt::fail(std::move(recorder.error()));
    tracer->recorder.emplace(std::move(*recorder));
    return {};
  });
}

int usdtc_tracer_record_end(usdtc_tracer* tracer, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!tracer || !tracer->recorder) return usdtc::invalid("no tracer, or one that is not being recorded");
    return tracer->end_recording();
  });
}

int usdtc_tracer_rows(const usdtc_tracer* tracer, usdtc_rows** rows, usdtc_error** error) {
  if (rows) *rows = nullptr;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!tracer || !rows) return usdtc::invalid("the tracer, or the place for the rows, is NULL");
    auto table = tracer->tracer.table();
    if (!table) return usdt::fail(std::move(table.error()));
    const usdtc::Planned& planned = *tracer->planned;
    *rows = usdtc::rows_of(tracer->planned, planned.table, *planned.plan->table, std::move(*table));
    return {};
  });
}

int usdtc_tracer_ledger(const usdtc_tracer* tracer, usdtc_ledger** ledger, usdtc_error** error) {
  if (ledger) *ledger = nullptr;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!tracer || !ledger) return usdtc::invalid("the tracer, or the place for the ledger, is NULL");
    const usdt::Tracer& of = tracer->tracer;
    *ledger = new usdtc_ledger(usdtc::ledger_of(of.counts(), of.missed(), of.undecided()));
    return {};
  });
}

int usdtc_tracer_overhead(const usdtc_tracer* tracer, usdtc_overhead* overhead, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!tracer) return usdtc::invalid("the tracer is NULL");
    auto so_far = tracer->tracer.overhead();
    if (!so_far) return usdt::fail(usdt::ErrorKind::not_found, "this tracer has no max_overhead");
    return usdtc::write_struct(usdtc::overhead_of(*tracer->planned, std::move(*so_far)), overhead, usdtc::kOverhead,
                               "usdtc_overhead");
  });
}
}
