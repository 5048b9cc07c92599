// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/tracer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <new>
#include <set>
#include <utility>

#include "base/no_memory.hpp"
#include "base/try.hpp"
#include "event/begin_trace.hpp"
#include "event/count_probes.hpp"
#include "event/event_copies.hpp"
#include "event/family.hpp"
#include "event/in_flight.hpp"
#include "event/kept_texts.hpp"
#include "event/row_map.hpp"
#include "event/tracer_impl.hpp"
#include "plan/changed_plan.hpp"
#include "sys/kernel_counter.hpp"

namespace usdt {
inline namespace v1 {

Tracer::Tracer(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Tracer::Tracer(Tracer&&) noexcept = default;
Tracer& Tracer::operator=(Tracer&&) noexcept = default;
Tracer::~Tracer() = default;

const AttachPlan& Tracer::plan() const noexcept { return *impl_->shared_plan; }
const std::shared_ptr<const AttachPlan>& Tracer::shared_plan() const noexcept { return impl_->shared_plan; }
const Link& Tracer::link() const noexcept { return impl_->link; }
const EventLayout& Tracer::layout() const noexcept { return impl_->parts.first().layout; }

Result<std::vector<ProbeCounts>> trace(AttachPlan plan, const StopToken& stop, const Tracer::Callback& on_event,
                                       const TraceOptions& options) {
  auto tracer = Tracer::start(std::move(plan), options);
  if (!tracer) return fail(tracer.error());
  const std::stop_callback wake(stop, [&tracer] { tracer->wake(); });
  while (!stop.stop_requested()) {
    TRY(tracer->poll(on_event, std::chrono::hours(1)));
  }
  tracer->detach();
  tracer->drain(on_event);
  return tracer->counts();
}

Result<Tracer> Tracer::start(AttachPlan plan, const TraceOptions& options) {
  return start(std::make_shared<const AttachPlan>(std::move(plan)), options);
}

Result<Tracer> Tracer::start(std::shared_ptr<const AttachPlan> shared, const TraceOptions& options) try {
  if (!shared) return fail(ErrorKind::invalid_argument, "no plan to trace");
  auto asked = TRY(event::with_kept_texts(std::move(shared), options));
  shared = std::move(asked);
  event::Shared common{.rate_start = event::rate_start_now(), .there = options.broker != nullptr};
  std::optional<std::string> pay;
  auto begun = TRY(event::begin_trace(shared, options, common, pay));
  auto& [loaded, marks, ends, prices, contexts, link] = begun;
  shared = loaded.plan;
  const LoadedObject& object = *loaded.part.object;
  auto events = TRY(object.map_fd("usdt_events"));
  auto* asleep = static_cast<std::uint32_t*>(object.global("usdt_consumer_asleep"));
  if (!asleep) return fail(ErrorKind::io, "map the stock program's globals");
  auto ring = TRY(event::Ring::open(events, asleep, loaded.part.layout.record_size()));
  auto impl =
      std::make_unique<Impl>(std::move(loaded.part), std::move(shared), std::move(link), std::move(ring), options);
  impl->others_pay = std::move(pay);
  impl->of_family = !common.family.roots.empty();
  if (marks) impl->marks = std::move(*marks);
  impl->contexts = std::move(contexts);
  if (impl->parts.first().layout.script_depth > 0) TRY(impl->follow_scripts());
  event::ThreadEnds watched = ends ? std::move(*ends) : event::ThreadEnds();
  watched.set_last_process(options.ends_with);
  impl->parts.watch(std::move(watched));
  impl->rate_start = common.rate_start;
  if (options.max_overhead > 0) {
    const event::Part& part = impl->parts.first();
    auto guard =
        TRY(event::OverheadGuard::start({*part.object, part.counts, impl->link, part.sites}, std::move(**prices),
                                        event::TracedTime(*impl->shared_plan, options), options.max_overhead));
    impl->guard = std::move(guard);
  }
  return Tracer(std::move(impl));
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

Result<AddedSites> Tracer::add(AttachPlan more) try {
  if (impl_->in_callback)
    return fail(ErrorKind::invalid_argument, "sites added by a callback of the same trace's poll()");
  event::Parts& parts = impl_->parts;
  const std::size_t most = std::min<std::size_t>(impl_->options.max_additions, kMostAdditions);
  if (parts.additions() >= most)
    return fail(ErrorKind::limit, fmt::format("{} additions are there already: no more at once", most));
  if (parts.all().size() > kMostEver)
    return fail(ErrorKind::limit, fmt::format("{} times sites were added to this trace: no more", kMostEver));
  const AttachPlan& before = *impl_->shared_plan;
  AddedSites added{before.files.next(), before.probes.next(), before.sites.next()};
  auto asked = TRY(event::with_kept_texts(std::make_shared<const AttachPlan>(std::move(more)), impl_->options));
  std::shared_ptr<const AttachPlan> part = std::move(asked);
  auto whole = append_plan(before, *part);
  if (!whole) return fail(whole.error());
  if (impl_->guard)
    return fail(ErrorKind::not_supported, "an overhead is limited of the sites that there were when the trace began");
  TraceOptions options = impl_->options;
  if (!has_kernel_points(*part)) options.kernel_stack_depth = 0;
  event::Shared common{.with = &parts.object(),
                       .first_site = added.first_site.value,
                       .rate_start = impl_->rate_start,
                       .there = options.broker != nullptr};
  std::optional<std::string> pay;
  if (auto family = event::running_family_of(*part, before, options); family)
    common.family = std::move(*family);
  else
    pay = family.error().message;
  auto loaded = event::load_part(part, options, common);
  if (!loaded && event::is_left_to_everybody(loaded.error(), common, pay))
    loaded = event::load_part(part, options, common);
  if (!loaded) return fail(loaded.error());
  if (const auto of_it = std::exchange(part, loaded->plan); of_it != part) {
    whole = append_plan(before, *part);
    if (!whole) return fail(whole.error());
  }
  TRY(impl_->ring.expect(loaded->part.layout.record_size()));
  // From here on there may be hits, whatever becomes of the rest: their records have a plan, and their counters a
  // probe.
  impl_->shared_plan = std::make_shared<const AttachPlan>(std::move(*whole));
  impl_->counts.resize(impl_->shared_plan->probes.size());
  parts.add(std::move(loaded->part), *part, added.first_file.value);
  const std::size_t before_it = impl_->link.attached();
  auto done = impl_->attach_last();
  if (!done && event::is_left_to_everybody(done.error(), common, pay)) {
    loaded = event::load_part(part, options, common);
    if (loaded) {
      parts.remove_last();
      parts.add(std::move(loaded->part), *part, added.first_file.value);
    }
    done = loaded ? impl_->attach_last() : Result<void>(fail(loaded.error()));
  }
  if (!done) {
    std::vector<Index<PlannedFile>> files;
    for (Index<PlannedFile> file = added.first_file; impl_->shared_plan->files.contains(file); ++file.value)
      files.push_back(file);
    static_cast<void>(let_go(files));
    return fail(done.error());
  }
  added.attached = impl_->link.attached() - before_it;
  if (!impl_->others_pay) impl_->others_pay = std::move(pay);
  return added;
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

Result<std::size_t> Tracer::let_go(const std::vector<Index<PlannedFile>>& files) try {
  if (impl_->in_callback)
    return fail(ErrorKind::invalid_argument, "files let go by a callback of the same trace's poll()");
  if (impl_->guard)
    return fail(ErrorKind::not_supported, "where an overhead is limited, files are let go when the trace ends");
  const AttachPlan& before = *impl_->shared_plan;
  std::set<Index<PlannedFile>> held;
  for (const Index<PlannedFile> number : files) {
    if (!before.files.contains(number)) return fail(ErrorKind::invalid_argument, "a file that the plan does not have");
    if (before.files[number].elf) held.insert(number);
  }
  impl_->shared_plan = std::make_shared<const AttachPlan>(plan::without_files(before, held));
  const std::size_t sites = impl_->link.let_go({held.begin(), held.end()}, impl_->shared_plan);
  for (const Index<PlannedFile> number : held) impl_->parts.note_let_go(number);
  return sites;
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

bool Tracer::find_cgroups() {
  return !impl_->options.cgroups.empty() && event::set_cgroups(impl_->parts.object(), impl_->options.cgroups);
}

void Tracer::leave_out_faster(std::chrono::nanoseconds than) noexcept {
  auto* least = static_cast<__u64*>(impl_->parts.object().global("usdt_least_duration"));
  if (!least) return;
  // Programs of 32-bit machines read it in halves, of which one never changes.
  constexpr std::uint64_t most = std::numeric_limits<std::size_t>::max();
  const auto given = static_cast<std::uint64_t>(std::max(than.count(), std::int64_t{0}));
  sys::store_kernel_counter(*least, std::min(given, most));
}

Result<std::size_t> Tracer::poll(const Callback& callback, std::chrono::milliseconds wait, std::size_t limit) {
  impl_->parts.make_room();
  impl_->look_at_processes();
  impl_->in_callback = true;
  const auto leave = [](bool* in_callback) { *in_callback = false; };
  const std::unique_ptr<bool, decltype(leave)> within(&impl_->in_callback, leave);
  return impl_->ring.poll([&](std::span<const std::byte> record) { impl_->deliver(record, callback); },
                          impl_->until_next_look(wait), limit);
}

Result<std::vector<OwnedEvent>> Tracer::take(std::chrono::milliseconds wait, std::size_t limit) try {
  EventCopies copies;
  auto polled = poll([&](const Event& event) { copies.add(event); }, wait, limit);
  if (!polled) return fail(polled.error());
  return std::move(copies).take();
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

void Tracer::wake() const noexcept { impl_->ring.wake(); }

Result<int> Tracer::fd() { return impl_->ring.fd(); }

void Tracer::detach() noexcept {
  if (impl_->guard) impl_->guard->finish();
  impl_->link.detach();
}

void Tracer::drain(const Callback& callback) {
  const auto on_record = [&](std::span<const std::byte> record) { impl_->deliver(record, callback); };
  while (impl_->ring.consume(on_record).value_or(0) > 0) {
  }
}

std::vector<ProbeCounts> Tracer::counts() const {
  return event::count_probes(impl_->counts, *impl_->shared_plan, impl_->parts, impl_->link.missed_hits(),
                             impl_->guard.get());
}

std::vector<OwnedEvent> Tracer::in_flight() {
  return event::events_in_flight(impl_->shared_plan, impl_->parts, impl_->guard.get(),
                                 impl_->contexts ? &*impl_->contexts : nullptr);
}

Result<std::vector<TableRow>> Tracer::table() const try {
  const AttachPlan& plan = *impl_->shared_plan;
  if (!plan.table) return fail(ErrorKind::invalid_argument, "the plan has no table");
  if (impl_->guard) return impl_->guard->rows();
  auto rows = event::read_rows(impl_->parts.object(), plan, impl_->kept_stacks);
  if (rows && impl_->options.sample > 1)
    for (TableRow& row : *rows) row.scale(impl_->options.sample);
  return rows;
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

Result<std::vector<TableRow>> Tracer::take_rows_of_ended() try {
  const AttachPlan& plan = *impl_->shared_plan;
  if (!plan.table) return fail(ErrorKind::invalid_argument, "the plan has no table");
  if (impl_->guard || !event::has_stacks(*plan.table)) return std::vector<TableRow>();
  const auto ended = [](std::uint32_t pid) { return !event::ThreadEnds::exists(pid); };
  auto rows = event::take_rows_of_ended(impl_->parts.object(), plan, ended, impl_->kept_stacks);
  if (rows && impl_->options.sample > 1)
    for (TableRow& row : *rows) row.scale(impl_->options.sample);
  return rows;
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

bool Tracer::table_grew() noexcept {
  const auto* made = static_cast<const __u64*>(impl_->parts.object().global("usdt_rows_made"));
  const std::uint64_t now = made ? sys::load_kernel_counter(*made) : 0;
  return std::exchange(impl_->rows_seen, now) != now;
}

Result<void> Tracer::Impl::follow_scripts() {
  auto known = TRY(event::Interpreters::of(parts.object()));
  interpreters = std::move(known);
  for (const pid_t pid : pids_of(shared_plan->scope)) interpreters.look_at(pid);
  if (options.family_of)
    for (const pid_t pid : options.family_of->pids()) interpreters.look_at(pid);
  return {};
}

std::vector<std::string> Tracer::take_unknown_interpreters() { return impl_->interpreters.take_unknown(); }

std::uint64_t Tracer::undecided() const noexcept {
  const auto* count = static_cast<const std::uint64_t*>(impl_->parts.object().global("usdt_undecided"));
  return count ? *count : 0;
}

std::uint64_t Tracer::shielded() const noexcept { return impl_->of_family ? impl_->marks.shielded() : 0; }

std::optional<Overhead> Tracer::overhead() const {
  return impl_->guard ? std::optional(impl_->guard->account()) : std::nullopt;
}
std::optional<std::string> Tracer::would_others_pay(const AttachPlan& plan, const TraceOptions& options) {
  const auto family = event::family_of(plan, options);
  return family ? std::nullopt : std::optional(family.error().message);
}
const std::optional<std::string>& Tracer::others_pay() const noexcept { return impl_->others_pay; }
std::optional<std::uint64_t> Tracer::missed() const { return impl_->link.missed(); }
std::vector<MissedHits> Tracer::missed_hits() const { return impl_->link.missed_hits(); }

}  // namespace v1
}  // namespace usdt
