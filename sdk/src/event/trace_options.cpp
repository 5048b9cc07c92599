// SPDX-License-Identifier: BSD-2-Clause
#include "event/trace_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/try.hpp"
#include "event/open_calls.hpp"
#include "program/thread_base.hpp"

namespace usdt::event {
namespace {

template <class... Args>
tl::unexpected<Error> meaningless(fmt::format_string<Args...> text, Args&&... args) {
  return fail(ErrorKind::invalid_argument, fmt::format(text, std::forward<Args>(args)...));
}

/// The kernel's own limit is a sysctl that is 127 unless someone changed it (kernel.perf_event_max_stack).
constexpr std::uint32_t kDeepestStack = 127;
/// Our own limit: nobody reads longer stacks.
constexpr std::uint32_t kMostFrames = 512;
constexpr std::uint32_t kPage = 4096;
constexpr std::uint32_t kMostStackBytes = 65536;

std::string names_of(const Processes& processes) {
  const auto& pids = processes.pids();
  return fmt::format("{} {}", pids.size() == 1 ? "process" : "processes", fmt::join(pids, ", "));
}

Result<void> check(const AttachPlan& plan, const TraceOptions& options) {
  if (is_kernel(options.backend))
    return meaningless("backend {}: it attaches to kernel functions; for files there are uprobe_multi and perf_uprobe",
                       to_string(options.backend));
  if (options.kernel_stack_depth > kDeepestStack)
    return meaningless("kernel stacks of {} addresses: at most {}", options.kernel_stack_depth, kDeepestStack);
  if (options.kernel_stack_depth > 0 && !has_kernel_points(plan))
    return meaningless(
        "kernel stacks: nothing of the plan is in the kernel, and a process at a USDT site has no stack there");
  const bool frame_pointers = options.user_stack_method == StackMethod::frame_pointers;
  const std::uint32_t most_frames = frame_pointers ? kDeepestStack : kMostFrames;
  if (options.user_stack_depth > most_frames)
    return meaningless("stacks of {} frames: at most {}", options.user_stack_depth, most_frames);
  const std::uint32_t bytes = options.user_stack_bytes;
  if (options.user_stack_depth > 0 && !frame_pointers && (bytes == 0 || bytes % kPage != 0 || bytes > kMostStackBytes))
    return meaningless("{} bytes of stacks: a multiple of {}, at most {}", bytes, kPage, kMostStackBytes);
  if (options.count_only && plan.spans)
    return meaningless("hits that are only counted are not paired: spans are counted by a table");
  if (options.string_size == 0 && plan.string_slots > 0) return meaningless("strings of 0 bytes");
  if (options.descendants_only && options.family_of)
    return meaningless("descendants of the caller, and the family of {}: one of them", names_of(*options.family_of));
  if (const std::vector<pid_t> alone = pids_of(plan.scope); !alone.empty() && options.family_of)
    return meaningless("the family of {}: the plan is for {} alone", names_of(*options.family_of),
                       alone.size() == 1 ? "one process" : "some processes");
  return {};
}

/// Sites that are detached for a while have no pairs, and nobody measures what hits in the kernel cost.
Result<void> check_overhead(const AttachPlan& plan, const TraceOptions& options) {
  const double share = options.max_overhead;
  if (share == 0) return {};
  if (!(share >= TraceOptions::kLeastOverhead && share <= TraceOptions::kMostOverhead))
    return meaningless("an overhead of at most {:g} %: from {:g} % to {:g} %", share * 100,
                       TraceOptions::kLeastOverhead * 100, TraceOptions::kMostOverhead * 100);
  if (options.sample > 1) return meaningless("an overhead of at most {:g} %, and a sample: one of them", share * 100);
  if (has_kernel_points(plan))
    return meaningless("an overhead of at most {:g} %: what hits in the kernel cost is not measured", share * 100);
  const bool calls = plan.spans || std::ranges::any_of(plan.groups, [](const AttachGroup& group) {
                       return group.moment != Moment::entry;
                     });
  if (calls)
    return meaningless(
        "an overhead of at most {:g} %: sites are detached for a while then, and calls, returns and spans that are "
        "under "
        "way would be lost, or taken for others",
        share * 100);
  return {};
}

/// What a service that attaches for others does not do for anybody.
Result<void> check_broker(const AttachPlan& plan, const TraceOptions& options) {
  if (!options.broker) return {};
  const auto refuse = [](std::string_view what) {
    return fail(ErrorKind::not_supported, fmt::format("through usdt-broker: {}", what));
  };
  if (options.max_overhead > 0) return refuse("no limit of overhead: what a hit costs cannot be measured there");
  if (options.kernel_stack_depth > 0) return refuse("no stacks of the kernel");
  if (plan.contexts) return refuse("no traces and spans that threads work for (trace_id, span_id)");
  if (options.wait_for_pages.value_or(false))
    return refuse("no waiting for pages that are not in memory: it could hold up everybody");
  if (options.backend != Backend::automatic && options.backend != Backend::uprobe_multi)
    return refuse("uprobe_multi alone, of which the kernel keeps processes apart");
  return {};
}

/// Guards that guard nothing, or would make what is shown untrue.
Result<void> check_guards(const AttachPlan& plan, const TraceOptions& options) {
  if (options.sample == 0 || options.sample > TraceOptions::kMostSampled)
    return meaningless("a sample of one in {}: one in 1 to {}", options.sample, TraceOptions::kMostSampled);
  if (options.sample > 1 && options.count_only && plan.filters.empty())
    return meaningless(
        "a sample of hits that are only counted: each is counted, since to choose among them costs more");
  if (options.max_rate > TraceOptions::kMostRate)
    return meaningless("at most {} events a second: the most that can be asked for is {}", options.max_rate,
                       TraceOptions::kMostRate);
  if (options.max_rate > 0 && (options.count_only || plan.table))
    return meaningless("at most {} events a second: hits that are counted, or put in a table, are no events",
                       options.max_rate);
  return check_overhead(plan, options);
}

void lay_out_user_stack(EventLayout& layout, const AttachPlan& plan, const TraceOptions& options) {
  layout.user_stack_depth = options.user_stack_depth;
  layout.user_stack_method = options.user_stack_method;
  if (options.user_stack_depth == 0) return;
  if (options.script_frames && !options.broker && backends::find_thread_pointer() != 0)
    layout.script_depth = std::min<std::uint32_t>(options.user_stack_depth, USDT_MOST_SCRIPT_FRAMES);
  if (options.user_stack_method == StackMethod::frame_pointers) {
    // The beginning of the stack too: a function that keeps no frame pointer has the address of its caller there.
    layout.user_addresses = options.user_stack_depth;
    layout.user_copy_piece = 512;
    layout.user_copy_pieces = 1;
  } else {
    layout.user_addresses = has_kernel_points(plan) ? 1 : 0;
    layout.user_copy_piece = kPage;
    layout.user_copy_pieces = options.user_stack_bytes / kPage;
  }
}

}  // namespace

Result<EventLayout> layout_for(const AttachPlan& plan, const TraceOptions& options, std::uint32_t ring_bytes) {
  TRY(check(plan, options));
  TRY(check_guards(plan, options));
  TRY(check_broker(plan, options));
  EventLayout layout{plan.spans ? plan.spans->args : plan.max_args, plan.string_slots, 0};
  layout.weight = options.sample;
  layout.owners = plan.owners;
  layout.contexts = plan.contexts;
  layout.attributes = plan.attributes;
  layout.enders = may_end_elsewhere(plan);
  layout.stack_shown = options.kernel_stack_depth;
  // Raw tracepoints have up to five frames of their own.
  constexpr std::uint32_t most_tracer_frames = 8;
  const bool own_frames = std::ranges::any_of(plan.sites, [](const auto& site) { return site.tracer_frames > 0; });
  layout.stack_depth = layout.stack_shown + (layout.stack_shown > 0 && own_frames ? most_tracer_frames : 0);
  // The texts of calls that are asked about at their ends are kept.
  if (options.count_only && layout.string_slots > 0) layout.string_size = options.string_size + 2;
  if (options.count_only) return layout;
  lay_out_user_stack(layout, plan, options);
  // The kernel keeps 8 bytes before each record (BPF_RINGBUF_HDR_SZ). Counted in 64 bits, what is asked for cannot
  // wrap.
  const std::uint64_t texts = layout.string_slots * (std::uint64_t{options.string_size} + 2);
  const std::uint64_t record = layout.record_size() + texts + 8;
  if (record > ring_bytes)
    return meaningless(
        "a ring of {} bytes holds no event of {} bytes, with {} of up to {} bytes: ask for shorter ones, "
        "or a larger ring",
        ring_bytes, record, layout.string_slots == 1 ? "a string" : "strings", options.string_size);
  if (layout.string_slots > 0) layout.string_size = options.string_size + 2;
  return layout;
}

}  // namespace usdt::event
