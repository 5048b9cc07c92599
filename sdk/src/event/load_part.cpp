// SPDX-License-Identifier: BSD-2-Clause
#include "event/load_part.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include "arch/arch.hpp"
#include "base/try.hpp"
#include "event/cgroup_filter.hpp"
#include "event/context_places.hpp"
#include "event/descendants.hpp"
#include "event/event_ring.hpp"
#include "event/interpreters.hpp"
#include "event/kernel_offsets.hpp"
#include "event/open_calls.hpp"
#include "event/row_map.hpp"
#include "event/stock_objects.hpp"
#include "event/stock_program.hpp"
#include "program/thread_base.hpp"
#include "usdt/bpf/filter.h"
#include "usdt/clock.hpp"

namespace usdt::event {
namespace {

bool has_events(const AttachPlan& plan, const TraceOptions& options) { return !options.count_only && !plan.table; }

bool has_likely_texts(const AttachPlan& plan) {
  return std::ranges::any_of(plan.specs, [](const EncodedSpec& spec) {
    return std::ranges::find(spec.args, USDT_CAPTURE_LIKELY, &usdt_arg_spec::capture) != spec.args.end();
  });
}

Result<void> size_maps(BpfObject& object, const AttachPlan& plan, const EventLayout& layout,
                       const TraceOptions& options) {
  TRY(size_open_calls(object, plan, layout, options));
  if (follows_family(options)) TRY(size_fork_marks(object));
  if (plan.table) TRY(size_rows(object, *plan.table));
  if (plan.contexts) TRY(ContextPlaces::size(object));
  if (layout.script_depth > 0) TRY(object.set_max_entries("usdt_interpreters", Interpreters::most));
  if (has_likely_texts(plan)) TRY(object.set_max_entries("usdt_misreads", static_cast<std::uint32_t>(plan.places())));
  return object.set_max_entries("usdt_events", ring_size(has_events(plan, options) ? options.ring_bytes : 0));
}

usdt_record_constants describe_record(const EventLayout& layout, std::uint32_t first_site) {
  return {.size = layout.record_size(),
          .args = layout.max_args,
          .string_slots = layout.string_slots,
          .string_size = layout.string_size,
          .stack_depth = layout.stack_depth,
          .site_base = first_site,
          .owners = layout.owners ? 1U : 0U,
          .ender_at = layout.enders ? layout.ender_at() : 0,
          .context_at = layout.contexts ? layout.context_at() : 0,
          .attributes = layout.attributes ? 1U : 0U};
}

usdt_user_stack_constants describe_user_stack(const EventLayout& layout) {
  return {.at = layout.user_stack_depth > 0 ? layout.user_stack_at() : 0,
          .depth = layout.user_addresses,
          .copy_piece = layout.user_copy_piece,
          .copy_pieces = layout.user_copy_pieces};
}

usdt_script_constants describe_scripts(const EventLayout& layout) {
  if (layout.script_depth == 0) return {};
  return {.at = layout.script_at(),
          .depth = layout.script_depth,
          .thread_base = backends::find_thread_pointer(),
          .reserved = 0};
}

/// Explains a verifier's refusal of extremes: older ones name neither them nor the instructions that they take.
Error explained(Error error, const AttachPlan& plan) {
  if (error.kind != ErrorKind::verifier || !plan.table || !plan.table->extremes) return error;
  error.kind = ErrorKind::not_supported;
  return error.within("smallest and largest values need an atomic exchange in programs (Linux 5.12, arm64: 5.18)");
}

usdt_guard_constants describe_guards(const TraceOptions& options, std::uint64_t rate_start) {
  usdt_guard_constants guards{};
  guards.sample = options.sample > 1 ? options.sample : 0;
  guards.pausable = options.max_overhead > 0 ? 1 : 0;
  guards.slow_only = options.slow_only ? 1 : 0;
  if (options.max_rate == 0) return guards;
  guards.rate_price = (std::uint64_t{1'000'000'000} << USDT_RATE_SHIFT) / options.max_rate;
  guards.rate_start = rate_start;
  return guards;
}

usdt_span_constants describe_spans(const AttachPlan& plan) {
  if (!plan.spans) return {};
  return {.begins = plan.spans->begins,
          .ends = plan.spans->ends,
          .owner = asks_for_owner(plan) ? 1U : 0U,
          .pair_life = static_cast<__u32>(life_of_beginnings(plan))};
}

/// The maps of the first part: the ring, who sleeps at it, whose descendants count, and interpreters; the rows.
Result<void> share_maps(BpfObject& object, const LoadedObject& with, const AttachPlan& plan,
                        const EventLayout& layout) {
  std::vector<const char*> maps{"usdt_events", "usdt_descendants", ".bss"};
  if (layout.script_depth > 0) maps.push_back("usdt_interpreters");
  if (plan.contexts) maps.insert(maps.end(), {ContextPlaces::kMap, ContextPlaces::kWanted});
  if (plan.table) std::ranges::copy(maps_of_rows(*plan.table), std::back_inserter(maps));
  for (const char* map : maps) {
    auto fd = TRY(with.map_fd(map));
    TRY(object.reuse_map(map, fd));
  }
  return {};
}

/// The ring that was made ahead, if there is one, and the trace has events.
Result<void> take_ring(BpfObject& object, const AttachPlan& plan, const TraceOptions& options) {
  if (!options.ring || options.broker || !has_events(plan, options)) return {};
  const sys::UniqueFd map = RingTaker::take(*options.ring, ring_size(options.ring_bytes));
  return map ? object.reuse_map("usdt_events", map.get()) : Result<void>();
}

/// Whether the calling process does not count though nobody is chosen by number. A command is not its caller.
bool leaves_out_self(const TraceOptions& options, const AttachPlan& plan) {
  return options.leave_out_self && !options.descendants_only && pids_of(plan.scope).empty();
}

/// Says whose hits count by their descent.
Result<usdt_family_constants> describe_family(const AttachPlan& plan, const TraceOptions& options) {
  if (follows_family(options))
    return count_family_only({options.family_of ? options.family_of->pids() : std::vector<pid_t>()});
  // Our helping tasks show a few hits, at the end of the trace, if the kernel does not say which tasks are ours.
  if (leaves_out_self(options, plan) && has_kernel_points(plan))
    return leave_out_tasks().value_or(usdt_family_constants{});
  return usdt_family_constants{};
}

/// Makes the constants of the programs, each subject by itself.
Result<usdt_stock_constants> describe(const AttachPlan& plan, const TraceOptions& options, const Shared& common,
                                      const EventLayout& layout) {
  TRY(check_cgroups(options.cgroups));
  usdt_stock_constants constants{};
  if (plan.table) constants.table = describe_rows(*plan.table);
  constants.guards = describe_guards(options, common.rate_start);
  constants.record = describe_record(layout, common.first_site);
  constants.user_stack = describe_user_stack(layout);
  constants.scripts = describe_scripts(layout);
  if (layout.user_stack_depth > 0) constants.returns = find_replaced_returns();
  constants.family = TRY(describe_family(plan, options));
  if (keeps_beginnings(plan, options) || layout.owners || layout.contexts || layout.script_depth > 0)
    constants.threads = find_threads();
  if (layout.contexts) {
    constants.image = TRY(find_image());
    TRY(ContextPlaces::check_kernel());
    const usdt_thread_offsets& threads = constants.threads;
    if (threads.start == 0 || threads.exec == 0 || threads.leader == 0 || threads.parent == 0)
      return fail(
          ErrorKind::not_supported,
          "this kernel does not say when processes began, who began them, and whether they execute another program");
    if (arch::for_machine(plan.kernel_machine).thread_blocks.late) constants.late_pointer = TRY(find_late_pointer());
  }
  constants.spans = describe_spans(plan);
  constants.cgroups = static_cast<__u32>(options.cgroups.size());
  constants.may_sleep = waits_for_pages(plan, options) ? 1 : 0;
  return constants;
}

}  // namespace

Result<Loaded> load_part(const std::shared_ptr<const AttachPlan>& shared, const TraceOptions& options,
                         const Shared& common) {
  const AttachPlan& plan = *shared;
  auto object = TRY(BpfObject::open(stock_programs(), "usdt"));
  const EventLayout layout = TRY(layout_for(plan, options, ring_size(options.ring_bytes)));
  TRY(size_maps(object, plan, layout, options));
  const CountRows rows = TRY(SiteCounts::size(object, plan.places()));
  usdt_stock_constants constants = TRY(describe(plan, options, common, layout));
  constants.counters = rows.constants();
  TRY(common.with ? share_maps(object, *common.with, plan, layout) : take_ring(object, plan, options));
  const usdt_family_constants family = constants.family;
  const bool of_family = !common.family.roots.empty();
  if (of_family) constants.family.ancestors.count = 0;  // all who come by count
  TRY(object.set_constant("usdt_stock_constants", constants));
  const bool sleepable = constants.may_sleep != 0;
  std::string program = plan.spans ? "" : program_for(plan, options, sleepable);  // the plan names those of spans
  const LoadOptions load{.backend = options.backend,
                         .carrier = options.carrier,
                         .arguments = !options.count_only || !plan.filters.empty(),
                         .sleepable = sleepable,
                         .max_programs = options.max_programs,
                         .programs = plan.spans ? std::vector<std::string>() : std::vector{program},
                         .family = common.family.roots,
                         .family_held = common.family.held,
                         .leave_out_self = of_family ? common.family.without_self : leaves_out_self(options, plan),
                         .leave_out_changed = options.leave_out_changed,
                         .broker = options.broker,
                         .shares = common.with,
                         .stop = options.stop};
  auto loaded = object.load(shared, load);
  if (!loaded) return fail(explained(std::move(loaded.error()), plan));
  if (plan.table) {
    TRY(fill_blank_row(*loaded, *plan.table));
  }
  auto of_it = &loaded->plan() == shared.get() ? shared : std::make_shared<const AttachPlan>(loaded->plan());
  auto counts = TRY(SiteCounts::open(*loaded, rows));
  auto open_calls = TRY(OpenCalls::open(*loaded, plan, layout, options));
  return Loaded{.part = {.object = std::move(*loaded),
                         .layout = layout,
                         .counts = std::move(counts),
                         .unfinished = Unfinished(std::move(open_calls), plan, common.first_site),
                         .first_site = common.first_site,
                         .sites = static_cast<std::uint32_t>(plan.places()),
                         .begins = plan.spans ? plan.spans->begins : 0,
                         .ends_count = !counts_beginnings(plan, options),
                         .program = std::move(program)},
                .family = family,
                .plan = std::move(of_it)};
}

std::uint64_t rate_start_now() { return event_clock() - 1'000'000'000; }

bool follows_family(const TraceOptions& options) {
  return !options.broker && (options.descendants_only || options.family_of);
}

bool set_cgroups(const LoadedObject& object, const std::vector<std::filesystem::path>& cgroups) {
  auto* known = static_cast<usdt_cgroup*>(object.global("usdt_cgroups"));
  bool changed = false;
  for (std::size_t i = 0; known != nullptr && i < cgroups.size(); ++i) {
    const usdt_cgroup now = cgroup_at(cgroups[i]);
    if (known[i].id == now.id) continue;
    changed = true;
    const std::atomic_ref level(known[i].level);
    level.store(UINT32_MAX);  // none is so deep, while the number is written, on 32-bit machines in halves
    *const_cast<volatile __u64*>(&known[i].id) = now.id;
    level.store(now.level);
  }
  return changed;
}

}  // namespace usdt::event
