// SPDX-License-Identifier: BSD-2-Clause
#include "event/load_part.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include "base/try.hpp"
#include "btf/types.hpp"
#include "event/cgroup_filter.hpp"
#include "event/descendants.hpp"
#include "event/event_ring.hpp"
#include "event/open_calls.hpp"
#include "event/row_map.hpp"
#include "event/stock_program.hpp"
#include "trace.bpf.hpp"
#include "usdt/bpf/filter.h"
#include "usdt/clock.hpp"

namespace usdt::event {
namespace {

bool has_events(const AttachPlan& plan, const TraceOptions& options) { return !options.count_only && !plan.table; }

Result<void> size_maps(BpfObject& object, const AttachPlan& plan, const EventLayout& layout,
                       const TraceOptions& options) {
  TRY(size_open_calls(object, plan, layout, options));
  return object.set_max_entries("usdt_events", ring_size(has_events(plan, options) ? options.ring_bytes : 0));
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

/// Which thread of a number it is (bpf/trace/threads.h).
void find_threads(usdt_stock_constants& constants) {
  const auto types = btf::Types::load();
  if (!types) return;
  const auto find = [&](const char* member) { return (*types)->member_offset("task_struct", member).value_or(0); };
  constants.task_start_offset = find("start_time");
  constants.task_exec_offset = find("self_exec_id");
  constants.task_leader_offset = find("group_leader");
}

bool has_likely_texts(const AttachPlan& plan) {
  return std::ranges::any_of(plan.specs, [](const EncodedSpec& spec) {
    return std::ranges::find(spec.args, USDT_CAPTURE_LIKELY, &usdt_arg_spec::capture) != spec.args.end();
  });
}

/// What older verifiers say of the instructions that extremes take names neither.
Error explained(Error error, const AttachPlan& plan) {
  if (error.kind != ErrorKind::verifier || !plan.table || !plan.table->extremes) return error;
  error.kind = ErrorKind::not_supported;
  return error.within("smallest and largest values need an atomic exchange in programs (Linux 5.12, arm64: 5.18)");
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
  if (plan.table) std::ranges::copy(maps_of_rows(*plan.table), std::back_inserter(maps));
  for (const char* map : maps) {
    auto fd = TRY(with.map_fd(map));
    TRY(object.reuse_map(map, fd));
  }
  return {};
}

/// The ring that was made ahead, if there is one, and the trace has events.
Result<void> take_ring(BpfObject& object, const AttachPlan& plan, const TraceOptions& options) {
  if (!options.ring || !has_events(plan, options)) return {};
  const sys::UniqueFd map = RingTaker::take(*options.ring, ring_size(options.ring_bytes));
  return map ? object.reuse_map("usdt_events", map.get()) : Result<void>();
}

Result<void> set_families(BpfObject& object, usdt_stock_constants& constants, const TraceOptions& options) {
  Family family;
  if (options.family_of) family.pids = options.family_of->pids();
  return keep_family_only(object, constants, family);
}

/// Whether the calling process does not count though nobody is chosen by number. A command is not its caller.
bool leaves_out_self(const TraceOptions& options, const AttachPlan& plan) {
  return options.leave_out_self && !options.descendants_only && pids_of(plan.scope).empty();
}

/// What the programs are told, and what they share with those that were loaded before.
Result<usdt_stock_constants> prepare(BpfObject& object, const AttachPlan& plan, const TraceOptions& options,
                                     const Shared& common, const EventLayout& layout) {
  usdt_stock_constants constants = constants_of(layout);
  constants.site_base = common.first_site;
  TRY(check_cgroups(options.cgroups));
  constants.cgroups = static_cast<__u32>(options.cgroups.size());
  constants.record_args = layout.max_args;
  set_guards(constants, options, common);
  if (plan.spans) {
    constants.span_begins = plan.spans->begins;
    constants.span_ends = plan.spans->ends;
    constants.span_owner = asks_for_owner(plan) ? 1 : 0;
    constants.pair_life = static_cast<__u8>(life_of_beginnings(plan));
  }
  if (keeps_beginnings(plan, options)) find_threads(constants);
  if (layout.user_stack_depth > 0) find_replaced_returns(constants);
  if (follows_family(options)) {
    TRY(set_families(object, constants, options));
  }
  // Where the kernel does not say what tasks are of whom, a few hits of theirs, at the end of the trace, are seen.
  if (leaves_out_self(options, plan) && !follows_family(options) && has_kernel_points(plan))
    static_cast<void>(leave_out_tasks(constants));
  if (plan.table) {
    TRY(size_rows(object, *plan.table));
    describe_rows(constants, *plan.table);
  }
  if (common.with) {
    TRY(share_maps(object, *common.with, plan));
  } else if (auto reused = take_ring(object, plan, options); !reused) {
    return fail(reused.error());
  }
  return constants;
}

}  // namespace

Result<Loaded> load_part(const std::shared_ptr<const AttachPlan>& shared, const TraceOptions& options,
                         const Shared& common) {
  const AttachPlan& plan = *shared;
  auto object = TRY(BpfObject::open(trace_object(), "usdt"));
  const EventLayout layout = TRY(layout_for(plan, options, ring_size(options.ring_bytes)));
  TRY(size_maps(object, plan, layout, options));
  const bool sleepable = waits_for_pages(plan, options);
  usdt_stock_constants constants = TRY(prepare(object, plan, options, common, layout));
  constants.may_sleep = sleepable ? 1 : 0;
  auto rows = TRY(SiteCounts::size(object, constants, plan.places()));
  const auto sites = static_cast<std::uint32_t>(plan.places());
  if (has_likely_texts(plan)) {
    TRY(object.set_max_entries("usdt_misreads", sites));
  }
  usdt_stock_constants told = constants;
  const bool of_family = !common.family.roots.empty();
  if (of_family) told.ancestors.count = 0;
  TRY(object.set_constant("usdt_stock_constants", told));
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
                         .sites = sites,
                         .begins = plan.spans ? plan.spans->begins : 0,
                         .ends_count = !counts_beginnings(plan, options),
                         .program = std::move(program)},
                .constants = constants,
                .plan = std::move(of_it)};
}

std::uint64_t rate_start_now() { return event_clock() - 1'000'000'000; }

bool follows_family(const TraceOptions& options) { return options.descendants_only || options.family_of; }

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
