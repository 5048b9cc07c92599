// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/tracer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <ctime>
#include <deque>
#include <iterator>
#include <limits>

#include "btf/types.hpp"
#include "event/cgroup_filter.hpp"
#include "event/event_copies.hpp"
#include "event/follow.hpp"
#include "event/overhead_guard.hpp"
#include "event/ring.hpp"
#include "event/row_map.hpp"
#include "event/site_counts.hpp"
#include "event/trace_options.hpp"
#include "expr/beginning.hpp"
#include "sys/kernel_counter.hpp"
#include "trace.bpf.hpp"
#include "usdt/bpf/filter.h"
#include "usdt/bpf_object.hpp"
#include "usdt/features.hpp"

namespace usdt {
inline namespace v1 {
namespace {

std::uint32_t ring_size(std::uint32_t wanted) {
  const auto page = static_cast<std::uint32_t>(::sysconf(_SC_PAGESIZE));
  return std::bit_ceil(std::clamp(wanted, page, 1u << 31));
}

bool asks_for_owner(const AttachPlan& plan) {
  return plan.spans && std::ranges::any_of(plan.filters, expr::asks_for_owner);
}

/// Whether a filter asks what is known of calls only once they end.
bool asks_at_ends(const AttachPlan& plan) {
  const auto asks = [&](Index<PlannedSite> number) {
    const PlannedSite& site = plan.sites[number];
    if (!site.filter) return false;
    const TypedExpression& filter = plan.filters[*site.filter];
    const std::vector<Arg>& args = plan.args[site.args];
    return filter.asks(HitField::duration) ||
           std::ranges::any_of(filter.args(), [&](std::uint8_t value) { return args[value].result; });
  };
  return std::ranges::any_of(plan.groups, [&](const AttachGroup& group) {
    return group.moment == Moment::both && std::ranges::any_of(group.sites, asks);
  });
}

/// Whether hits are counted where they begin, so that of calls nothing is kept.
bool counts_beginnings(const AttachPlan& plan, const TraceOptions& options) {
  return options.count_only && !asks_at_ends(plan);
}

/// Room for the records of calls that have not ended, where their entries and returns are two programs or leave no
/// arguments at the return, or of spans.
Result<void> set_open_calls(BpfObject& object, const AttachPlan& plan, const EventLayout& layout,
                            const TraceOptions& options) {
  const bool any = plan.spans ||
                   (!counts_beginnings(plan, options) && std::ranges::any_of(plan.groups, [](const AttachGroup& group) {
                     return group.moment == Moment::both && !(group.session && group.source == USDT_SOURCE_SLOTS);
                   }));
  if (!any) return {};
  // The kernel keeps room for all of them: with stacks in their records that has to end somewhere.
  constexpr std::uint32_t most_bytes = 64U << 20;
  const std::uint32_t calls = std::min(options.max_open_calls, std::max(most_bytes / layout.record_size(), 1U));
  if (auto set = object.set_max_entries("usdt_open_calls", calls); !set) return set;
  std::uint32_t size = layout.record_size();
  if (plan.spans) {
    size += static_cast<std::uint32_t>(asks_for_owner(plan) ? sizeof(usdt_open_span) : offsetof(usdt_open_span, owner));
    const auto key = static_cast<std::uint32_t>(offsetof(usdt_row, key)) + plan.spans->key_bytes;
    if (auto set = object.set_key_size("usdt_open_calls", key); !set) return set;
  }
  // Behind the record of a call are its stacks (keep_stacks() of bpf/trace/stacks.h).
  if (plan.table && event::has_stacks(*plan.table)) size += 2 * sizeof(usdt_row_stack);
  if (auto set = object.set_value_size("usdt_open_calls", size); !set) return set;
  return object.set_value_size("usdt_blank", size);
}

Result<void> size_maps(BpfObject& object, const AttachPlan& plan, const EventLayout& layout,
                       const TraceOptions& options) {
  if (auto set = set_open_calls(object, plan, layout, options); !set) return set;
  const bool events = !options.count_only && !plan.table;
  return object.set_max_entries("usdt_events", ring_size(events ? options.ring_bytes : 0));
}

usdt_stock_constants constants_of(const EventLayout& layout) {
  usdt_stock_constants constants{};
  constants.record_size = layout.record_size();
  constants.string_slots = layout.string_slots;
  constants.string_size = layout.string_size;
  constants.stack_depth = layout.stack_depth;
  constants.user_stack_at = layout.user_stack_depth > 0 ? layout.user_stack_at() : 0;
  constants.user_stack_depth = layout.user_addresses;
  constants.user_copy_piece = layout.user_copy_piece;
  constants.user_copy_pieces = layout.user_copy_pieces;
  constants.owners = layout.owners ? 1 : 0;
  return constants;
}

/// Where the kernel keeps the return addresses that return probes replaced. Without BTF they stay unknown, which stacks
/// then say.
void find_replaced_returns(usdt_stock_constants& constants) {
  const auto types = btf::Types::load();
  if (!types) return;
  struct Member {
    __u32* constant;
    const char* structure;
    const char* name;
  };
  for (const Member& member : {Member{&constants.utask_returns_offset, "uprobe_task", "return_instances"},
                               {&constants.return_address_offset, "return_instance", "orig_ret_vaddr"},
                               {&constants.return_stack_offset, "return_instance", "stack"},
                               {&constants.return_next_offset, "return_instance", "next"},
                               {&constants.task_utask_offset, "task_struct", "utask"}}) {
    const auto offset = (*types)->member_offset(member.structure, member.name);
    if (!offset) return;  // without the last one nothing is looked for
    *member.constant = *offset;
  }
}

bool has_likely_texts(const AttachPlan& plan) {
  return std::ranges::any_of(plan.specs, [](const EncodedSpec& spec) {
    return std::ranges::find(spec.args, USDT_CAPTURE_LIKELY, &usdt_arg_spec::capture) != spec.args.end();
  });
}

/// Anything that is to be read from memory at a hit; what only may be text is not.
bool reads_memory(const AttachPlan& plan) {
  const auto reads = [](const usdt_arg_spec& arg) {
    const bool text = arg.capture != USDT_CAPTURE_NONE && arg.capture != USDT_CAPTURE_LIKELY;
    return text || arg.kind == USDT_ARG_MEM || (arg.kind & USDT_ARG_HAS_STEPS) != 0;
  };
  return std::ranges::any_of(plan.specs,
                             [&](const EncodedSpec& spec) { return std::ranges::any_of(spec.args, reads); });
}

bool has_text_key(const AttachPlan& plan) {
  return plan.table && std::ranges::any_of(plan.table->keys, [](const TableColumn& key) {
           return key.type == ExpressionType::text && !key.field;
         });
}

bool has_calls(const AttachPlan& plan) {
  return std::ranges::find(plan.groups, Moment::both, &AttachGroup::moment) != plan.groups.end();
}

/// Of the stock programs (bpf/trace.bpf.c) the smallest that does.
std::string program_for(const AttachPlan& plan, const TraceOptions& options, bool sleepable) {
  if (plan.table)
    return fmt::format("usdt_trace_table_{}{}{}", has_calls(plan) ? "call" : "hit",
                       plan.table->extremes ? "_extremes" : "", event::has_stacks(*plan.table) ? "_stacks" : "");
  if (options.count_only && asks_at_ends(plan)) return "usdt_trace_count_calls_where";
  if (options.count_only) return plan.filters.empty() ? "usdt_trace_count" : "usdt_trace_count_where";
  const bool copies = sleepable || plan.string_slots > 0 || options.user_stack_depth > 0;
  const std::string_view can = plan.max_steps > 0 ? "_steps" : copies ? "_memory" : "";
  return fmt::format("usdt_trace_{}{}", has_calls(plan) ? "call" : "hit", can);
}

/// (Programs that wait may not have the maps of stacks: check_map_prog_compatibility() of kernel/bpf/verifier.c.)
bool waits_for_pages(const AttachPlan& plan, const TraceOptions& options) {
  if (plan.table && event::has_stacks(*plan.table)) return false;
  const bool picked = !pids_of(plan.scope).empty() || options.descendants_only;
  return options.wait_for_pages.value_or(picked) && !options.count_only && !plan.files.empty() &&
         (reads_memory(plan) || has_text_key(plan)) && probe_feature(Feature::sleepable_uprobe).answer == Answer::yes;
}

/// What older verifiers say of the instructions that extremes take names neither.
Error explained(Error error, const AttachPlan& plan) {
  if (error.kind != ErrorKind::verifier || !plan.table || !plan.table->extremes) return error;
  error.kind = ErrorKind::not_supported;
  return error.within("smallest and largest values need an atomic exchange in programs (Linux 5.12, arm64: 5.18)");
}

/// Sites that were loaded together: those the trace began with, or those of one Tracer::add().
struct Part {
  std::optional<LoadedObject> object;  ///< of the first; of others, what is attached keeps what it needs
  EventLayout layout;
  event::SiteCounts counts;
  std::uint32_t first_site = 0;  ///< in the tracer's plan
  std::uint32_t sites = 0;       ///< places
  std::uint32_t begins = 0;      ///< of spans, the first so many of them
  bool ends_count = false;       ///< of calls it is counted how many ended
  std::string program;
  std::uint32_t first_file = 0;
  std::uint32_t files_left = 0;  ///< of an addition; of one that was added for no file 1
};

/// What the parts of one trace have in common.
struct Shared {
  const LoadedObject* with = nullptr;  ///< null: this is the first part
  std::uint32_t first_site = 0;
  std::uint64_t rate_start = 0;  ///< usdt_stock_constants
};

/// A second's worth of events may come at once when the trace begins.
std::uint64_t rate_start_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return (static_cast<std::uint64_t>(now.tv_sec) - 1) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

void set_guards(usdt_stock_constants& constants, const TraceOptions& options, const Shared& common) {
  constants.sample = options.sample > 1 ? options.sample : 0;
  constants.pausable = options.max_overhead > 0 ? 1 : 0;
  constants.slow_only = options.slow_only ? 1 : 0;
  if (options.max_rate == 0) return;
  constants.rate_price = (std::uint64_t{1'000'000'000} << USDT_RATE_SHIFT) / options.max_rate;
  constants.rate_start = common.rate_start;
}

/// The ring, who sleeps at it, and whose descendants count; the rows.
Result<void> share_maps(BpfObject& object, const LoadedObject& with, const AttachPlan& plan) {
  std::vector<const char*> maps{"usdt_events", "usdt_descendants", ".bss"};
  if (plan.table) std::ranges::copy(event::maps_of_rows(*plan.table), std::back_inserter(maps));
  for (const char* map : maps) {
    auto fd = with.map_fd(map);
    if (!fd) return fail(fd.error());
    if (auto reused = object.reuse_map(map, *fd); !reused) return reused;
  }
  return {};
}

Result<void> set_families(BpfObject& object, usdt_stock_constants& constants, const TraceOptions& options) {
  event::Family family;
  if (options.family_of) family.pids = options.family_of->pids();
  return event::keep_family_only(object, constants, family);
}

bool follows_family(const TraceOptions& options) { return options.descendants_only || options.family_of; }

/// True: one of them is another one than the programs knew.
bool set_cgroups(const LoadedObject& object, const std::vector<std::filesystem::path>& cgroups) {
  auto* known = static_cast<usdt_cgroup*>(object.global("usdt_cgroups"));
  bool changed = false;
  for (std::size_t i = 0; known != nullptr && i < cgroups.size(); ++i) {
    const usdt_cgroup now = event::cgroup_at(cgroups[i]);
    if (known[i].id == now.id) continue;
    changed = true;
    const std::atomic_ref level(known[i].level);
    level.store(UINT32_MAX);  // none is so deep, while the number is written, on 32-bit machines in halves
    *const_cast<volatile __u64*>(&known[i].id) = now.id;
    level.store(now.level);
  }
  return changed;
}

/// What is loaded, and the constants it was loaded with.
struct Loaded {
  Part part;
  usdt_stock_constants constants{};
};

Result<Loaded> load_part(const std::shared_ptr<const AttachPlan>& shared, const TraceOptions& options,
                         const Shared& common) {
  const AttachPlan& plan = *shared;
  auto object = BpfObject::open(trace_object(), "usdt");
  if (!object) return fail(object.error());
  auto laid_out = event::layout_for(plan, options, ring_size(options.ring_bytes));
  if (!laid_out) return fail(laid_out.error());
  const EventLayout layout = *laid_out;
  if (auto sized = size_maps(*object, plan, layout, options); !sized) return fail(sized.error());
  const bool sleepable = waits_for_pages(plan, options);
  usdt_stock_constants constants = constants_of(layout);
  constants.may_sleep = sleepable ? 1 : 0;
  constants.site_base = common.first_site;
  if (auto possible = event::check_cgroups(options.cgroups); !possible) return fail(possible.error());
  constants.cgroups = static_cast<__u32>(options.cgroups.size());
  constants.record_args = layout.max_args;
  set_guards(constants, options, common);
  if (plan.spans) {
    constants.span_begins = plan.spans->begins;
    constants.span_ends = plan.spans->ends;
    constants.span_owner = asks_for_owner(plan) ? 1 : 0;
  }
  if (layout.user_stack_depth > 0) find_replaced_returns(constants);
  if (follows_family(options)) {
    if (auto set = set_families(*object, constants, options); !set) return fail(set.error());
  }
  if (plan.table) {
    if (auto sized = event::size_rows(*object, *plan.table); !sized) return fail(sized.error());
    event::describe_rows(constants, *plan.table);
  }
  if (common.with) {
    if (auto reused = share_maps(*object, *common.with, plan); !reused) return fail(reused.error());
  }
  auto rows = event::SiteCounts::size(*object, constants, plan.places());
  if (!rows) return fail(rows.error());
  const auto sites = static_cast<std::uint32_t>(plan.places());
  if (has_likely_texts(plan)) {
    if (auto set = object->set_max_entries("usdt_misreads", sites); !set) return fail(set.error());
  }
  if (auto set = object->set_constant("usdt_stock_constants", constants); !set) return fail(set.error());
  std::string program = plan.spans ? "" : program_for(plan, options, sleepable);  // the plan names those of spans
  const LoadOptions load{.backend = options.backend,
                         .carrier = options.carrier,
                         .arguments = !options.count_only || !plan.filters.empty(),
                         .sleepable = sleepable,
                         .max_programs = options.max_programs,
                         .programs = plan.spans ? std::vector<std::string>() : std::vector{program}};
  auto loaded = object->load(shared, load);
  if (!loaded) return fail(explained(std::move(loaded.error()), plan));
  if (plan.table) {
    if (auto filled = event::fill_blank_row(*loaded, *plan.table); !filled) return fail(filled.error());
  }
  auto counts = event::SiteCounts::open(*loaded, *rows);
  if (!counts) return fail(counts.error());
  return Loaded{.part = {.object = std::move(*loaded),
                         .layout = layout,
                         .counts = std::move(*counts),
                         .first_site = common.first_site,
                         .sites = sites,
                         .begins = plan.spans ? plan.spans->begins : 0,
                         .ends_count = !counts_beginnings(plan, options),
                         .program = std::move(program)},
                .constants = constants};
}

}  // namespace

struct Tracer::Impl {
  Impl(Part first, std::shared_ptr<const AttachPlan> p, Link l, event::Ring r, TraceOptions how)
      : shared_plan(std::move(p)),
        link(std::move(l)),
        ring(std::move(r)),
        options(std::move(how)),
        counts(shared_plan->probes.size()) {
    parts.push_back(std::move(first));
  }

  /// That of the first part, with what all have in common.
  [[nodiscard]] const LoadedObject& object() const noexcept { return *parts.front().object; }
  /// That of a site, by its number in the plan.
  [[nodiscard]] const Part& part_of(std::uint32_t site) const noexcept {
    if (parts.size() == 1) return parts.front();
    return *std::prev(std::ranges::upper_bound(parts, site, {}, &Part::first_site));
  }

  /// A file was let go. What its addition has counted is final, if that was its last one.
  void settle(Index<PlannedFile> file) {
    Part& part = *std::prev(std::ranges::upper_bound(parts, file.value, {}, &Part::first_file));
    if (&part == &parts.front() || --part.files_left > 0) return;  // the first one's maps are everybody's
    part.counts.settle();
    --additions;
  }

  /// With the weight of its time.
  [[nodiscard]] EventLayout layout_of(const usdt_event& head) const {
    EventLayout layout = part_of(head.site).layout;
    if (guard) layout.weight = guard->weight_at(head.ts);
    return layout;
  }

  /// Gives one record to `callback` (none: discards it) and counts it.
  void deliver(std::span<const std::byte> record, const Callback& callback) {
    usdt_event head;
    if (record.size() < sizeof(head)) return;
    std::memcpy(&head, record.data(), sizeof(head));
    auto event = Event::from(record, shared_plan, layout_of(head));
    if (!event) return;  // not one of ours: hits then differ from the sum of the rest, which the account shows
    const auto& span = event->probe().span;
    ProbeCounts& probe = counts[(span ? span->end : event->site().probe).value];
    if (!callback) {
      ++probe.discarded;
      return;
    }
    ++probe.discarded;  // should the callback throw
    callback(*event);
    --probe.discarded;
    ++probe.delivered;
  }

  std::deque<Part> parts;  ///< by their first sites; of the first are the ring and what else is shared
  std::shared_ptr<const AttachPlan> shared_plan;
  Link link;
  event::Ring ring;
  TraceOptions options;
  event::ForkMarks marks;
  std::vector<ProbeCounts> counts;  // delivered and discarded; the rest is in the kernel
  std::uint64_t rate_start = 0;
  std::size_t additions = 0;  ///< that have files which were not let go
  std::uint64_t rows_seen = 0;
  bool in_callback = false;
  std::unique_ptr<event::OverheadGuard> guard;  ///< the last: it is about the rest
};

Tracer::Tracer(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Tracer::Tracer(Tracer&&) noexcept = default;
Tracer& Tracer::operator=(Tracer&&) noexcept = default;
Tracer::~Tracer() = default;

const AttachPlan& Tracer::plan() const noexcept { return *impl_->shared_plan; }
const std::shared_ptr<const AttachPlan>& Tracer::shared_plan() const noexcept { return impl_->shared_plan; }
const Link& Tracer::link() const noexcept { return impl_->link; }
const EventLayout& Tracer::layout() const noexcept { return impl_->parts.front().layout; }

Result<std::vector<ProbeCounts>> trace(AttachPlan plan, const StopToken& stop, const Tracer::Callback& on_event,
                                       const TraceOptions& options) {
  auto tracer = Tracer::start(std::move(plan), options);
  if (!tracer) return fail(tracer.error());
  const std::stop_callback wake(stop, [&tracer] { tracer->wake(); });
  while (!stop.stop_requested()) {
    auto events = tracer->poll(on_event, std::chrono::hours(1));
    if (!events) return fail(events.error());
  }
  tracer->detach();
  tracer->drain(on_event);
  return tracer->counts();
}

Result<Tracer> Tracer::start(AttachPlan plan, const TraceOptions& options) {
  return start(std::make_shared<const AttachPlan>(std::move(plan)), options);
}

Result<Tracer> Tracer::start(std::shared_ptr<const AttachPlan> shared, const TraceOptions& options) {
  if (!shared) return fail(ErrorKind::invalid_argument, "no plan to trace");
  const Shared common{.rate_start = rate_start_now()};
  auto loaded = load_part(shared, options, common);
  if (!loaded) return fail(loaded.error());
  LoadedObject& object = *loaded->part.object;
  // Where forks cannot be watched, the walk of bpf/descends.h finds descendants, and counts where it does not know.
  auto marks =
      follows_family(options) ? event::ForkMarks::start(object, loaded->constants) : Result<event::ForkMarks>();
  auto events = object.map_fd("usdt_events");
  if (!events) return fail(events.error());
  if (!options.cgroups.empty()) set_cgroups(object, options.cgroups);
  auto prices = options.max_overhead > 0 ? event::HitPrices::measure(object, loaded->part.program)
                                         : fail(ErrorKind::not_supported, "no limit");
  if (!prices && options.max_overhead > 0) return fail(prices.error());
  auto link = shared->spans ? object.attach() : object.attach(loaded->part.program);
  if (!link) return fail(link.error());

  auto* asleep = static_cast<std::uint32_t*>(object.global("usdt_consumer_asleep"));
  if (!asleep) return fail(ErrorKind::io, "map the stock program's globals");
  auto ring = event::Ring::open(*events, asleep, loaded->part.layout.record_size());
  if (!ring) return fail(ring.error());
  auto impl =
      std::make_unique<Impl>(std::move(loaded->part), std::move(shared), std::move(*link), std::move(*ring), options);
  if (marks) impl->marks = std::move(*marks);
  impl->rate_start = common.rate_start;
  if (options.max_overhead > 0) {
    const Part& part = impl->parts.front();
    auto guard = event::OverheadGuard::start({*part.object, part.counts, impl->link, part.sites}, std::move(*prices),
                                             event::TracedTime(*impl->shared_plan, options), options.max_overhead);
    if (!guard) return fail(guard.error());
    impl->guard = std::move(*guard);
  }
  return Tracer(std::move(impl));
}

Result<AddedSites> Tracer::add(AttachPlan more) {
  if (impl_->in_callback)
    return fail(ErrorKind::invalid_argument, "sites added by a callback of the same trace's poll()");
  const std::size_t most = std::min<std::size_t>(impl_->options.max_additions, kMostAdditions);
  if (impl_->additions >= most)
    return fail(ErrorKind::limit, fmt::format("{} additions are there already: no more at once", most));
  if (impl_->parts.size() > kMostEver)
    return fail(ErrorKind::limit, fmt::format("{} times sites were added to this trace: no more", kMostEver));
  const AttachPlan& before = *impl_->shared_plan;
  AddedSites added{before.files.next(), before.probes.next(), before.sites.next()};
  auto part = std::make_shared<const AttachPlan>(std::move(more));
  auto whole = append_plan(before, *part);
  if (!whole) return fail(whole.error());
  if (impl_->guard)
    return fail(ErrorKind::not_supported, "an overhead is limited of the sites that there were when the trace began");
  TraceOptions options = impl_->options;
  if (!has_kernel_points(*part)) options.kernel_stack_depth = 0;
  auto loaded = load_part(part, options, {&impl_->object(), added.first_site.value, impl_->rate_start});
  if (!loaded) return fail(loaded.error());
  if (auto reached = impl_->ring.expect(loaded->part.layout.record_size()); !reached) return fail(reached.error());
  // From here on there may be hits, whatever becomes of the rest: their records have a plan, and their counters a
  // probe.
  impl_->shared_plan = std::make_shared<const AttachPlan>(std::move(*whole));
  impl_->counts.resize(impl_->shared_plan->probes.size());
  Part& loaded_part = impl_->parts.emplace_back(std::move(loaded->part));
  loaded_part.files_left = std::max(static_cast<std::uint32_t>(part->files.size()), 1U);
  loaded_part.first_file = added.first_file.value;
  ++impl_->additions;
  const std::size_t before_it = impl_->link.attached();
  // Its descriptors, of maps and programs, would be those of each library that was ever opened.
  const std::optional<LoadedObject> object = std::exchange(loaded_part.object, std::nullopt);
  if (auto done = object->attach_to(impl_->link, loaded_part.program, impl_->shared_plan); !done) {
    std::vector<Index<PlannedFile>> files;
    for (Index<PlannedFile> file = added.first_file; impl_->shared_plan->files.contains(file); ++file.value)
      files.push_back(file);
    static_cast<void>(let_go(files));
    return fail(done.error());
  }
  added.attached = impl_->link.attached() - before_it;
  return added;
}

Result<std::size_t> Tracer::let_go(const std::vector<Index<PlannedFile>>& files) {
  if (impl_->in_callback)
    return fail(ErrorKind::invalid_argument, "files let go by a callback of the same trace's poll()");
  if (impl_->guard)
    return fail(ErrorKind::not_supported, "where an overhead is limited, files are let go when the trace ends");
  AttachPlan plan = *impl_->shared_plan;
  std::vector<Index<PlannedFile>> held;
  for (const Index<PlannedFile> number : files) {
    if (!plan.files.contains(number)) return fail(ErrorKind::invalid_argument, "a file that the plan does not have");
    PlannedFile& file = plan.files[number];
    if (!file.elf) continue;
    file.machine = file.elf->machine();
    file.elf.reset();
    held.push_back(number);
  }
  impl_->shared_plan = std::make_shared<const AttachPlan>(std::move(plan));
  const std::size_t sites = impl_->link.let_go(held, impl_->shared_plan);
  for (const Index<PlannedFile> number : held) impl_->settle(number);
  return sites;
}

bool Tracer::find_cgroups() {
  return !impl_->options.cgroups.empty() && set_cgroups(impl_->object(), impl_->options.cgroups);
}

void Tracer::leave_out_faster(std::chrono::nanoseconds than) noexcept {
  auto* least = static_cast<__u64*>(impl_->object().global("usdt_least_duration"));
  if (!least) return;
  // Programs of 32-bit machines read it in halves, of which one never changes.
  constexpr std::uint64_t most = std::numeric_limits<std::size_t>::max();
  const auto given = static_cast<std::uint64_t>(std::max(than.count(), std::int64_t{0}));
  sys::store_kernel_counter(*least, std::min(given, most));
}

Result<std::size_t> Tracer::poll(const Callback& callback, std::chrono::milliseconds wait, std::size_t limit) {
  impl_->in_callback = true;
  const auto leave = [](bool* in_callback) { *in_callback = false; };
  const std::unique_ptr<bool, decltype(leave)> within(&impl_->in_callback, leave);
  return impl_->ring.poll([&](std::span<const std::byte> record) { impl_->deliver(record, callback); }, wait, limit);
}

Result<std::vector<OwnedEvent>> Tracer::take(std::chrono::milliseconds wait, std::size_t limit) {
  EventCopies copies;
  auto polled = poll([&](const Event& event) { copies.add(event); }, wait, limit);
  if (!polled) return fail(polled.error());
  return std::move(copies).take();
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

namespace {

/// A counter of several probes tells only, if it is 0, that none of them missed any.
void add_missed(const std::vector<MissedHits>& counters, std::vector<ProbeCounts>& all) {
  for (const MissedHits& counter : counters) {
    if (counter.hits == 0) continue;
    const bool known = counter.hits && counter.probes.size() == 1;
    for (const Index<PlannedProbe> probe : counter.probes) {
      std::optional<std::uint64_t>& missed = all[probe.value].missed;
      missed = known && missed ? std::optional(*missed + *counter.hits) : std::nullopt;
    }
  }
}

/// What became of the ends of spans, one of `ended` being a hit that was paired.
void add_pairs(const AttachPlan& plan, const Part& part, const std::vector<std::uint64_t>& ended,
               std::vector<ProbeCounts>& all) {
  std::vector<bool> seen(all.size());
  for (std::uint32_t site = 0; site < part.sites; ++site) {
    const std::uint32_t number = plan.sites[Index<PlannedSite>(part.first_site + site)].probe.value;
    if (seen[number]) continue;
    seen[number] = true;
    ProbeCounts& probe = all[number];
    const std::uint64_t rest =
        probe.hits - std::min(probe.hits, ended[number] + probe.unpaired + probe.calls_full + probe.not_sampled);
    if (site < part.begins) {
      probe.paired = ended[number];
      probe.unfinished = rest;
    } else {
      probe.unmatched = rest;
    }
  }
}

void add_estimates(const AttachPlan& plan, const std::vector<double>& hits, std::vector<ProbeCounts>& all) {
  std::vector<double> sums(all.size());
  for (std::uint32_t site = 0; site < hits.size(); ++site)
    sums[plan.sites[Index<PlannedSite>(site)].probe.value] += hits[site];
  for (std::size_t i = 0; i < all.size(); ++i) all[i].estimated = static_cast<std::uint64_t>(std::llround(sums[i]));
}

}  // namespace

std::vector<ProbeCounts> Tracer::counts() const {
  std::vector<ProbeCounts> all = impl_->counts;
  add_missed(impl_->link.missed_hits(), all);
  std::vector<std::uint64_t> ended(all.size());
  const AttachPlan& plan = *impl_->shared_plan;
  for (const Part& part : impl_->parts) {
    for (std::uint32_t site = 0; site < part.sites; ++site) {
      const std::uint32_t number = plan.sites[Index<PlannedSite>(part.first_site + site)].probe.value;
      const usdt_site_stats counted = part.counts.of(site);
      all[number].hits += counted.hits;
      all[number].ring_full += counted.ring_full;
      all[number].calls_full += counted.calls_full;
      all[number].rejected += counted.rejected;
      all[number].undecided += counted.undecided;
      all[number].table_full += counted.table_full;
      all[number].unpaired += counted.unpaired;
      all[number].not_sampled += counted.not_sampled;
      all[number].held_back += counted.held_back;
      all[number].faster += counted.faster;
      ended[number] += counted.ended;
    }
  }
  if (impl_->guard) add_estimates(plan, impl_->guard->hits(), all);
  if (plan.spans)
    for (const Part& part : impl_->parts) add_pairs(plan, part, ended, all);
  for (const AttachGroup& group : plan.groups) {
    if (group.moment != Moment::both) continue;
    for (const Index<PlannedSite> site : group.sites) {
      if (!impl_->part_of(site.value).ends_count) continue;
      const std::uint32_t number = plan.sites[site].probe.value;
      all[number].unfinished = all[number].hits - ended[number] - all[number].calls_full - all[number].not_sampled;
    }
  }
  if (!plan.table) return all;
  for (ProbeCounts& probe : all)
    probe.delivered = probe.hits - probe.not_sampled - probe.rejected - probe.undecided - probe.table_full -
                      probe.calls_full - probe.unfinished - probe.paired - probe.unmatched - probe.unpaired;
  return all;
}

Result<std::vector<TableRow>> Tracer::table() const {
  const AttachPlan& plan = *impl_->shared_plan;
  if (!plan.table) return fail(ErrorKind::invalid_argument, "the plan has no table");
  if (impl_->guard) return impl_->guard->rows();
  auto rows = event::read_rows(impl_->object(), plan);
  if (rows && impl_->options.sample > 1)
    for (TableRow& row : *rows) row.scale(impl_->options.sample);
  return rows;
}

bool Tracer::table_grew() noexcept {
  const auto* made = static_cast<const __u64*>(impl_->object().global("usdt_rows_made"));
  const std::uint64_t now = made ? sys::load_kernel_counter(*made) : 0;
  return std::exchange(impl_->rows_seen, now) != now;
}

std::uint64_t Tracer::undecided() const noexcept {
  const auto* count = static_cast<const std::uint64_t*>(impl_->object().global("usdt_undecided"));
  return count ? *count : 0;
}

std::optional<Overhead> Tracer::overhead() const {
  return impl_->guard ? std::optional(impl_->guard->account()) : std::nullopt;
}
std::optional<std::uint64_t> Tracer::missed() const { return impl_->link.missed(); }
std::vector<MissedHits> Tracer::missed_hits() const { return impl_->link.missed_hits(); }

}  // namespace v1
}  // namespace usdt
