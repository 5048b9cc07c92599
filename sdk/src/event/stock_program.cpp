// SPDX-License-Identifier: BSD-2-Clause
#include "event/stock_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "event/row_map.hpp"
#include "expr/beginning.hpp"
#include "usdt/features.hpp"

namespace usdt::event {
namespace {

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

}  // namespace

bool asks_for_owner(const AttachPlan& plan) {
  return plan.spans && std::ranges::any_of(plan.filters, [](const TypedExpression& question) {
           return expr::asks_for(question, HitFieldSource::owner);
         });
}

bool counts_beginnings(const AttachPlan& plan, const TraceOptions& options) {
  return options.count_only && !asks_at_ends(plan);
}

std::string program_for(const AttachPlan& plan, const TraceOptions& options, bool sleepable) {
  if (plan.table)
    return fmt::format("usdt_trace_table_{}{}{}", has_calls(plan) ? "call" : "hit",
                       plan.table->extremes ? "_extremes" : "", has_stacks(*plan.table) ? "_stacks" : "");
  if (options.count_only && asks_at_ends(plan)) return "usdt_trace_count_calls_where";
  if (options.count_only) return plan.filters.empty() ? "usdt_trace_count" : "usdt_trace_count_where";
  const bool copies = sleepable || plan.string_slots > 0 || options.user_stack_depth > 0;
  const std::string_view can = plan.max_steps > 0 ? "_steps" : copies ? "_memory" : "";
  if (!plan.filters.empty() && can.empty() && !has_calls(plan)) return "usdt_trace_hit_where";  // all others take one
  return fmt::format("usdt_trace_{}{}", has_calls(plan) ? "call" : "hit", can);
}

/// (Programs that wait may not have the maps of stacks: check_map_prog_compatibility() of kernel/bpf/verifier.c.)
bool waits_for_pages(const AttachPlan& plan, const TraceOptions& options) {
  if (options.broker || (plan.table && has_stacks(*plan.table))) return false;
  const bool picked = !pids_of(plan.scope).empty() || options.descendants_only;
  return options.wait_for_pages.value_or(picked) && !options.count_only && !plan.files.empty() &&
         (reads_memory(plan) || has_text_key(plan)) && probe_feature(Feature::sleepable_uprobe).answer == Answer::yes;
}

}  // namespace usdt::event
