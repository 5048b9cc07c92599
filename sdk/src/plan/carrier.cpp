// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/carrier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>
#include <span>
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
constexpr std::uint32_t kFixedBit = USDT_CARRIER_BIT(USDT_CARRIER_FIXED);
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

/// Values of the low 12 bits of an address.
constexpr std::size_t kKeys = 4096;

/// So many kernel functions in one link, and a second link for those that fit no cookie is dearer than what cookies
/// save: each starts and ends with a pass over all that is probed.
constexpr std::size_t kManyFunctions = 1000;

/// The spec of every site to a program that reads none.
const EncodedSpec kNoArguments;

/// How one site's spec travels: its program, and its cookie.
struct Way {
  std::uint32_t program = 0;
  std::uint64_t cookie = 0;
};

constexpr std::uint8_t kBothEnds = USDT_AT_ENTRY | USDT_AT_RETURN;

/// What a program for a group of kernel functions is loaded for. Calls without a session: its program at the entry,
/// which the one at the return follows.
ProgramKind kind_of(const PlannedKernel& group, std::uint32_t program) {
  ProgramKind kind{.backend = group.backend, .source = group.source, .program = program};
  kind.calls = group.kind.moment == KernelMoment::call;
  if (group.session) kind.moment = kBothEnds;
  if (group.kind.moment == KernelMoment::exit) kind.moment = USDT_AT_RETURN;
  return kind;
}
bool is_pair(const ProgramKind& kind) { return kind.calls && kind.moment == USDT_AT_ENTRY; }

class Carriers {
 public:
  Carriers(const AttachPlan& plan, const CarrierOptions& options)
      : plan_(plan),
        options_(options),
        specs_(options.arguments ? std::span(plan.specs) : std::span(&kNoArguments, 1)) {
    const auto last = static_cast<std::uint32_t>(plan.sites.size() - 1);
    site_bits_ = options.site_numbers ? static_cast<unsigned>(std::bit_width(last)) : 0;
    out_.site_bits = options.site_numbers ? site_bits_ : kNoSiteBits;
    same_user_cookie_ = std::all_of(specs_.begin(), specs_.end(), [&](const EncodedSpec& spec) {
      return spec.user_cookie == specs_.front().user_cookie;
    });
    if (same_user_cookie_) out_.user_cookie = specs_.front().user_cookie;
    ways_.resize(plan.sites.size());
    kernel_of_.resize(plan.sites.size(), kNone);
    for (std::uint32_t i = 0; i < plan.kernels.size(); ++i) {
      for (const std::uint32_t site : plan.kernels[i].sites) kernel_of_[site] = i;
    }
  }

  Result<CarrierPlan> run() {
    for (const PlannedKernel& group : plan_.kernels) one_table_.push_back(wants_one_table(group));
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
    make_file_links();
    make_kernel_links();
    if (out_.carrier != Carrier::ip_hash) out_.carrier = most_used();
    // They are read from the stack at an offset the verifier does not know (5.12); kernels without cookies may be
    // older.
    out_.windows = options_.attach_cookies && has_windows();
    return std::move(out_);
  }

 private:
  Carrier choose() const {
    if (!options_.attach_cookies) return Carrier::ip_hash;
    const bool one = specs_.size() == 1 && specs_[0].args.size() <= USDT_LINK_ARGS;
    return one ? Carrier::per_link : Carrier::cookie;
  }

  /// What most sites came to have; of equal numbers the cheapest at a hit.
  Carrier most_used() const {
    if (out_.in_program >= std::max(out_.in_cookie, out_.in_table)) return Carrier::per_link;
    return out_.in_cookie >= out_.in_table ? Carrier::cookie : Carrier::table;
  }

  /// Index into specs_.
  [[nodiscard]] std::uint32_t spec_of(std::uint32_t site) const {
    return options_.arguments ? plan_.sites[site].spec : 0;
  }

  [[nodiscard]] ProgramKind kind(std::uint32_t site) const {
    const std::uint32_t program = plan_.sites[site].program;
    return kernel_of_[site] == kNone ? ProgramKind{.program = program}
                                     : kind_of(plan_.kernels[kernel_of_[site]], program);
  }
  /// Kernel points without attach cookies that have a program each anyway.
  [[nodiscard]] bool fixed(std::uint32_t site) const {
    if (kernel_of_[site] == kNone || plan_.kernels[kernel_of_[site]].cookies) return false;
    // At a return, the address is that of the kernel's return trampoline.
    return kind(site).source != USDT_SOURCE_KERNEL || kind(site).calls || kind(site).moment == USDT_AT_RETURN;
  }

  /// Of a pair, the one at the return is the next program.
  std::uint32_t add_program(PlannedProgram program) {
    const auto number = static_cast<std::uint32_t>(out_.programs.size());
    out_.programs.push_back(std::move(program));
    if (is_pair(out_.programs.back().kind)) {
      PlannedProgram second = out_.programs.back();
      second.kind.moment = USDT_AT_RETURN;
      out_.programs.push_back(std::move(second));
    }
    return number;
  }
  /// The program of `carriers` that all sites of one kind share.
  std::uint32_t shared_program(std::uint32_t site, std::uint32_t carriers) {
    const auto [it, fresh] = shared_.try_emplace({kind(site), carriers}, 0);
    if (fresh)
      it->second = add_program({.kind = kind(site), .carriers = carriers, .packed_regs = carriers == kCookieBit});
    return it->second;
  }

  /// The site's spec as a cookie, if that is possible at all.
  std::optional<std::uint64_t> packed(std::uint32_t site) const {
    if (!same_user_cookie_) return std::nullopt;
    const PlannedSite& planned = plan_.sites[site];
    return pack_cookie(machine_of(plan_, planned), specs_[spec_of(site)].args, options_.site_numbers ? site : 0,
                       site_bits_);
  }

  std::uint64_t table_cookie(std::uint32_t site) const { return USDT_TABLE_COOKIE(site, spec_of(site)); }

  /// Many functions in one link, of which some do not fit a cookie.
  [[nodiscard]] bool wants_one_table(const PlannedKernel& group) const {
    const bool one_link = group.backend == Backend::kprobe_multi || group.backend == Backend::kprobe_session ||
                          group.backend == Backend::tracing_multi;
    return one_link && group.sites.size() >= kManyFunctions &&
           !std::ranges::all_of(group.sites, [&](std::uint32_t site) { return packed(site).has_value(); });
  }

  /// One program reads cookies, another the table: one that could do both would be slower to verify than both.
  Way by_table(std::uint32_t site) {
    ++out_.in_table;
    out_.needs_table = true;
    return {shared_program(site, fixed(site) ? kTableBit | kFixedBit : kTableBit), table_cookie(site)};
  }
  Way by_cookie_or_table(std::uint32_t site) {
    const bool one_table = kernel_of_[site] != kNone && one_table_[kernel_of_[site]];
    const auto cookie = one_table ? std::nullopt : packed(site);
    if (!cookie || fixed(site)) return by_table(site);
    const std::uint32_t program = shared_program(site, kCookieBit);
    const auto& args = specs_[spec_of(site)].args;
    const bool registers = std::all_of(args.begin(), args.end(), packs_as_register);
    out_.programs[program].packed_regs &= registers;
    if (is_pair(out_.programs[program].kind)) out_.programs[program + 1].packed_regs &= registers;
    ++out_.in_cookie;
    return {program, *cookie};
  }

  /// `cookie` or `table`. Two programs are too many where only one is allowed.
  Result<void> shared_programs() {
    const auto count = static_cast<std::uint32_t>(plan_.sites.size());
    bool pack = out_.carrier == Carrier::cookie;
    for (std::uint32_t site = 0; pack && site < count; ++site) {
      const bool must = options_.carrier == Carrier::cookie;
      if ((!must && options_.max_programs > 1) || (packed(site) && !fixed(site))) continue;
      if (must) return fail(does_not_fit(site));
      pack = false;
    }
    for (std::uint32_t site = 0; site < count; ++site) ways_[site] = pack ? by_cookie_or_table(site) : by_table(site);
    return {};
  }

  Error does_not_fit(std::uint32_t number) const {
    const PlannedSite& site = plan_.sites[number];
    const PlannedProbe& probe = plan_.probes[site.probe];
    const std::string where = site.file == kNone ? "" : fmt::format(" at {:#x}", site.pc.value);
    const std::string what = fmt::format("{}:{}{}", probe.provider, probe.name, where);
    if (fixed(number))
      return {ErrorKind::not_supported,
              fmt::format("{}: this kernel has no attach cookies there; let the planner choose", what)};
    const std::string why =
        same_user_cookie_ ? fmt::format("a spec and {} bits of site number", site_bits_) : "user cookies that differ";
    return {ErrorKind::limit,
            fmt::format("{}: {} do not fit an attach cookie; use the table, or let the planner choose", what, why)};
  }

  /// A spec where programs of one kind read it.
  using KindAndSpec = std::pair<ProgramKind, std::uint32_t>;
  /// Specs that may have a program in common, and the number of their sites.
  struct Group {
    ProgramKind kind;
    std::vector<std::uint32_t> specs;
    std::size_t sites = 0;
  };

  /// Each spec alone if there are few, else by shape; the most used first. `whole`: all specs are in some group.
  std::vector<Group> group_specs(bool& whole) const {
    std::map<KindAndSpec, std::size_t> uses;
    for (std::uint32_t site = 0; site < plan_.sites.size(); ++site) {
      if (!fixed(site)) ++uses[{kind(site), spec_of(site)}];
    }
    const bool by_shape = uses.size() > options_.max_programs;
    std::map<std::pair<ProgramKind, std::string>, Group> groups;
    whole = true;
    for (const auto& [what, sites] : uses) {
      const auto& [kind, spec] = what;
      if (specs_[spec].args.size() > USDT_LINK_ARGS) {
        whole = false;
        continue;
      }
      Group& group = groups[{kind, by_shape ? shape_of(specs_[spec]) : fmt::format("{:08x}", spec)}];
      group.kind = kind;
      group.specs.push_back(spec);
      group.sites += sites;
    }
    std::vector<Group> order;
    order.reserve(groups.size());
    for (auto& [key, group] : groups) order.push_back(std::move(group));
    std::stable_sort(order.begin(), order.end(), [](const Group& a, const Group& b) { return a.sites > b.sites; });
    return order;
  }

  /// A program for each group; where the programs run out, the rest shares two, and one of them the table.
  void programs_of_their_own() {
    const std::uint32_t most = options_.max_programs;
    bool whole = false;
    std::vector<Group> groups = group_specs(whole);
    out_.limited = groups.size() > most;
    if (!whole || groups.size() > most) groups.resize(std::min<std::size_t>(groups.size(), most > 2 ? most - 2 : 0));
    std::map<KindAndSpec, std::uint32_t> program_of;
    for (const Group& group : groups) {
      const std::uint32_t program = add_program(program_for(group));
      for (const std::uint32_t spec : group.specs) program_of[{group.kind, spec}] = program;
    }
    for (std::uint32_t site = 0; site < plan_.sites.size(); ++site) {
      const auto own = fixed(site) ? program_of.end() : program_of.find({kind(site), spec_of(site)});
      if (own == program_of.end()) {
        ways_[site] = most > 1 ? by_cookie_or_table(site) : by_table(site);
      } else {
        ways_[site] = {own->second, table_cookie(site)};
        ++out_.in_program;
      }
    }
  }

  PlannedProgram program_for(const Group& group) {
    PlannedProgram program;
    program.kind = group.kind;
    program.carriers = kLinkBit;
    program.link_spec = specs_[group.specs.front()];
    for (const std::uint32_t spec : group.specs) {
      const auto& args = specs_[spec].args;
      for (std::size_t i = 0; i < args.size(); ++i) {
        if (args[i].value != program.link_spec.args[i].value) program.link_vary |= 1u << i;
      }
    }
    out_.needs_table |= program.link_vary != 0;
    return program;
  }

  /// The table, found by address. Sites that share the low 12 bits of their address go to different programs.
  Result<void> hash_addresses() {
    struct Taken {
      std::vector<std::uint32_t> programs;  ///< of this kind
      std::vector<std::uint32_t> by_key = std::vector<std::uint32_t>(kKeys);
    };
    std::map<ProgramKind, Taken> taken;
    for (std::uint32_t site = 0; site < plan_.sites.size(); ++site) {
      if (fixed(site)) {
        ways_[site] = by_table(site);
        continue;
      }
      const std::uint64_t address = address_of(site);
      Taken& of_kind = taken[kind(site)];
      const std::uint32_t number = of_kind.by_key[address % kKeys]++;
      if (number == of_kind.programs.size()) {
        if (ip_groups_ == options_.max_programs) return fail(too_many_alike(number + 1, address));
        of_kind.programs.push_back(
            add_program({.kind = kind(site), .carriers = kTableBit | kIpHashBit, .ip_group = ip_groups_++}));
        out_.ips.resize(ip_groups_ * kKeys);
      }
      const std::uint32_t program = of_kind.programs[number];
      out_.ips[USDT_IP_KEY(out_.programs[program].ip_group, address)] = table_cookie(site);
      ways_[site] = {program, 0};
      ++out_.in_table;
    }
    out_.needs_table = true;
    return {};
  }

  /// What tells sites apart by address: segments are mapped by pages, so that the offset in a file says as much.
  [[nodiscard]] std::uint64_t address_of(std::uint32_t site) const {
    const PlannedSite& planned = plan_.sites[site];
    return planned.file == kNone ? plan_.functions[planned.function].address : planned.offset.value;
  }

  [[nodiscard]] Error too_many_alike(std::uint32_t sites, std::uint64_t address) const {
    return {ErrorKind::limit,
            fmt::format("ip-hash: {} sites whose addresses end in {:#05x} want a program each, and {} is the limit",
                        sites, address % kKeys, options_.max_programs)};
  }

  void make_file_links() {
    for (std::uint32_t file = 0; file < plan_.files.size(); ++file) {
      const PlannedFile& planned = plan_.files[file];
      std::map<std::uint32_t, PlannedLink> by_program;
      for (std::size_t i = 0; i < planned.sites.size(); ++i) {
        PlannedLink& link = by_program[ways_[planned.sites[i]].program];
        link.file = file;
        link.ref_ctr_offsets.push_back(planned.ref_ctr_offsets[i]);
        add_to(link, planned.offsets[i], planned.sites[i]);
      }
      take_links(by_program);
    }
  }

  void make_kernel_links() {
    for (std::uint32_t kernel = 0; kernel < plan_.kernels.size(); ++kernel) {
      std::map<std::uint32_t, PlannedLink> by_program;
      for (const std::uint32_t site : plan_.kernels[kernel].sites) {
        PlannedLink& link = by_program[ways_[site].program];
        link.kernel = kernel;
        add_to(link, plan_.functions[plan_.sites[site].function].address, site);
      }
      take_links(by_program);
    }
  }

  void add_to(PlannedLink& link, std::uint64_t offset, std::uint32_t site) const {
    link.program = ways_[site].program;
    link.offsets.push_back(offset);
    link.cookies.push_back(ways_[site].cookie);
    link.sites.push_back(site);
  }

  /// The returns first: a call whose entry is seen must not end unseen.
  void take_links(std::map<std::uint32_t, PlannedLink>& by_program) {
    for (auto& [program, link] : by_program) {
      if (is_pair(out_.programs[program].kind)) {
        PlannedLink& second = out_.links.emplace_back(link);
        second.program = program + 1;
      }
      out_.links.push_back(std::move(link));
    }
  }

  bool has_windows() const {
    const auto gathers = [](const EncodedSpec& spec) { return plan::gather_windows(spec.args).sizes[1] != 0; };
    return (out_.needs_table && std::any_of(specs_.begin(), specs_.end(), gathers)) ||
           std::any_of(out_.programs.begin(), out_.programs.end(),
                       [&](const PlannedProgram& program) { return gathers(program.link_spec); });
  }

  const AttachPlan& plan_;
  const CarrierOptions& options_;
  std::span<const EncodedSpec> specs_;  ///< the plan's, or one for all: without arguments
  CarrierPlan out_;
  std::vector<Way> ways_;                 ///< by site
  std::vector<std::uint32_t> kernel_of_;  ///< by site: index into AttachPlan::kernels, kNone: of a file
  std::vector<bool> one_table_;           ///< by index into AttachPlan::kernels
  std::map<std::pair<ProgramKind, std::uint32_t>, std::uint32_t> shared_;  ///< by kind and carriers
  std::uint32_t ip_groups_ = 0;
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
