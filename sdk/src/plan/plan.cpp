// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "base/no_memory.hpp"
#include "base/try.hpp"
#include "expr/attributes.hpp"
#include "expr/beginning.hpp"
#include "plan/check_plan.hpp"
#include "plan/planner.hpp"

namespace usdt {
inline namespace v1 {

Result<AttachPlan> plan_attach(const Selection& selection, const KernelFacts& kernel, const PlanOptions& options) try {
  std::size_t sites = selection.kernel.entries.size();
  for (const ProbeFile& file : selection.files) {
    if (file.elf == nullptr) {
      return fail(ErrorKind::invalid_argument, fmt::format("{}: not scanned", file.target.path.string()));
    }
    sites += file.sites.size() + file.functions.size();
  }
  if (sites == 0 && selection.kernel.refused.empty()) return fail(ErrorKind::not_found, "no site to attach to");
  if (sites > USDT_MAX_SITES) {
    return fail(ErrorKind::limit, fmt::format("{} sites: at most {} can be told apart", sites, USDT_MAX_SITES));
  }
  if ((options.where && expr::asks_attribute(*options.where)) ||
      (options.table && expr::asks_attribute(*options.table)))
    return fail(ErrorKind::not_supported, expr::kAttributeIsOfEvents);
  plan::Planner planner(kernel, options, selection.files.size() > 1);
  planner.reserve(sites);
  for (const ProbeFile& file : selection.files) planner.add(file);
  TRY(planner.add(selection.kernel));
  if (options.stop.stop_requested()) return fail(ErrorKind::stopped, "not planned to the end");
  const auto paths = planner.check();
  AttachPlan plan = std::move(planner).take();
  plan.owners = options.owners;
  plan.attributes = options.attributes;
  plan.contexts =
      options.contexts || options.attributes || std::ranges::any_of(plan.filters, [](const TypedExpression& question) {
        return expr::asks_for(question, HitFieldSource::context);
      });
  if (!paths && (!plan.sites.empty() || options.where || options.table)) return fail(paths.error());
  if (auto sense = plan::check_texts(plan, options.texts); !sense && !plan.sites.empty()) return fail(sense.error());
  if (plan.sites.empty()) return fail(plan::nothing_to_attach(plan));
  TRY(plan::put_in_words(plan));
  TRY(plan::check_durations(plan));
  if (plan.table && !options.rows && !has_kernel_points(plan) &&
      std::ranges::find(plan.table->keys, HitField::kstack, &TableColumn::field) != plan.table->keys.end())
    return fail(ErrorKind::invalid_argument,
                "kstack: nothing of what is traced is in the kernel, and a process at a probe has no stack there");
  return plan;
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

}  // namespace v1
}  // namespace usdt
