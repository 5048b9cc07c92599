// SPDX-License-Identifier: BSD-2-Clause
#include "plan/check_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace usdt::plan {

Result<void> check_texts(const AttachPlan& plan, const TextOptions& texts) {
  std::size_t most = 0;
  for (const auto& args : plan.args) most = std::max(most, args.size());
  for (const std::uint8_t number : texts.numbers) {
    if (number >= most)
      return fail(ErrorKind::invalid_argument,
                  fmt::format("the text of arg{}: no such argument: {}", number,
                              most == 0 ? "the sites have none" : fmt::format("the last one is arg{}", most - 1)));
  }
  for (const std::string& name : texts.names) {
    if (!std::ranges::any_of(plan.args, [&](const auto& args) { return find_arg(args, name).has_value(); }))
      return fail(ErrorKind::invalid_argument, fmt::format("the text of {}: no such argument", name));
  }
  return {};
}

Result<void> check_durations(const AttachPlan& plan) {
  for (const AttachGroup& group : plan.groups) {
    if (group.moment == Moment::both) continue;
    for (const Index<PlannedSite> number : group.sites) {
      const PlannedSite& site = plan.sites[number];
      if (!site.filter || !plan.filters[*site.filter].asks(HitField::duration)) continue;
      return fail(ErrorKind::invalid_argument,
                  fmt::format("duration: only calls have one (ucall, kcall, ksession, fsession), and spans, from a hit "
                              "of one probe to one of another (A ~~ B); {} is neither",
                              full_name(plan, plan.probes[site.probe])));
    }
  }
  return {};
}

Result<void> put_in_words(AttachPlan& plan) {
  constexpr std::size_t kMostQuestions = 64;
  if (std::ranges::none_of(plan.filters, &TypedExpression::depends_on_site)) return {};
  const Table<TypedExpression> asked = std::exchange(plan.filters, {});
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, Index<TypedExpression>> known;
  for (PlannedSite& site : plan.sites) {
    if (!site.filter) continue;
    const std::uint64_t ip = pc_of(plan, site).value_or(VirtAddr()).value;
    const auto [it, fresh] = known.try_emplace({site.filter->value, site.probe.value, ip});
    if (fresh) {
      const PlannedProbe& probe = plan.probes[site.probe];
      const TypedExpression made = asked[*site.filter].at_site({probe.provider, probe.name, ip});
      it->second = plan.filters.next();
      for (const Index<TypedExpression> same : plan.filters.indices())
        if (plan.filters[same] == made) it->second = same;
      if (it->second == plan.filters.next()) plan.filters.add(made);
      if (plan.filters.size() > kMostQuestions)
        return fail(
            ErrorKind::limit,
            fmt::format("what is asked is another question at each site, by its name or ip, and each is a program "
                        "of its own: more than {} of them",
                        kMostQuestions));
    }
    site.filter = it->second;
  }
  return {};
}

Error nothing_to_attach(const AttachPlan& plan) {
  const SkippedSite& first = plan.skipped.front();
  const PlannedProbe& probe = plan.probes[first.probe];
  const std::size_t all = plan.skipped.size();
  if (probe.file)
    return {ErrorKind::not_supported, fmt::format("none of {} sites can be attached; {}:{} at {:#x}: {}", all,
                                                  probe.provider, probe.name, first.pc->value, first.reason)};
  return {ErrorKind::not_supported,
          fmt::format("{}{}:{}: {}", all > 1 ? fmt::format("none of {} can be attached; ", all) : "", probe.provider,
                      probe.name, first.reason)};
}

}  // namespace usdt::plan
