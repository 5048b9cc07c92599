// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/carrier.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <tuple>

#include "base/try.hpp"
#include "carry/carrying.hpp"
#include "carry/windows.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using carry::CarrierSites;
using carry::Carrying;

constexpr std::array<std::string_view, 5> kNames{"automatic", "cookie", "table", "per-link", "ip-hash"};
/// Packed cookies without a site number: usdt_site() must not find one.
constexpr std::uint32_t kNoSiteBits = 31;
/// One program for each of so many specs takes less time to verify than a general one that is long to verify: 8
/// functions of up to 8 arguments, with texts: 94 ms instead of 676, whole calls of them 204 instead of 871.
constexpr std::size_t kFewSpecs = 16;
/// Programs that have to be ready for specs of more entries, members of structs most often, are given up by verifiers
/// soon after (17,000 instructions a value, of a million; 50,000 if values have steps): then each spec has its own
/// program, up to the limit of programs.
constexpr std::uint32_t kManyEntries = 40;
constexpr std::uint32_t kManyEntriesWithSteps = 12;

/// Whether a general program is long to verify: texts, steps and calls of two ends multiply the states of an argument.
bool is_long_to_verify(const AttachPlan& plan) {
  return plan.string_slots > 0 || plan.max_steps > 0 || plan.spans ||
         std::ranges::find(plan.groups, Moment::both, &AttachGroup::moment) != plan.groups.end();
}

Carrier choose(const CarrierSites& sites) {
  if (!sites.options().attach_cookies) return Carrier::ip_hash;
  const std::size_t specs = sites.specs().size();
  const std::uint32_t many = sites.plan().max_steps > 0 ? kManyEntriesWithSteps : kManyEntries;
  const std::size_t few = sites.plan().max_entries > many ? sites.options().max_programs : kFewSpecs;
  const bool programs = specs == 1 || (specs <= few && is_long_to_verify(sites.plan()));
  return programs ? Carrier::per_link : Carrier::cookie;
}

/// Returns the carrier of most sites; among equal numbers the cheapest at a hit.
Carrier most_used(const CarrierPlan& made) {
  if (made.in_program >= std::max(made.in_cookie, made.in_table)) return Carrier::per_link;
  return made.in_cookie >= made.in_table ? Carrier::cookie : Carrier::table;
}

Result<void> carry_specs(Carrying& carrying) {
  if (carrying.out.carrier == Carrier::ip_hash) return carry_by_address(carrying);
  if (carrying.out.carrier != Carrier::per_link) return carry_by_cookie_and_table(carrying);
  carry_by_programs(carrying);
  return {};
}

bool has_windows(const CarrierPlan& made, const CarrierSites& sites) {
  const auto gathers = [](const EncodedSpec& spec) { return carry::gather_windows(spec.args).sizes[1] != 0; };
  return (made.needs_table && std::ranges::any_of(sites.specs(), gathers)) ||
         std::ranges::any_of(made.programs, [&](const PlannedProgram& program) { return gathers(program.link_spec); });
}

}  // namespace

std::string_view to_string(Carrier carrier) noexcept { return kNames[static_cast<std::size_t>(carrier)]; }

Result<Carrier> carrier_by_name(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found != kNames.end()) return static_cast<Carrier>(found - kNames.begin());
  return fail(ErrorKind::not_found, fmt::format("no carrier '{}': there are {}", name, fmt::join(kNames, ", ")));
}

std::string CarrierPlan::describe() const {
  std::string text;
  const auto add = [&](std::string_view name, std::size_t sites, std::string_view more) {
    if (sites == 0) return;
    const bool mixed = sites < in_cookie + in_table + in_program;
    if (!text.empty()) text += ", ";
    text += name;
    if (mixed || !more.empty()) text += " (";
    if (mixed) text += fmt::format("{} site{}{}", sites, sites == 1 ? "" : "s", more.empty() ? "" : ", ");
    text += more;
    if (mixed || !more.empty()) text += ")";
  };
  const std::size_t own = std::count_if(programs.begin(), programs.end(),
                                        [](const PlannedProgram& p) { return (p.carriers & carry::kLinkBit) != 0; });
  std::string copies = own > 1 || limited ? fmt::format("{} program{}", own, own == 1 ? "" : "s") : "";
  if (limited) copies += ", no more by the limit";
  add("per-link", in_program, copies);
  add("cookie", in_cookie, "");
  add("table", in_table, "");
  return carrier == Carrier::ip_hash ? "ip-hash" : text;
}

Result<CarrierPlan> plan_carriers(const AttachPlan& plan, const CarrierOptions& options) {
  if (plan.sites.empty()) return fail(ErrorKind::not_found, "no site to attach to");
  if (options.max_programs == 0) return fail(ErrorKind::invalid_argument, "max_programs is 0: one is needed");
  const CarrierSites sites(plan, options);
  Carrying carrying(sites);
  CarrierPlan& made = carrying.out;
  made.site_bits = options.site_numbers ? sites.site_bits() : kNoSiteBits;
  if (sites.same_user_cookie()) made.user_cookie = sites.specs().front().user_cookie;
  made.carrier = options.carrier == Carrier::automatic ? choose(sites) : options.carrier;
  TRY(carry_specs(carrying));
  make_links(carrying);
  if (made.carrier != Carrier::ip_hash) made.carrier = most_used(made);
  // They are read from the stack at an offset the verifier does not know (5.12); kernels without cookies may be
  // older.
  made.windows = options.attach_cookies && has_windows(made, sites);
  return std::move(made);
}

bool ProgramKind::is_before(const ProgramKind& other) const noexcept {
  // libc++ 14 has no three-way comparison of std::optional.
  const auto all = [](const ProgramKind& kind) {
    return std::tie(kind.backend, kind.source, kind.moment, kind.calls, kind.returns, kind.program, kind.filter,
                    kind.pair, kind.span);
  };
  return all(*this) < all(other);
}

}  // namespace v1
}  // namespace usdt
