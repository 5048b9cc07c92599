// SPDX-License-Identifier: BSD-2-Clause
#include "carry/carrier_sites.hpp"

#include <algorithm>
#include <bit>

#include "backend/table.hpp"
#include "usdt/cookie.hpp"

namespace usdt::carry {
namespace {

/// So many kernel functions in one link, and a second link for those that fit no cookie is dearer than what cookies
/// save: each starts and ends with a pass over all that is probed.
constexpr std::size_t kManyFunctions = 1000;

/// The spec of every site to a program that reads none.
const Table<EncodedSpec>& no_arguments() {
  static const Table<EncodedSpec> one = [] {
    Table<EncodedSpec> made;
    made.add({});
    return made;
  }();
  return one;
}

ProgramKind kind_of_group(const AttachPlan& plan, const AttachGroup& group) {
  ProgramKind kind{.backend = group.backend, .source = group.source, .moment = group.moment};
  kind.returns = group.returns;
  kind.calls = group.moment == Moment::both;
  if (kind.calls && !group.session) kind.moment = Moment::entry;
  if (!group.sites.empty()) kind.program = plan.sites[group.sites.front()].program;
  return kind;
}

/// Groups without attach cookies whose sites each have a program of their own. The others are told apart by address,
/// which at a return is that of the kernel's return trampoline.
bool has_programs_of_one_site(const AttachGroup& group) {
  return !group.cookies && (group.source != USDT_SOURCE_KERNEL || group.moment != Moment::entry);
}

}  // namespace

CarrierSites::CarrierSites(const AttachPlan& plan, const CarrierOptions& options)
    : plan_(plan),
      options_(options),
      specs_(options.arguments ? &plan.specs : &no_arguments()),
      site_bits_(options.site_numbers ? static_cast<unsigned>(std::bit_width(plan.places() - 1)) : 0),
      same_user_cookie_(std::ranges::all_of(
          *specs_, [&](const EncodedSpec& spec) { return spec.user_cookie == specs_->front().user_cookie; })),
      group_of_(plan.sites.size()),
      groups_(plan.groups.size()) {
  for (const Index<AttachGroup> number : plan.groups.indices()) {
    const AttachGroup& group = plan.groups[number];
    for (const Index<PlannedSite> site : group.sites) group_of_[site.value] = number;
    groups_[number.value].kind = kind_of_group(plan, group);
    groups_[number.value].fixed = has_programs_of_one_site(group);
    groups_[number.value].one_table = wants_one_table(group);
  }
}

/// Many functions in one link, of which some do not fit a cookie.
bool CarrierSites::wants_one_table(const AttachGroup& group) const {
  return std::holds_alternative<KernelModule>(group.of) && backends::row_of(group.backend).info.one_link &&
         group.sites.size() >= kManyFunctions &&
         !std::ranges::all_of(group.sites, [&](Index<PlannedSite> site) { return packed(site).has_value(); });
}

std::optional<std::uint64_t> CarrierSites::packed(Index<PlannedSite> site) const {
  if (!same_user_cookie_) return std::nullopt;
  return pack_cookie(machine_of(plan_, plan_.sites[site]), (*specs_)[spec_of(site)].args,
                     options_.site_numbers ? site.value : 0, site_bits_);
}

std::uint64_t CarrierSites::address_of(Index<PlannedSite> site) const noexcept {
  const PlannedSite& planned = plan_.sites[site];
  const auto* place = std::get_if<FilePlace>(&planned.point);
  return place ? place->offset.value : function_of(plan_, planned)->address;
}

}  // namespace usdt::carry
