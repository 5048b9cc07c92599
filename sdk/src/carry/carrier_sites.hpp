// SPDX-License-Identifier: BSD-2-Clause
// Answers what carriers ask about the sites of a plan. Private to carry/.
#pragma once

#include <optional>
#include <vector>

#include "usdt/carrier.hpp"

namespace usdt::carry {

class CarrierSites {
 public:
  CarrierSites(const AttachPlan& plan, const CarrierOptions& options);

  [[nodiscard]] const AttachPlan& plan() const noexcept { return plan_; }
  [[nodiscard]] const CarrierOptions& options() const noexcept { return options_; }
  /// Returns the sites that something is attached to.
  [[nodiscard]] Indices<PlannedSite> sites() const noexcept {
    return Indices<PlannedSite>(Index<PlannedSite>(plan_.places()));
  }
  /// Returns the plan's specs, or one for all sites if programs read no arguments.
  [[nodiscard]] const Table<EncodedSpec>& specs() const noexcept { return *specs_; }
  [[nodiscard]] Index<EncodedSpec> spec_of(Index<PlannedSite> site) const noexcept {
    return options_.arguments ? plan_.sites[site].spec : Index<EncodedSpec>();
  }
  /// Returns what the program at a site is loaded for; of two programs that share calls, the one at the entry.
  [[nodiscard]] ProgramKind kind_of(Index<PlannedSite> site) const noexcept {
    ProgramKind kind = groups_[group_of_[site.value].value].kind;
    kind.filter = plan_.sites[site].filter;
    kind.pair = plan_.sites[site].pair;
    if (plan_.spans) kind.span = site.value < plan_.spans->begins ? USDT_SPAN_BEGIN : USDT_SPAN_END;
    return kind;
  }
  /// Returns whether the site has no attach cookie but a program of its own, which can know what a cookie would say.
  [[nodiscard]] bool is_fixed(Index<PlannedSite> site) const noexcept {
    return groups_[group_of_[site.value].value].fixed;
  }
  /// Returns whether the group's sites share one link, for which all have to take the table.
  [[nodiscard]] bool wants_table(Index<PlannedSite> site) const noexcept {
    return groups_[group_of_[site.value].value].one_table;
  }

  /// Returns the site's spec as a cookie; nothing: it does not fit.
  [[nodiscard]] std::optional<std::uint64_t> packed(Index<PlannedSite> site) const;
  [[nodiscard]] std::uint64_t table_cookie(Index<PlannedSite> site) const noexcept {
    return USDT_TABLE_COOKIE(site.value, spec_of(site).value);
  }
  /// Returns the address that tells sites apart: segments are mapped by pages, so that the offset in a file will do.
  [[nodiscard]] std::uint64_t address_of(Index<PlannedSite> site) const noexcept;

  [[nodiscard]] unsigned site_bits() const noexcept { return site_bits_; }
  /// Returns whether all sites have one user cookie, which then needs no room in their attach cookies.
  [[nodiscard]] bool same_user_cookie() const noexcept { return same_user_cookie_; }

 private:
  /// Holds what is true of all sites of a group.
  struct OfGroup {
    ProgramKind kind;
    bool fixed = false;
    bool one_table = false;
  };

  [[nodiscard]] bool wants_one_table(const AttachGroup& group) const;

  const AttachPlan& plan_;
  const CarrierOptions& options_;
  const Table<EncodedSpec>* specs_;
  unsigned site_bits_;
  bool same_user_cookie_;
  std::vector<Index<AttachGroup>> group_of_;  ///< by site
  std::vector<OfGroup> groups_;               ///< by group
};

}  // namespace usdt::carry
