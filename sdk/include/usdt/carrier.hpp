// SPDX-License-Identifier: BSD-2-Clause
// Carriers: the ways in which the spec of a site (where its arguments are) reaches the program at a hit.
// plan_carriers() chooses one for each site, CarrierPlan::describe() prints the choice, and carrier_by_name() reads one
// that a user forces. BpfObject::load() calls it: call it yourself only to look, for it needs no privilege.
// Threads: plain values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/bpf/spec.h"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"

namespace usdt {
inline namespace v1 {

/// Names the way in which the specs of a plan reach the program that runs at its sites.
enum class Carrier : std::uint8_t {
  automatic,  ///< per_link where one program does for all sites; else cookie, and table for what does not fit one (and
              ///< then for all of a link of a thousand kernel functions or more)
  cookie,     ///< packed in the 64-bit attach cookie
  table,      ///< one lookup per hit in a map sized from the plan
  per_link,   ///< constants of a program of their own: one program for each spec, or each shape of spec
  ip_hash,    ///< kernels without attach cookies (before 5.15): the table, by the site's address
};
/// Returns the name that carrier_by_name() takes: "cookie", "table", "per-link" ...
[[nodiscard]] std::string_view to_string(Carrier carrier) noexcept;
/// Returns the carrier called `name` ("cookie", "per-link", ...). Errors: not_found, which lists all names.
[[nodiscard]] Result<Carrier> carrier_by_name(std::string_view name);

/// Says what the choice of carriers depends on besides the plan.
struct CarrierOptions {
  Carrier carrier = Carrier::automatic;
  bool attach_cookies = true;  ///< the kernel has them (features.hpp); here a plain value: planning is pure
  /// Whether packed cookies hold the site's number for usdt_site(); without it more specs fit.
  bool site_numbers = true;
  /// Whether the program reads arguments or calls usdt_cookie(). One program that does neither serves sites of all
  /// specs.
  bool arguments = true;
  /// The most programs that a plan may be loaded as. Sites beyond share programs, by cookies and the table.
  /// (BpfObject::load() makes more where a shared one would be too large for the verifier.)
  std::uint32_t max_programs = 64;
};

/// Describes what a program is loaded for, and what it is given. The default is for sites of files.
struct ProgramKind {
  Backend backend = Backend::automatic;  ///< automatic: of files, the best the kernel has
  usdt_source source = USDT_SOURCE_USER;
  Moment moment = Moment::entry;                      ///< usdt_program_constants::moment
  bool calls = false;                                 ///< usdt_program_constants::calls
  ReturnBy returns = ReturnBy::probe;                 ///< usdt_program_constants::return_by
  std::optional<Index<std::string>> program = {};     ///< in AttachPlan::programs; none: any
  std::optional<Index<TypedExpression>> filter = {};  ///< in AttachPlan::filters; none: every hit counts
  std::optional<Index<TypedExpression>> pair = {};    ///< PlannedSite::pair
  usdt_span_side span = USDT_NO_SPAN;                 ///< usdt_program_constants::span_side
  friend bool operator==(const ProgramKind&, const ProgramKind&) = default;
  /// Orders kinds, for maps.
  [[nodiscard]] bool is_before(const ProgramKind& other) const noexcept;
  /// Returns is_before().
  friend bool operator<(const ProgramKind& a, const ProgramKind& b) noexcept { return a.is_before(b); }
};

static_assert(static_cast<int>(Moment::entry) == USDT_AT_ENTRY && static_cast<int>(Moment::exit) == USDT_AT_RETURN &&
              static_cast<int>(Moment::both) == (USDT_AT_ENTRY | USDT_AT_RETURN));
static_assert(static_cast<int>(ReturnBy::instruction) == USDT_RETURN_BY_RET &&
              static_cast<int>(ReturnBy::goroutine_ret) == USDT_RETURN_BY_GOROUTINE_RET &&
              static_cast<int>(ReturnBy::any_instruction) == USDT_RETURN_BY_ANY_RET);

/// Describes one copy of the program: the constants of its load, which set it apart from the other copies.
struct PlannedProgram {
  ProgramKind kind = {};
  std::uint32_t carriers = 0;        ///< usdt_program_constants::carriers
  bool packed_regs = false;          ///< cookie: all arguments of its sites are whole registers
  EncodedSpec link_spec = {};        ///< per_link
  std::uint32_t values_by_site = 0;  ///< per_link: bit n: argument n's value differs between its sites
  std::uint32_t ip_group = 0;        ///< ip_hash
  /// The program at the other end, for calls that two programs share.
  std::optional<Index<PlannedProgram>> partner = {};
};

/// Groups the sites of one AttachGroup that run one program: one kernel link, or one each.
struct PlannedLink {
  Index<AttachGroup> group;
  Index<PlannedProgram> program;
  /// The link at the return of the calls whose entries this one is at. It is attached first, so that no call whose
  /// entry is seen ends unseen, and what the kernel refuses of it is left out of this one.
  std::optional<Index<PlannedLink>> ends = {};
  // Parallel, as BPF_LINK_CREATE takes them.
  std::vector<std::uint64_t> offsets = {};          ///< in the file; of kernel functions: addresses
  std::vector<std::uint64_t> ref_ctr_offsets = {};  ///< of files; 0: no semaphore
  std::vector<std::uint64_t> cookies = {};
  std::vector<Index<PlannedSite>> sites = {};
};

/// Holds what an attach plan is loaded as: its programs, its links, and the table that they look up.
struct CarrierPlan {
  Carrier carrier = Carrier::table;  ///< of most sites; ip_hash if they are found by address
  Table<PlannedProgram> programs;
  Table<PlannedLink> links;
  bool needs_table = false;        ///< some site's spec is looked up in the table
  bool limited = false;            ///< per_link: max_programs was too few
  bool windows = false;            ///< some spec has windows
  std::uint32_t site_bits = 0;     ///< usdt_site_bits
  std::uint64_t user_cookie = 0;   ///< of all sites, if they share one
  std::vector<std::uint64_t> ips;  ///< ip_hash: cookies of the table by USDT_IP_KEY
  std::size_t in_cookie = 0;       ///< sites by how their spec travels
  std::size_t in_table = 0;
  std::size_t in_program = 0;

  /// Returns "cookie", "table", "per-link (3 programs)" or "cookie (87 sites), table (13 sites)".
  [[nodiscard]] std::string describe() const;
};

/// Decides how each site of `plan` gets its spec. A pure function. Errors: limit (a spec that does not fit a forced
/// cookie, naming the site; more programs than allowed for ip_hash).
[[nodiscard]] Result<CarrierPlan> plan_carriers(const AttachPlan& plan, const CarrierOptions& options = {});

}  // namespace v1
}  // namespace usdt
