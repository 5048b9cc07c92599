// SPDX-License-Identifier: BSD-2-Clause
// A carrier plan in the making: each carrier says of every site which program it runs and with which cookie. Private to
// plan/.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "carry/carrier_sites.hpp"

namespace usdt::carry {

inline constexpr std::uint32_t kTableBit = USDT_CARRIER_BIT(USDT_CARRIER_TABLE);
inline constexpr std::uint32_t kCookieBit = USDT_CARRIER_BIT(USDT_CARRIER_COOKIE);
inline constexpr std::uint32_t kLinkBit = USDT_CARRIER_BIT(USDT_CARRIER_LINK);
inline constexpr std::uint32_t kIpHashBit = USDT_CARRIER_BIT(USDT_CARRIER_IP_HASH);
inline constexpr std::uint32_t kFixedBit = USDT_CARRIER_BIT(USDT_CARRIER_FIXED);

/// How one site's spec travels.
struct Carried {
  Index<PlannedProgram> program;
  std::uint64_t cookie = 0;
};

class Carrying {
 public:
  explicit Carrying(const CarrierSites& of) : sites(of), carried(of.plan().sites.size()) {}

  /// The number of a program of its kind; of calls that two programs share, with the one at the return as partner.
  Index<PlannedProgram> add_program(PlannedProgram program);
  /// One program reads cookies, another the table: one that could do both would be slower to verify than both.
  void by_table(Index<PlannedSite> site);
  void by_cookie_or_table(Index<PlannedSite> site);
  void set(Index<PlannedSite> site, Carried how) { carried[site.value] = how; }

  const CarrierSites& sites;
  CarrierPlan out;
  std::vector<Carried> carried;  ///< by site

 private:
  /// The program of `carriers` that all sites of one kind share.
  Index<PlannedProgram> shared_program(Index<PlannedSite> site, std::uint32_t carriers);

  std::map<std::pair<ProgramKind, std::uint32_t>, Index<PlannedProgram>> shared_;  ///< by kind and carriers
};

/// Carrier::cookie (out.carrier) and what does not fit one by the table, or all by it. Errors: limit, not_supported
/// (a site that does not fit, where cookies are asked for).
[[nodiscard]] Result<void> carry_by_cookie_and_table(Carrying& carrying);
/// Carrier::per_link: a program for each spec or shape of spec; where the programs run out, the rest shares two, and
/// one of them the table.
void carry_by_programs(Carrying& carrying);
/// Carrier::ip_hash: the table, found by address. Sites that share the low 12 bits of their address go to different
/// programs. Errors: limit.
[[nodiscard]] Result<void> carry_by_address(Carrying& carrying);
/// The links, once every site has its program.
void make_links(Carrying& carrying);

}  // namespace usdt::carry
