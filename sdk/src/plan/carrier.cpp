// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/carrier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "plan/windows.hpp"
#include "usdt/cookie.hpp"

namespace usdt {
namespace {

constexpr std::array<std::string_view, 5> kNames{"automatic", "cookie", "table", "per-link", "ip-hash"};

constexpr std::uint32_t kTableBit = USDT_CARRIER_BIT(USDT_CARRIER_TABLE);
constexpr std::uint32_t kCookieBit = USDT_CARRIER_BIT(USDT_CARRIER_COOKIE);
constexpr std::uint32_t kLinkBit = USDT_CARRIER_BIT(USDT_CARRIER_LINK);
constexpr std::uint32_t kIpHashBit = USDT_CARRIER_BIT(USDT_CARRIER_IP_HASH);
/// Packed cookies without a site number: usdt_site() must not find one.
constexpr std::uint32_t kNoSiteBits = 31;

/// A spec without what may differ between the sites of one program: displacements and constants.
std::string shape_of(const EncodedSpec& spec) {
  std::string shape(reinterpret_cast<const char*>(&spec.user_cookie), sizeof(spec.user_cookie));
  for (usdt_arg_spec arg : plan::gather_windows(spec.args).args) {
    arg.value = 0;
    shape.append(reinterpret_cast<const char*>(&arg), sizeof(arg));
  }
  return shape;
}

/// How one site's spec travels: its program, and its cookie.
struct Way {
  std::uint32_t program = 0;
  std::uint64_t cookie = 0;
};

class Carriers {
 public:
  Carriers(const AttachPlan& plan, const CarrierOptions& options) : plan_(plan), options_(options) {
    const auto last = static_cast<std::uint32_t>(plan.sites.size() - 1);
    site_bits_ = options.site_numbers ? static_cast<unsigned>(std::bit_width(last)) : 0;
    out_.site_bits = options.site_numbers ? site_bits_ : kNoSiteBits;
    same_user_cookie_ = std::all_of(plan.specs.begin(), plan.specs.end(), [&](const EncodedSpec& spec) {
      return spec.user_cookie == plan.specs.front().user_cookie;
    });
    if (same_user_cookie_) out_.user_cookie = plan.specs.front().user_cookie;
  }

  Result<CarrierPlan> run() {
    Carrier wanted = options_.carrier;
    if (wanted == Carrier::automatic) wanted = choose();
    std::vector<Way> ways;
    if (wanted == Carrier::per_link) {
      ways = programs_of_their_own();
    } else {
      auto common = one_program(wanted);
      if (!common) return fail(common.error());
      ways = std::move(*common);
    }
    if (wanted == Carrier::ip_hash) {
      if (auto spread = hash_addresses(ways); !spread) return fail(spread.error());
    }
    make_links(ways);
    out_.carrier = wanted;
    if (wanted == Carrier::cookie && out_.in_table > out_.in_cookie) out_.carrier = Carrier::table;
    out_.windows = has_windows();
    return std::move(out_);
  }

 private:
  Carrier choose() const {
    if (!options_.attach_cookies) return Carrier::ip_hash;
    const bool one = plan_.specs.size() == 1 && plan_.specs[0].args.size() <= USDT_LINK_ARGS;
    return one ? Carrier::per_link : Carrier::cookie;
  }

  /// The site's spec as a cookie, if that is possible at all.
  std::optional<std::uint64_t> packed(std::uint32_t site) const {
    if (!same_user_cookie_) return std::nullopt;
    const PlannedSite& planned = plan_.sites[site];
    const Machine machine = plan_.files[planned.file].elf->machine();
    return pack_cookie(machine, plan_.specs[planned.spec].args, options_.site_numbers ? site : 0, site_bits_);
  }

  std::uint64_t table_cookie(std::uint32_t site) const { return USDT_TABLE_COOKIE(site, plan_.sites[site].spec); }

  /// A cookie for the program that all share, and what it must then be able to read.
  std::uint64_t shared_cookie(std::uint32_t site, bool may_pack, PlannedProgram& program) {
    const auto cookie = may_pack ? packed(site) : std::nullopt;
    ++(cookie ? out_.in_cookie : out_.in_table);
    program.carriers |= cookie ? kCookieBit : kTableBit;
    out_.needs_table |= !cookie;
    return cookie ? *cookie : table_cookie(site);
  }

  Result<std::vector<Way>> one_program(Carrier wanted) {
    PlannedProgram& program = out_.programs.emplace_back();
    std::vector<Way> ways;
    ways.reserve(plan_.sites.size());
    for (std::uint32_t site = 0; site < plan_.sites.size(); ++site) {
      ways.push_back({0, shared_cookie(site, wanted != Carrier::table, program)});
      if (options_.carrier == Carrier::cookie && out_.in_table > 0) return fail(does_not_fit(site));
    }
    return ways;
  }

  Error does_not_fit(std::uint32_t number) const {
    const PlannedSite& site = plan_.sites[number];
    const PlannedProbe& probe = plan_.probes[site.probe];
    const std::string why =
        same_user_cookie_ ? fmt::format("a spec and {} bits of site number", site_bits_) : "user cookies that differ";
    return {ErrorKind::limit,
            fmt::format("{}:{} at {:#x}: {} do not fit an attach cookie; use the table, or let the planner choose",
                        probe.provider, probe.name, site.pc.value, why)};
  }

  /// Which specs get a program, by spec number: each its own if there are few, else each shape. The most used come
  /// first, and where the programs run out the rest shares one.
  std::vector<Way> programs_of_their_own() {
    std::vector<std::size_t> uses(plan_.specs.size());
    for (const PlannedSite& site : plan_.sites) ++uses[site.spec];
    const bool by_shape = plan_.specs.size() > options_.max_programs;
    std::map<std::string, std::vector<std::uint32_t>> groups;
    for (std::uint32_t spec = 0; spec < plan_.specs.size(); ++spec) {
      if (uses[spec] == 0) continue;
      groups[by_shape ? shape_of(plan_.specs[spec]) : std::string(reinterpret_cast<const char*>(&spec), sizeof(spec))]
          .push_back(spec);
    }
    std::vector<std::pair<std::size_t, const std::vector<std::uint32_t>*>> order;
    for (const auto& [key, specs] : groups) {
      if (plan_.specs[specs.front()].args.size() > USDT_LINK_ARGS) continue;
      std::size_t sites = 0;
      for (const std::uint32_t spec : specs) sites += uses[spec];
      order.emplace_back(sites, &specs);
    }
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    const bool all = order.size() == groups.size() && order.size() <= options_.max_programs;
    if (!all && order.size() >= options_.max_programs) order.resize(options_.max_programs - 1);

    constexpr std::uint32_t kShared = 0xffffffff;
    std::vector<std::uint32_t> program_of(plan_.specs.size(), kShared);
    for (const auto& [sites, specs] : order) {
      for (const std::uint32_t spec : *specs) program_of[spec] = static_cast<std::uint32_t>(out_.programs.size());
      out_.programs.push_back(program_for(*specs));
    }
    PlannedProgram shared;
    std::vector<Way> ways;
    ways.reserve(plan_.sites.size());
    for (std::uint32_t site = 0; site < plan_.sites.size(); ++site) {
      const std::uint32_t program = program_of[plan_.sites[site].spec];
      if (program == kShared) {
        ways.push_back({static_cast<std::uint32_t>(out_.programs.size()), shared_cookie(site, true, shared)});
      } else {
        ways.push_back({program, table_cookie(site)});
        ++out_.in_program;
      }
    }
    if (shared.carriers != 0) out_.programs.push_back(std::move(shared));
    return ways;
  }

  PlannedProgram program_for(const std::vector<std::uint32_t>& specs) {
    PlannedProgram program;
    program.carriers = kLinkBit;
    program.link_spec = plan_.specs[specs.front()];
    for (const std::uint32_t spec : specs) {
      const auto& args = plan_.specs[spec].args;
      for (std::size_t i = 0; i < args.size(); ++i) {
        if (args[i].value != program.link_spec.args[i].value) program.link_vary |= 1u << i;
      }
    }
    out_.needs_table |= program.link_vary != 0;
    return program;
  }

  /// Sites that share the low 12 bits of their address go to different programs.
  Result<void> hash_addresses(std::vector<Way>& ways) {
    constexpr std::size_t kKeys = 4096;
    std::vector<std::uint32_t> taken(kKeys);
    for (std::uint32_t file = 0; file < plan_.files.size(); ++file) {
      const PlannedFile& planned = plan_.files[file];
      for (std::size_t i = 0; i < planned.sites.size(); ++i) {
        const std::uint32_t site = planned.sites[i];
        // Segments are mapped by pages, so that the offset in the file tells as much as the address.
        const std::uint32_t group = taken[planned.offsets[i] % kKeys]++;
        if (group >= options_.max_programs)
          return fail(ErrorKind::limit, fmt::format("ip-hash: {} sites whose addresses end in {:#05x} want a program "
                                                    "each, and {} is the limit",
                                                    group + 1, planned.offsets[i] % kKeys, options_.max_programs));
        if (out_.ips.size() <= group * kKeys) out_.ips.resize((group + 1) * kKeys);
        out_.ips[USDT_IP_KEY(group, planned.offsets[i])] = ways[site].cookie;
        ways[site] = {group, 0};
      }
    }
    out_.programs[0].carriers |= kIpHashBit;
    for (std::uint32_t group = 1; group * kKeys < out_.ips.size(); ++group) {
      out_.programs.push_back(out_.programs[0]);
      out_.programs.back().ip_group = group;
    }
    return {};
  }

  void make_links(const std::vector<Way>& ways) {
    for (std::uint32_t file = 0; file < plan_.files.size(); ++file) {
      const PlannedFile& planned = plan_.files[file];
      std::map<std::uint32_t, PlannedLink> by_program;
      for (std::size_t i = 0; i < planned.sites.size(); ++i) {
        const Way& way = ways[planned.sites[i]];
        PlannedLink& link = by_program[way.program];
        link.offsets.push_back(planned.offsets[i]);
        link.ref_ctr_offsets.push_back(planned.ref_ctr_offsets[i]);
        link.cookies.push_back(way.cookie);
        link.sites.push_back(planned.sites[i]);
      }
      for (auto& [program, link] : by_program) {
        link.file = file;
        link.program = program;
        out_.links.push_back(std::move(link));
      }
    }
  }

  bool has_windows() const {
    const auto gathers = [](const EncodedSpec& spec) { return plan::gather_windows(spec.args).sizes[1] != 0; };
    return (out_.needs_table && std::any_of(plan_.specs.begin(), plan_.specs.end(), gathers)) ||
           std::any_of(out_.programs.begin(), out_.programs.end(),
                       [&](const PlannedProgram& program) { return gathers(program.link_spec); });
  }

  const AttachPlan& plan_;
  const CarrierOptions& options_;
  CarrierPlan out_;
  unsigned site_bits_ = 0;
  bool same_user_cookie_ = false;
};

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
                                        [](const PlannedProgram& p) { return (p.carriers & kLinkBit) != 0; });
  add("per-link", in_program, own > 1 ? fmt::format("{} programs", own) : "");
  add("cookie", in_cookie, "");
  add("table", in_table, "");
  return carrier == Carrier::ip_hash ? "ip-hash to " + text : text;
}

Result<CarrierPlan> plan_carriers(const AttachPlan& plan, const CarrierOptions& options) {
  if (plan.sites.empty()) return fail(ErrorKind::not_found, "no site to attach to");
  if (options.max_programs == 0) return fail(ErrorKind::invalid_argument, "max_programs is 0: one is needed");
  return Carriers(plan, options).run();
}

}  // namespace usdt
