// SPDX-License-Identifier: BSD-2-Clause
#include "carry/carrying.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "usdt/bpf/cookie.h"

namespace usdt::carry {
namespace {

/// Whether a packed cookie says it by its shortest form, USDT_FORM_REG.
bool packs_as_register(const usdt_arg_spec& arg) {
  return arg.kind == USDT_ARG_REG && arg.shift == 0 && (arg.flags & ~USDT_ARG_SIGNED) == 0;
}

Error does_not_fit(const CarrierSites& sites, Index<PlannedSite> number) {
  const AttachPlan& plan = sites.plan();
  const PlannedSite& site = plan.sites[number];
  const PlannedProbe& probe = plan.probes[site.probe];
  const auto* place = std::get_if<FilePlace>(&site.point);
  const std::string where = place ? fmt::format(" at {:#x}", place->pc.value) : "";
  const std::string what = fmt::format("{}:{}{}", probe.provider, probe.name, where);
  if (sites.is_fixed(number))
    return {ErrorKind::not_supported,
            fmt::format("{}: this kernel has no attach cookies there; let the planner choose", what)};
  const std::string why = sites.same_user_cookie() ? fmt::format("a spec and {} bits of site number", sites.site_bits())
                                                   : "user cookies that differ";
  return {ErrorKind::limit,
          fmt::format("{}: {} do not fit an attach cookie; use the table, or let the planner choose", what, why)};
}

}  // namespace

Index<PlannedProgram> Carrying::add_program(PlannedProgram program) {
  const bool shares_calls = program.kind.calls && program.kind.moment == Moment::entry;
  if (!shares_calls) return out.programs.add(std::move(program));
  const Index<PlannedProgram> at_entry = out.programs.add(std::move(program));
  PlannedProgram at_return = out.programs[at_entry];
  at_return.kind.moment = Moment::exit;
  at_return.partner = at_entry;
  const Index<PlannedProgram> partner = out.programs.add(std::move(at_return));
  out.programs[at_entry].partner = partner;
  return at_entry;
}

Index<PlannedProgram> Carrying::shared_program(Index<PlannedSite> site, std::uint32_t carriers) {
  const ProgramKind kind = sites.kind_of(site);
  const auto [it, fresh] = shared_.try_emplace({kind, carriers});
  if (fresh) it->second = add_program({.kind = kind, .carriers = carriers, .packed_regs = carriers == kCookieBit});
  return it->second;
}

void Carrying::by_table(Index<PlannedSite> site) {
  ++out.in_table;
  out.needs_table = true;
  const std::uint32_t carriers = sites.is_fixed(site) ? kTableBit | kFixedBit : kTableBit;
  set(site, {shared_program(site, carriers), sites.table_cookie(site)});
}

void Carrying::by_cookie_or_table(Index<PlannedSite> site) {
  const auto cookie = sites.wants_table(site) || sites.is_fixed(site) ? std::nullopt : sites.packed(site);
  if (!cookie) return by_table(site);
  const Index<PlannedProgram> number = shared_program(site, kCookieBit);
  PlannedProgram& program = out.programs[number];
  program.packed_regs &= std::ranges::all_of(sites.specs()[sites.spec_of(site)].args, packs_as_register);
  if (program.partner) out.programs[*program.partner].packed_regs = program.packed_regs;
  ++out.in_cookie;
  set(site, {number, *cookie});
}

/// Two programs are too many where only one is allowed.
Result<void> carry_by_cookie_and_table(Carrying& carrying) {
  const CarrierSites& sites = carrying.sites;
  const CarrierOptions& options = sites.options();
  const bool must = options.carrier == Carrier::cookie;
  bool pack = carrying.out.carrier == Carrier::cookie;
  if (pack && (must || options.max_programs == 1)) {
    for (const Index<PlannedSite> site : sites.sites()) {
      if (sites.packed(site) && !sites.is_fixed(site)) continue;
      if (must) return fail(does_not_fit(sites, site));
      pack = false;
      break;
    }
  }
  for (const Index<PlannedSite> site : sites.sites())
    pack ? carrying.by_cookie_or_table(site) : carrying.by_table(site);
  return {};
}

}  // namespace usdt::carry
