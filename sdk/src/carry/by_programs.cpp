// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "carry/carrying.hpp"
#include "carry/windows.hpp"

namespace usdt::carry {
namespace {

/// A spec where programs of one kind read it.
using KindAndSpec = std::pair<ProgramKind, Index<EncodedSpec>>;

/// Specs that may have a program in common, and the number of their sites.
struct SpecGroup {
  ProgramKind kind;
  std::vector<Index<EncodedSpec>> specs;
  std::size_t sites = 0;
};

/// A spec without what may differ between the sites of one program: displacements and constants.
std::string shape_of(const EncodedSpec& spec) {
  // Arguments and steps look alike: how many there are of either is part of the shape.
  std::string shape = fmt::format("{},{},{},", spec.user_cookie, spec.args.size(), spec.steps.size());
  std::size_t n = 0;
  for (usdt_arg_spec arg : gather_windows(spec.args).args) {
    if (n++ < USDT_LINK_ARGS) arg.value = 0;
    shape.append(reinterpret_cast<const char*>(&arg), sizeof(arg));
  }
  // The table holds an argument's own value for each site, not those of its steps.
  shape.append(reinterpret_cast<const char*>(spec.steps.data()), spec.steps.size() * sizeof(usdt_arg_spec));
  return shape;
}

/// Each spec alone if there are few, else by shape; the most used first.
std::vector<SpecGroup> group_specs(const CarrierSites& sites) {
  std::map<KindAndSpec, std::size_t> uses;
  for (const Index<PlannedSite> site : sites.sites()) {
    if (!sites.is_fixed(site)) ++uses[{sites.kind_of(site), sites.spec_of(site)}];
  }
  const bool by_shape = uses.size() > sites.options().max_programs;
  std::map<std::pair<ProgramKind, std::string>, SpecGroup> groups;
  for (const auto& [what, count] : uses) {
    const auto& [kind, number] = what;
    const EncodedSpec& spec = sites.specs()[number];
    SpecGroup& group = groups[{kind, by_shape ? shape_of(spec) : fmt::format("{:08x}", number.value)}];
    group.kind = kind;
    group.specs.push_back(number);
    group.sites += count;
  }
  std::vector<SpecGroup> order;
  order.reserve(groups.size());
  for (auto& [key, group] : groups) order.push_back(std::move(group));
  std::stable_sort(order.begin(), order.end(),
                   [](const SpecGroup& a, const SpecGroup& b) { return a.sites > b.sites; });
  return order;
}

PlannedProgram program_for(const Table<EncodedSpec>& specs, const SpecGroup& group) {
  PlannedProgram program{.kind = group.kind, .carriers = kLinkBit, .link_spec = specs[group.specs.front()]};
  for (const Index<EncodedSpec> spec : group.specs) {
    const auto& args = specs[spec].args;
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (args[i].value != program.link_spec.args[i].value) program.values_by_site |= 1u << i;
    }
  }
  return program;
}

}  // namespace

void carry_by_programs(Carrying& carrying) {
  const CarrierSites& sites = carrying.sites;
  const std::uint32_t most = sites.options().max_programs;
  std::vector<SpecGroup> groups = group_specs(sites);
  carrying.out.limited = groups.size() > most;
  if (groups.size() > most) groups.resize(most > 2 ? most - 2 : 0);
  std::map<KindAndSpec, Index<PlannedProgram>> program_of;
  for (const SpecGroup& group : groups) {
    const Index<PlannedProgram> program = carrying.add_program(program_for(sites.specs(), group));
    carrying.out.needs_table |= carrying.out.programs[program].values_by_site != 0;
    for (const Index<EncodedSpec> spec : group.specs) program_of[{group.kind, spec}] = program;
  }
  for (const Index<PlannedSite> site : sites.sites()) {
    const auto own =
        sites.is_fixed(site) ? program_of.end() : program_of.find({sites.kind_of(site), sites.spec_of(site)});
    if (own != program_of.end()) {
      carrying.set(site, {own->second, sites.table_cookie(site)});
      ++carrying.out.in_program;
    } else if (most > 1) {
      carrying.by_cookie_or_table(site);
    } else {
      carrying.by_table(site);
    }
  }
}

}  // namespace usdt::carry
