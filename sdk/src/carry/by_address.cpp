// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include <map>

#include "carry/carrying.hpp"

namespace usdt::carry {
namespace {

/// Values of the low 12 bits of an address.
constexpr std::size_t kKeys = 4096;

/// Programs of one kind, and of how many of them the sites of each key have taken one.
struct Taken {
  std::vector<Index<PlannedProgram>> programs;
  std::vector<std::uint32_t> by_key = std::vector<std::uint32_t>(kKeys);
};

Error too_many_alike(std::uint32_t sites, std::uint64_t address, std::uint32_t limit) {
  return {ErrorKind::limit,
          fmt::format("ip-hash: {} sites whose addresses end in {:#05x} want a program each, and {} is the limit",
                      sites, address % kKeys, limit)};
}

}  // namespace

Result<void> carry_by_address(Carrying& carrying) {
  const CarrierSites& sites = carrying.sites;
  const std::uint32_t limit = sites.options().max_programs;
  CarrierPlan& out = carrying.out;
  std::map<ProgramKind, Taken> taken;
  std::uint32_t groups = 0;
  for (const Index<PlannedSite> site : sites.sites()) {
    // A site at several addresses is identified by its attach cookie.
    const auto* place = std::get_if<FilePlace>(&sites.plan().sites[site].point);
    if (sites.is_fixed(site) || (place != nullptr && !place->rets.empty())) {
      carrying.by_table(site);
      continue;
    }
    const std::uint64_t address = sites.address_of(site);
    Taken& of_kind = taken[sites.kind_of(site)];
    const std::uint32_t number = of_kind.by_key[address % kKeys]++;
    if (number == of_kind.programs.size()) {
      if (groups == limit) return fail(too_many_alike(number + 1, address, limit));
      of_kind.programs.push_back(carrying.add_program(
          {.kind = sites.kind_of(site), .carriers = kTableBit | kIpHashBit, .ip_group = groups++}));
      out.ips.resize(groups * kKeys);
    }
    const Index<PlannedProgram> program = of_kind.programs[number];
    out.ips[USDT_IP_KEY(out.programs[program].ip_group, address)] = sites.table_cookie(site);
    carrying.set(site, {program, 0});
    ++out.in_table;
  }
  out.needs_table = true;
  return {};
}

}  // namespace usdt::carry
