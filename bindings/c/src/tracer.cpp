// SPDX-License-Identifier: BSD-2-Clause
#include <chrono>
#include <deque>
#include <utility>

#include "handles.hpp"

struct usdtc_tracer {
  usdtc_tracer(usdt::Tracer&& started, std::shared_ptr<const usdtc::Planned> what)
      : tracer(std::move(started)), planned(std::move(what)) {
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

  usdt::Tracer tracer;
  std::shared_ptr<const usdtc::Planned> planned;
  std::deque<usdtc::Notice> notices = {};  // their texts stay where they are
  std::size_t seen_changes = 0;
  std::string attachment = {};
};

struct usdtc_ledger {
  usdtc_counts total = {};
  std::vector<usdtc_counts> probes = {};
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
  if (given.max_open_calls != 0) options.max_open_calls = given.max_open_calls;
  if (auto chosen = choose_family(given, options); !chosen) return usdt::fail(std::move(chosen.error()));
  return options;
}

std::chrono::milliseconds wait_of(int timeout_ms) {
  return timeout_ms < 0 ? std::chrono::milliseconds(std::chrono::hours(24)) : std::chrono::milliseconds(timeout_ms);
}
std::size_t limit_of(std::size_t limit) { return limit == 0 ? SIZE_MAX : limit; }

usdtc_counts counts_of(const usdt::ProbeCounts& counted) {
  usdtc_counts out{};
  out.hits = counted.hits;
  out.delivered = counted.delivered;
  out.lost = counted.ring_full + counted.calls_full;
  out.ring_full = counted.ring_full;
  out.calls_full = counted.calls_full;
  out.unfinished = counted.unfinished;
  out.discarded = counted.discarded;
  out.missed = counted.missed.value_or(UINT64_MAX);
  return out;
}

usdtc_ledger ledger_of(const usdt::Tracer& tracer) {
  usdtc_ledger ledger;
  for (const usdt::ProbeCounts& counted : tracer.counts()) {
    const usdtc_counts& probe = ledger.probes.emplace_back(counts_of(counted));
    ledger.total.hits += probe.hits;
    ledger.total.delivered += probe.delivered;
    ledger.total.lost += probe.lost;
    ledger.total.ring_full += probe.ring_full;
    ledger.total.calls_full += probe.calls_full;
    ledger.total.unfinished += probe.unfinished;
    ledger.total.discarded += probe.discarded;
  }
  ledger.total.missed = tracer.missed().value_or(UINT64_MAX);
  ledger.total.undecided = tracer.undecided();
  return ledger;
}

usdt::Result<std::unique_ptr<usdtc_tracer>> start(const usdtc_plan& plan, const usdtc_trace_options& given) {
  auto options = options_of(given);
  if (!options) return usdt::fail(std::move(options.error()));
  auto tracer = usdt::Tracer::start(plan.planned->plan, *options);
  if (!tracer) return usdt::fail(std::move(tracer.error()));
  return std::make_unique<usdtc_tracer>(std::move(*tracer), plan.planned);
}

}  // namespace
}  // namespace usdtc

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
    for (usdt::OwnedEvent& event : *events) out->events.push_back({tracer->planned, nullptr, std::move(event)});
    *batch = out.release();
    return {};
  });
}

int usdtc_tracer_poll(usdtc_tracer* tracer, usdtc_on_event on_event, void* user, int timeout_ms, size_t limit,
                      size_t* handed, usdtc_error** error) {
  if (handed) *handed = 0;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!tracer || !on_event) return usdtc::invalid("the tracer, or its callback, is NULL");
    usdtc_event view{tracer->planned};
    const auto show = [&](const usdt::Event& event) {
      view.view = &event;
      on_event(&view, user);
    };
    auto polled = tracer->tracer.poll(show, usdtc::wait_of(timeout_ms), usdtc::limit_of(limit));
    if (!polled) return usdt::fail(std::move(polled.error()));
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

void usdtc_tracer_free(usdtc_tracer* tracer) { delete tracer; }

int usdtc_tracer_ledger(const usdtc_tracer* tracer, usdtc_ledger** ledger, usdtc_error** error) {
  if (ledger) *ledger = nullptr;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!tracer || !ledger) return usdtc::invalid("the tracer, or the place for the ledger, is NULL");
    *ledger = new usdtc_ledger(usdtc::ledger_of(tracer->tracer));
    return {};
  });
}

int usdtc_ledger_total(const usdtc_ledger* ledger, usdtc_counts* counts, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!ledger) return usdtc::invalid("the ledger is NULL");
    return usdtc::write_struct(ledger->total, counts, usdtc::kCounts, "usdtc_counts");
  });
}

int usdtc_ledger_probe(const usdtc_ledger* ledger, size_t n, usdtc_counts* counts, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!ledger) return usdtc::invalid("the ledger is NULL");
    if (n >= ledger->probes.size()) return usdtc::no_more("probe", n, ledger->probes.size());
    return usdtc::write_struct(ledger->probes[n], counts, usdtc::kCounts, "usdtc_counts");
  });
}

void usdtc_ledger_free(usdtc_ledger* ledger) { delete ledger; }
}
