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

/// USDT_FORM_REG of packed cookies.
bool packs_as_register(const usdt_arg_spec& arg) {
  return arg.kind == USDT_ARG_REG && arg.shift == 0 && (arg.flags & ~USDT_ARG_SIGNED) == 0;
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
    ways_.reserve(plan.sites.size());
  }

  Result<CarrierPlan> run() {
    out_.carrier = options_.carrier == Carrier::automatic ? choose() : options_.carrier;
    Result<void> done;
    switch (out_.carrier) {
      case Carrier::per_link:
        programs_of_their_own();
        break;
      case Carrier::ip_hash:
        done = hash_addresses();
        break;
      default:
        done = shared_programs();
        break;
    }
    if (!done) return fail(done.error());
    make_links();
    if (out_.carrier != Carrier::ip_hash) out_.carrier = most_used();
    // They are read from the stack at an offset the verifier does not know (5.12); kernels without cookies may be
    // older.
    out_.windows = options_.attach_cookies && has_windows();
    return std::move(out_);
  }

 private:
  Carrier choose() const {
    if (!options_.attach_cookies) return Carrier::ip_hash;
    const bool one = plan_.specs.size() == 1 && plan_.specs[0].args.size() <= USDT_LINK_ARGS;
    return one ? Carrier::per_link : Carrier::cookie;
  }

  /// What most sites came to have; of equal numbers the cheapest at a hit.
  Carrier most_used() const {
    if (out_.in_program >= std::max(out_.in_cookie, out_.in_table)) return Carrier::per_link;
    return out_.in_cookie >= out_.in_table ? Carrier::cookie : Carrier::table;
  }

  std::uint32_t add_program(PlannedProgram program) {
    out_.programs.push_back(std::move(program));
    return static_cast<std::uint32_t>(out_.programs.size() - 1);
  }

  /// The site's spec as a cookie, if that is possible at all.
  std::optional<std::uint64_t> packed(std::uint32_t site) const {
    if (!same_user_cookie_) return std::nullopt;
    const PlannedSite& planned = plan_.sites[site];
    const Machine machine = plan_.files[planned.file].elf->machine();
    return pack_cookie(machine, plan_.specs[planned.spec].args, options_.site_numbers ? site : 0, site_bits_);
  }

  std::uint64_t table_cookie(std::uint32_t site) const { return USDT_TABLE_COOKIE(site, plan_.sites[site].spec); }

  /// One program reads cookies, another the table: one that could do both would be slower to verify than both.
  Way by_table(std::uint32_t site) {
    if (!table_program_) table_program_ = add_program({.carriers = kTableBit});
    ++out_.in_table;
    out_.needs_table = true;
    return {*table_program_, table_cookie(site)};
  }
  Way by_cookie_or_table(std::uint32_t site) {
    const auto cookie = packed(site);
    if (!cookie) return by_table(site);
    if (!cookie_program_) cookie_program_ = add_program({.carriers = kCookieBit, .packed_regs = true});
    const auto& args = plan_.specs[plan_.sites[site].spec].args;
    out_.programs[*cookie_program_].packed_regs &= std::all_of(args.begin(), args.end(), packs_as_register);
    ++out_.in_cookie;
    return {*cookie_program_, *cookie};
  }

  /// `cookie` or `table`. Two programs are too many where only one is allowed.
  Result<void> shared_programs() {
    const auto count = static_cast<std::uint32_t>(plan_.sites.size());
    bool pack = out_.carrier == Carrier::cookie;
    for (std::uint32_t site = 0; pack && site < count; ++site) {
      const bool must = options_.carrier == Carrier::cookie;
      if ((!must && options_.max_programs > 1) || packed(site)) continue;
      if (must) return fail(does_not_fit(site));
      pack = false;
    }
    for (std::uint32_t site = 0; site < count; ++site)
      ways_.push_back(pack ? by_cookie_or_table(site) : by_table(site));
    return {};
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

  /// Specs that may have a program in common, and the number of their sites.
  struct Group {
    std::vector<std::uint32_t> specs;
    std::size_t sites = 0;
  };

  /// Each spec alone if there are few, else by shape; the most used first. `whole`: all specs are in some group.
  std::vector<Group> group_specs(bool& whole) const {
    const bool by_shape = plan_.specs.size() > options_.max_programs;
    std::vector<std::size_t> uses(plan_.specs.size());
    for (const PlannedSite& site : plan_.sites) ++uses[site.spec];
    std::map<std::string, Group> groups;
    whole = true;
    for (std::uint32_t spec = 0; spec < plan_.specs.size(); ++spec) {
      if (uses[spec] == 0) continue;
      if (plan_.specs[spec].args.size() > USDT_LINK_ARGS) {
        whole = false;
        continue;
      }
      Group& group = groups[by_shape ? shape_of(plan_.specs[spec]) : fmt::format("{:08x}", spec)];
      group.specs.push_back(spec);
      group.sites += uses[spec];
    }
    std::vector<Group> order;
    order.reserve(groups.size());
    for (auto& [key, group] : groups) order.push_back(std::move(group));
    std::stable_sort(order.begin(), order.end(), [](const Group& a, const Group& b) { return a.sites > b.sites; });
    return order;
  }

  /// A program for each group; where the programs run out, the rest shares two, and one of them the table.
  void programs_of_their_own() {
    constexpr std::uint32_t kNone = 0xffffffff;
    const std::uint32_t most = options_.max_programs;
    bool whole = false;
    std::vector<Group> groups = group_specs(whole);
    out_.limited = groups.size() > most;
    if (!whole || groups.size() > most) groups.resize(std::min<std::size_t>(groups.size(), most > 2 ? most - 2 : 0));
    std::vector<std::uint32_t> program_of(plan_.specs.size(), kNone);
    for (const Group& group : groups) {
      const std::uint32_t program = add_program(program_for(group.specs));
      for (const std::uint32_t spec : group.specs) program_of[spec] = program;
    }
    for (std::uint32_t site = 0; site < plan_.sites.size(); ++site) {
      const std::uint32_t program = program_of[plan_.sites[site].spec];
      if (program == kNone) {
        ways_.push_back(most > 1 ? by_cookie_or_table(site) : by_table(site));
      } else {
        ways_.push_back({program, table_cookie(site)});
        ++out_.in_program;
      }
    }
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

  /// The table, found by address. Sites that share the low 12 bits of their address go to different programs.
  Result<void> hash_addresses() {
    constexpr std::size_t kKeys = 4096;
    std::vector<std::uint32_t> taken(kKeys);
    ways_.resize(plan_.sites.size());
    for (const PlannedFile& file : plan_.files) {
      for (std::size_t i = 0; i < file.sites.size(); ++i) {
        // Segments are mapped by pages, so that the offset in the file tells as much as the address.
        const std::uint32_t group = taken[file.offsets[i] % kKeys]++;
        if (group >= options_.max_programs)
          return fail(ErrorKind::limit, fmt::format("ip-hash: {} sites whose addresses end in {:#05x} want a program "
                                                    "each, and {} is the limit",
                                                    group + 1, file.offsets[i] % kKeys, options_.max_programs));
        if (group == out_.programs.size()) {
          add_program({.carriers = kTableBit | kIpHashBit, .ip_group = group});
          out_.ips.resize((group + 1) * kKeys);
        }
        out_.ips[USDT_IP_KEY(group, file.offsets[i])] = table_cookie(file.sites[i]);
        ways_[file.sites[i]] = {group, 0};
      }
    }
    out_.in_table = plan_.sites.size();
    out_.needs_table = true;
    return {};
  }

  void make_links() {
    for (std::uint32_t file = 0; file < plan_.files.size(); ++file) {
      const PlannedFile& planned = plan_.files[file];
      std::map<std::uint32_t, PlannedLink> by_program;
      for (std::size_t i = 0; i < planned.sites.size(); ++i) {
        const Way& way = ways_[planned.sites[i]];
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
  std::vector<Way> ways_;  ///< by site
  std::optional<std::uint32_t> cookie_program_, table_program_;
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
  return Carriers(plan, options).run();
}

}  // namespace usdt
