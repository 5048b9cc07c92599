// SPDX-License-Identifier: BSD-2-Clause
// How each site of a plan gets its spec: which programs are loaded, which links are made, and what they carry.
#include "usdt/carrier.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <map>
#include <set>

#include "resolve/tiny_elf.hpp"
#include "tests/arg_specs.hpp"
#include "usdt/cookie.hpp"

namespace usdt {
namespace {

using test::Args;
using test::constant;
using test::reg;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr std::uint32_t kTable = USDT_CARRIER_BIT(USDT_CARRIER_TABLE);
constexpr std::uint32_t kCookie = USDT_CARRIER_BIT(USDT_CARRIER_COOKIE);
constexpr std::uint32_t kLink = USDT_CARRIER_BIT(USDT_CARRIER_LINK);
constexpr std::uint32_t kIpHash = USDT_CARRIER_BIT(USDT_CARRIER_IP_HASH);

/// Eight bytes behind rbp, or another word of pt_regs.
usdt_arg_spec mem(std::int64_t displacement, unsigned base = 4) { return test::mem(displacement, base); }

/// Eight arguments: one more than a cookie counts.
Args too_many() { return Args(8, reg(1)); }

/// Attach plans without files' text: specs are given as they are.
class PlanOf {
 public:
  PlanOf() { file(); }

  PlanOf& file(Machine machine = Machine::x86_64) {
    static const auto kX86 = test::sample_elf(Machine::x86_64).open();
    const auto file =
        plan_.files.add({.target = {}, .elf = machine == Machine::x86_64 ? kX86 : test::sample_elf(machine).open()});
    plan_.groups[plan_.groups.add()].of = file;
    return *this;
  }
  /// One more site of the last file; without `offset` it lies 8 bytes behind the last one.
  PlanOf& site(const Args& args, std::optional<std::uint64_t> offset = {}, std::uint64_t user_cookie = 0) {
    next_ = offset.value_or(next_);
    const auto file = std::get<Index<PlannedFile>>(plan_.groups.back().of);
    const auto probe = plan_.probes.add({file, "app", "p" + std::to_string(plan_.sites.size())});
    const FilePlace place{file, VirtAddr(0x400000 + next_), FileOffset(next_), next_ % 16 == 0 ? 0x9000 + next_ : 0};
    plan_.groups.back().sites.push_back(
        plan_.sites.add({.probe = probe, .point = place, .spec = spec(args, user_cookie)}));
    next_ += 8;
    return *this;
  }
  /// A function of the kernel, by trampoline.
  PlanOf& function(const Args& args, bool cookies = true) {
    return group(Backend::tracing, cookies).functions(1, args);
  }
  /// Functions of one link, where the backend has links of many.
  PlanOf& group(Backend backend, bool cookies = true) {
    plan_.groups.add({.backend = backend, .source = USDT_SOURCE_SLOTS, .cookies = cookies, .of = KernelModule{}});
    return *this;
  }
  PlanOf& functions(int count, const Args& args) {
    for (int i = 0; i < count; ++i) {
      const std::string name = "f" + std::to_string(plan_.sites.size());
      const auto probe = plan_.probes.add({{}, "fentry", name});
      const KernelFunctionPlace place{plan_.functions.add({.name = name, .module = {}})};
      plan_.groups.back().sites.push_back(plan_.sites.add({.probe = probe, .point = place, .spec = spec(args, 0)}));
    }
    return *this;
  }
  PlanOf& sites(int count, const Args& args) {
    for (int i = 0; i < count; ++i) site(args);
    return *this;
  }
  operator const AttachPlan&() const { return plan_; }  // NOLINT(google-explicit-constructor): reads as the plan it is
  const AttachPlan* operator->() const { return &plan_; }

 private:
  Index<EncodedSpec> spec(const Args& args, std::uint64_t user_cookie) {
    std::string key(reinterpret_cast<const char*>(args.data()), args.size() * sizeof(usdt_arg_spec));
    key.append(reinterpret_cast<const char*>(&user_cookie), sizeof(user_cookie));
    const auto [it, fresh] = numbers_.try_emplace(key, plan_.specs.next());
    if (fresh) plan_.specs.add({.user_cookie = user_cookie, .args = args});
    plan_.max_args = std::max(plan_.max_args, static_cast<std::uint32_t>(args.size()));
    return it->second;
  }

  AttachPlan plan_;
  std::map<std::string, Index<EncodedSpec>> numbers_;
  std::uint64_t next_ = 0x1000;
};

bool equal(const Args& a, const Args& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(usdt_arg_spec)) == 0);
}

/// What the program of `link` would take for the spec and the number of the link's site `i`, following spec.h alone.
struct Found {
  Args args;
  std::uint32_t site;
};

std::optional<Found> follow(const AttachPlan& plan, const CarrierPlan& carried, const PlannedLink& link,
                            std::size_t i) {
  const PlannedProgram& program = carried.programs[link.program];
  std::uint64_t cookie = link.cookies.at(i);
  if ((program.carriers & kIpHash) != 0)
    cookie = carried.ips.at(std::uint64_t{program.ip_group} * 4096 + link.offsets.at(i) % 4096);
  const auto site = static_cast<std::uint32_t>(cookie >> 32) & 0x3fffffff;
  if ((program.carriers & kLink) != 0) {
    Found found{program.link_spec.args, site};
    const Args& own = plan.specs[Index<EncodedSpec>(static_cast<std::uint32_t>(cookie))].args;
    for (std::size_t n = 0; n < found.args.size(); ++n) {
      if (n < USDT_LINK_ARGS && (program.values_by_site >> n & 1U) != 0) found.args[n].value = own.at(n).value;
    }
    return found;
  }
  if (cookie >> 62 == 1) {
    EXPECT_NE(program.carriers & kCookie, 0U);
    const auto args = unpack_cookie(machine_of(plan, plan.sites[link.sites.at(i)]), cookie);
    if (!args) return std::nullopt;
    const unsigned bits = carried.site_bits;
    return Found{*args, bits > 30 ? ~0U : static_cast<std::uint32_t>(cookie >> (58 - bits)) & ((1U << bits) - 1)};
  }
  EXPECT_NE(program.carriers & kTable, 0U);
  return Found{plan.specs[Index<EncodedSpec>(static_cast<std::uint32_t>(cookie))].args, site};
}

/// Each site is in one link, the arrays of links are parallel, and following its cookie leads to its own spec.
void expect_sound(const AttachPlan& plan, const CarrierPlan& carried) {
  std::set<Index<PlannedSite>> seen;
  std::set<std::pair<Index<AttachGroup>, Index<PlannedProgram>>> pairs;
  for (const PlannedLink& link : carried.links) {
    ASSERT_TRUE(plan.groups.contains(link.group) && carried.programs.contains(link.program));
    EXPECT_TRUE(pairs.emplace(link.group, link.program).second) << "two links of one file and program";
    ASSERT_THAT(link.offsets, SizeIs(link.sites.size()));
    ASSERT_THAT(link.ref_ctr_offsets, SizeIs(link.sites.size()));
    ASSERT_THAT(link.cookies, SizeIs(link.sites.size()));
    ASSERT_FALSE(link.sites.empty());
    const auto file = std::get<Index<PlannedFile>>(plan.groups[link.group].of);
    for (std::size_t i = 0; i < link.sites.size(); ++i) {
      const Index<PlannedSite> site = link.sites[i];
      const std::uint32_t number = site.value;
      EXPECT_TRUE(seen.insert(site).second) << "site " << number << " is attached twice";
      const auto& place = std::get<FilePlace>(plan.sites[site].point);
      ASSERT_EQ(place.file, file) << "site " << number << " of another file";
      EXPECT_EQ(link.offsets[i], place.offset.value);
      EXPECT_EQ(link.ref_ctr_offsets[i], place.semaphore);
      const auto found = follow(plan, carried, link, i);
      ASSERT_TRUE(found) << "site " << number;
      EXPECT_TRUE(equal(found->args, plan.specs[plan.sites[site].spec].args)) << "spec of site " << number;
      EXPECT_TRUE(found->site == number || carried.site_bits > 30) << "site " << number << " is called " << found->site;
    }
  }
  EXPECT_EQ(seen.size(), plan.sites.size());
  EXPECT_EQ(carried.in_cookie + carried.in_table + carried.in_program, plan.sites.size());
}

CarrierPlan carry(const AttachPlan& plan, const CarrierOptions& options = {}) {
  auto carried = plan_carriers(plan, options);
  EXPECT_TRUE(carried) << carried.error().message;
  if (!carried) return {};
  expect_sound(plan, *carried);
  EXPECT_LE(carried->programs.size(), options.max_programs);
  return std::move(*carried);
}

Error refusal(const AttachPlan& plan, const CarrierOptions& options) {
  const auto carried = plan_carriers(plan, options);
  EXPECT_FALSE(carried);
  return carried ? Error{} : carried.error();
}

// --- the choice -----------------------------------------------------------------------------------------------------

TEST(Carriers, give_one_spec_to_one_program) {
  const CarrierPlan carried = carry(PlanOf().sites(3, {reg(1), mem(8)}));
  EXPECT_EQ(carried.carrier, Carrier::per_link);
  ASSERT_THAT(carried.programs, SizeIs(1));
  EXPECT_EQ(carried.programs[0].carriers, kLink);
  EXPECT_EQ(carried.programs[0].values_by_site, 0U);
  EXPECT_FALSE(carried.needs_table);
  EXPECT_EQ(carried.in_program, 3U);
  EXPECT_EQ(carried.describe(), "per-link");
}

TEST(Carriers, pack_specs_that_differ_into_cookies) {
  const CarrierPlan carried = carry(PlanOf().site({reg(1)}).site({reg(2)}).site({}));
  EXPECT_EQ(carried.carrier, Carrier::cookie);
  ASSERT_THAT(carried.programs, SizeIs(1));
  EXPECT_EQ(carried.programs[0].carriers, kCookie);
  EXPECT_FALSE(carried.needs_table);
  EXPECT_EQ(carried.site_bits, 2U) << "of sites 0 to 2";
  EXPECT_EQ(carried.describe(), "cookie");
}

TEST(Carriers, put_into_the_table_what_does_not_fit_a_cookie) {
  const CarrierPlan carried = carry(PlanOf().site({reg(1)}).site(too_many()).site({reg(2)}));
  EXPECT_EQ(carried.carrier, Carrier::cookie);
  ASSERT_THAT(carried.programs, SizeIs(2)) << "one for each carrier";
  EXPECT_EQ(carried.programs[0].carriers, kCookie);
  EXPECT_EQ(carried.programs[1].carriers, kTable);
  EXPECT_TRUE(carried.needs_table);
  EXPECT_EQ(carried.in_cookie, 2U);
  EXPECT_EQ(carried.in_table, 1U);
  EXPECT_EQ(carried.links[1].cookies.at(0), USDT_TABLE_COOKIE(1, 1));
  EXPECT_EQ(carried.describe(), "cookie (2 sites), table (1 site)");
}

TEST(Carriers, are_called_what_most_sites_have) {
  const CarrierPlan carried = carry(PlanOf().site({reg(1)}).sites(2, too_many()));
  EXPECT_EQ(carried.carrier, Carrier::table);
  EXPECT_EQ(carried.describe(), "cookie (1 site), table (2 sites)");
  EXPECT_EQ(carry(PlanOf().site(too_many()).site(Args(9, reg(1)))).describe(), "table");
}

TEST(Carriers, are_the_table_for_a_thousand_functions_of_one_link_if_one_does_not_fit) {
  const auto functions = [](int fit, const Args& another, Backend backend = Backend::kprobe_multi) {
    return plan_carriers(PlanOf().group(backend).functions(fit, {reg(1)}).functions(1, another)).value();
  };
  EXPECT_EQ(functions(999, {reg(2)}).describe(), "cookie");
  const CarrierPlan many = functions(999, too_many());
  EXPECT_EQ(many.describe(), "table");
  EXPECT_THAT(many.links, SizeIs(1));
  EXPECT_THAT(many.programs, SizeIs(1));
  EXPECT_EQ(functions(998, too_many()).describe(), "cookie (998 sites), table (1 site)") << "hits count for more";
  EXPECT_EQ(functions(999, too_many(), Backend::tracing).describe(), "cookie (999 sites), table (1 site)")
      << "a link each";
}

TEST(Carriers, look_up_addresses_where_there_are_no_cookies) {
  const CarrierOptions old{.attach_cookies = false};
  EXPECT_EQ(carry(PlanOf().site({reg(1)}), old).carrier, Carrier::ip_hash);
  const CarrierPlan carried = carry(PlanOf().site({reg(1)}).site(too_many()), old);
  EXPECT_EQ(carried.carrier, Carrier::ip_hash);
  EXPECT_EQ(carried.programs[0].carriers, kIpHash | kTable);
  EXPECT_THAT(carried.links[0].cookies, Each(0)) << "the kernel could not keep them";
  EXPECT_EQ(carried.describe(), "ip-hash");
}

TEST(Carriers, have_a_program_for_one_spec_however_long) {
  EXPECT_EQ(carry(PlanOf().site(Args(USDT_MAX_ARGS, reg(1)))).carrier, Carrier::per_link);
}

TEST(Carriers, are_forced_by_name) {
  const auto plan = PlanOf().site({reg(1)}).site({reg(2)});
  for (const Carrier each : {Carrier::cookie, Carrier::table, Carrier::per_link, Carrier::ip_hash}) {
    const CarrierPlan carried = carry(plan, {.carrier = each});
    EXPECT_EQ(carried.carrier, each);
    EXPECT_THAT(carried.describe(), testing::StartsWith(std::string(to_string(each))));
    EXPECT_EQ(carrier_by_name(to_string(each)).value(), each);
  }
  EXPECT_EQ(carry(plan, {.carrier = Carrier::table}).programs[0].carriers, kTable);
  EXPECT_EQ(carrier_by_name("pigeon").error().kind, ErrorKind::not_found);
  EXPECT_THAT(carrier_by_name("pigeon").error().message, AllOf(HasSubstr("'pigeon'"), HasSubstr("ip-hash")));
}

TEST(Carriers, of_a_cookie_that_does_not_fit_are_an_error_that_names_the_site) {
  const Error error = refusal(PlanOf().site({reg(1)}).site(too_many(), 0x1238), {.carrier = Carrier::cookie});
  EXPECT_EQ(error.kind, ErrorKind::limit);
  EXPECT_THAT(error.message, AllOf(HasSubstr("app:p1 at 0x401238"), HasSubstr("1 bits of site number")));
}

TEST(Carriers, of_a_cookie_for_a_kernel_function_are_an_error_that_names_it) {
  const Error full = refusal(PlanOf().site({reg(1)}).function(too_many()), {.carrier = Carrier::cookie});
  EXPECT_EQ(full.kind, ErrorKind::limit);
  EXPECT_THAT(full.message, AllOf(HasSubstr("fentry:f1: a spec and 1 bits"), Not(HasSubstr("0x"))));
  const Error none = refusal(PlanOf().site({reg(1)}).function({reg(1)}, false), {.carrier = Carrier::cookie});
  EXPECT_EQ(none.kind, ErrorKind::not_supported);
  EXPECT_THAT(none.message, HasSubstr("fentry:f1: this kernel has no attach cookies there"));
}

TEST(Carriers, of_nothing_are_an_error) {
  EXPECT_EQ(refusal(PlanOf(), {}).kind, ErrorKind::not_found);
  EXPECT_EQ(refusal(PlanOf().site({}), {.max_programs = 0}).kind, ErrorKind::invalid_argument);
}

TEST(Carriers, are_one_where_only_one_program_is_allowed) {
  const CarrierOptions one{.max_programs = 1};
  EXPECT_EQ(carry(PlanOf().site({reg(1)}).site({reg(2)}), one).describe(), "cookie");
  EXPECT_EQ(carry(PlanOf().site({reg(1)}).site(too_many()).site({reg(2)}), one).describe(), "table");
}

// --- user cookies and site numbers ----------------------------------------------------------------------------------

TEST(Carriers, keep_a_user_cookie_that_is_the_same_as_a_constant) {
  const CarrierPlan carried = carry(PlanOf().site({reg(1)}, {}, 77).site({reg(2)}, {}, 77));
  EXPECT_EQ(carried.carrier, Carrier::cookie);
  EXPECT_EQ(carried.user_cookie, 77U);
}

TEST(Carriers, put_user_cookies_that_differ_into_the_table) {
  const auto plan = PlanOf().site({reg(1)}, {}, 77).site({reg(1)}, {}, 78);
  const CarrierPlan carried = carry(plan);
  EXPECT_EQ(carried.carrier, Carrier::table);
  EXPECT_EQ(carried.programs[0].carriers, kTable);
  EXPECT_EQ(carried.user_cookie, 0U);
  EXPECT_EQ(plan->specs[Index<EncodedSpec>(carried.links[0].cookies[1] & 0xffffffff)].user_cookie, 78U);
  const Error error = refusal(plan, {.carrier = Carrier::cookie});
  EXPECT_EQ(error.kind, ErrorKind::limit);
  EXPECT_THAT(error.message, AllOf(HasSubstr("app:p0"), HasSubstr("user cookies that differ")));
}

TEST(Carriers, give_each_user_cookie_its_own_program) {
  const CarrierPlan carried =
      carry(PlanOf().site({reg(1)}, {}, 77).site({reg(1)}, {}, 78), {.carrier = Carrier::per_link});
  ASSERT_THAT(carried.programs, SizeIs(2));
  EXPECT_NE(carried.programs[0].link_spec.user_cookie, carried.programs[1].link_spec.user_cookie);
  EXPECT_FALSE(carried.needs_table);
}

TEST(Carriers, fit_more_specs_without_site_numbers) {
  PlanOf plan;
  plan.site(Args(7, reg(1)));  // 56 of 58 bits
  for (unsigned word = 2; word < 9; ++word) plan.site({reg(word)});
  EXPECT_EQ(carry(plan).in_table, 1U) << "with 3 bits of site number";
  const CarrierPlan without = carry(plan, {.site_numbers = false});
  EXPECT_EQ(without.in_table, 0U);
  EXPECT_EQ(without.site_bits, 31U) << "programs say USDT_NO_SITE above 30";
}

TEST(Carriers, are_one_program_and_one_link_where_no_argument_is_read) {
  const AttachPlan plan = PlanOf().site({reg(1)}).site(too_many()).site({constant(7)});
  EXPECT_GT(plan_carriers(plan)->programs.size(), 1U);
  const auto carried = plan_carriers(plan, {.arguments = false});
  ASSERT_TRUE(carried) << carried.error().message;
  ASSERT_THAT(carried->programs, SizeIs(1));
  EXPECT_EQ(carried->programs[0].carriers, kLink);
  EXPECT_FALSE(carried->needs_table);
  ASSERT_THAT(carried->links, SizeIs(1));
  for (std::uint32_t site = 0; site < 3; ++site) EXPECT_EQ(USDT_COOKIE_SITE(carried->links[0].cookies[site]), site);
}

TEST(Carriers, pack_each_file_for_its_machine) {
  const auto plan = PlanOf().site({reg(14)}).file(Machine::aarch64).site({reg(31)});
  const CarrierPlan carried = carry(plan);
  ASSERT_THAT(carried.links, SizeIs(2));
  EXPECT_EQ(carried.links[1].cookies[0] & 0x1ffff, 0b11111'011'0U) << "x31, in five bits";
}

// --- programs of their own ------------------------------------------------------------------------------------------

TEST(PerLink, is_a_program_for_each_spec_the_most_used_first) {
  const auto plan = PlanOf().site({reg(1)}).sites(3, {reg(2)}).sites(2, {reg(3)}).site({reg(1)});
  const CarrierPlan carried = carry(plan, {.carrier = Carrier::per_link});
  ASSERT_THAT(carried.programs, SizeIs(3));
  EXPECT_TRUE(equal(carried.programs[0].link_spec.args, {reg(2)}));
  EXPECT_THAT(carried.links, SizeIs(3));
  EXPECT_EQ(carried.in_program, 7U);
  EXPECT_FALSE(carried.needs_table);
  EXPECT_EQ(carried.describe(), "per-link (3 programs)");
}

TEST(PerLink, is_a_program_for_each_shape_where_specs_are_many) {
  // Two shapes: register and displacement, register and constant.
  PlanOf plan;
  for (std::uint64_t i = 0; i < 5; ++i) plan.site({reg(1), mem(8 * i), mem(1000 + 8 * i)});
  for (std::uint64_t i = 0; i < 3; ++i) plan.site({reg(1), constant(i), constant(9)});
  const CarrierPlan carried = carry(plan, {.carrier = Carrier::per_link, .max_programs = 4});
  ASSERT_THAT(carried.programs, SizeIs(2));
  EXPECT_EQ(carried.programs[0].values_by_site, 0b110U);
  EXPECT_EQ(carried.programs[1].values_by_site, 0b010U) << "the constant 9 is the same everywhere";
  EXPECT_TRUE(carried.needs_table) << "that is where the values are";
  EXPECT_EQ(carried.in_program, 8U);
  EXPECT_EQ(carried.describe(), "per-link (2 programs)");
}

TEST(PerLink, keeps_shapes_apart_that_read_differently) {
  const auto programs = [](const PlanOf& plan) {
    return carry(plan, {.carrier = Carrier::per_link, .max_programs = 2}).programs;
  };
  // Three specs of one shape are one program; where one differs in more than a value it has its own.
  EXPECT_THAT(programs(PlanOf().site({mem(0)}).site({mem(8)}).site({mem(16)})), SizeIs(1));
  EXPECT_THAT(programs(PlanOf().site({mem(0)}).site({mem(8)}).site({mem(16, 5)})), SizeIs(2));
  EXPECT_THAT(programs(PlanOf().site({mem(0)}).site({mem(8)}).site({mem(16), reg(1)})), SizeIs(2));
  EXPECT_THAT(programs(PlanOf().site({mem(0)}).site({mem(8)}).site({mem(16)}, {}, 5)), SizeIs(2));
  // Neighbours that are one read, of other distances: their windows differ.
  EXPECT_THAT(programs(PlanOf().site({mem(0), mem(8)}).site({mem(32), mem(40)}).site({mem(0), mem(16)})), SizeIs(2));
}

TEST(PerLink, falls_back_to_cookies_and_the_table_above_the_limit) {
  PlanOf plan;
  for (const int sites : {3, 6, 1, 2, 7, 6}) plan.sites(sites, {reg(static_cast<unsigned>(2 + plan->specs.size()))});
  plan.sites(4, too_many());
  const CarrierPlan carried = carry(plan, {.carrier = Carrier::per_link, .max_programs = 4});
  ASSERT_THAT(carried.programs, SizeIs(4));
  EXPECT_TRUE(equal(carried.programs[0].link_spec.args, {reg(6)}));
  EXPECT_TRUE(equal(carried.programs[1].link_spec.args, {reg(3)})) << "of two used alike, the first";
  EXPECT_EQ(carried.programs[2].carriers | carried.programs[3].carriers, kCookie | kTable);
  EXPECT_EQ(carried.in_program, 13U);
  EXPECT_EQ(carried.in_cookie, 12U);
  EXPECT_EQ(carried.in_table, 4U);
  EXPECT_EQ(carried.carrier, Carrier::per_link);
  EXPECT_EQ(carried.describe(),
            "per-link (13 sites, 2 programs, no more by the limit), cookie (12 sites), table (4 sites)");
}

TEST(PerLink, uses_the_whole_limit) {
  PlanOf plan;
  for (unsigned word = 0; word < 4; ++word) plan.site({reg(word)});
  EXPECT_EQ(carry(plan, {.carrier = Carrier::per_link, .max_programs = 4}).in_program, 4U);
  EXPECT_EQ(carry(plan, {.carrier = Carrier::per_link, .max_programs = 3}).in_program, 1U)
      << "one program for cookies, and one for the table";
}

TEST(PerLink, is_not_what_one_program_for_many_specs_is_called) {
  const auto plan = PlanOf().site({reg(1)}).site({reg(2)});
  const CarrierPlan carried = carry(plan, {.carrier = Carrier::per_link, .max_programs = 1});
  EXPECT_EQ(carried.in_table, 2U);
  EXPECT_EQ(carried.carrier, Carrier::table);
  EXPECT_EQ(carried.describe(), "table");
}

// --- by address -----------------------------------------------------------------------------------------------------

TEST(IpHash, groups_sites_by_the_low_12_bits_of_their_address) {
  const auto plan =
      PlanOf().site({reg(1)}, 0x1010).site({reg(2)}, 0x2010).site({reg(3)}, 0x2018).file().site({reg(4)}, 0x7010);
  const CarrierPlan carried = carry(plan, {.carrier = Carrier::ip_hash});
  ASSERT_THAT(carried.programs, SizeIs(3));
  EXPECT_THAT(carried.ips, SizeIs(3 * 4096));
  for (std::uint32_t group = 0; group < 3; ++group)
    EXPECT_EQ(carried.programs[Index<PlannedProgram>(group)].ip_group, group);
  ASSERT_THAT(carried.links, SizeIs(3));
  EXPECT_EQ(carried.links[0].sites, (std::vector<Index<PlannedSite>>{0, 2}));
  EXPECT_EQ(carried.links[1].sites, (std::vector<Index<PlannedSite>>{1}));
  EXPECT_EQ(carried.links[2].group, Index<AttachGroup>(1));
  EXPECT_EQ(carried.links[2].program, Index<PlannedProgram>(2));
  EXPECT_EQ(std::count(carried.ips.begin(), carried.ips.end(), 0U), 3 * 4096 - 3) << "site 0 with spec 0 is 0, too";
}

TEST(IpHash, tells_two_notes_of_one_address_apart) {
  const auto plan = PlanOf().site({reg(1)}, 0x1010).site({reg(2)}, 0x1010);
  const CarrierPlan carried = carry(plan, {.carrier = Carrier::ip_hash});
  EXPECT_THAT(carried.programs, SizeIs(2));
  EXPECT_THAT(carried.links, SizeIs(2));
}

TEST(IpHash, refuses_more_collisions_than_programs) {
  PlanOf plan;
  for (std::uint64_t page = 1; page <= 4; ++page) plan.site({reg(1)}, page << 12 | 0x10);
  EXPECT_THAT(carry(plan, {.carrier = Carrier::ip_hash, .max_programs = 4}).programs, SizeIs(4));
  const Error error = refusal(plan, {.carrier = Carrier::ip_hash, .max_programs = 3});
  EXPECT_EQ(error.kind, ErrorKind::limit);
  EXPECT_THAT(error.message, AllOf(HasSubstr("4 sites whose addresses end in 0x010"), HasSubstr("3 is the limit")));
}

// --- windows, and plans of any size ---------------------------------------------------------------------------------

TEST(Carriers, say_whether_any_program_reads_windows) {
  const Args neighbours{mem(0), mem(8)};
  EXPECT_TRUE(carry(PlanOf().site(neighbours)).windows);
  EXPECT_FALSE(carry(PlanOf().site({mem(0), mem(800)})).windows);
  const auto two = PlanOf().site(neighbours).site({reg(1)});
  EXPECT_FALSE(carry(two).windows) << "cookies have none";
  EXPECT_TRUE(carry(two, {.carrier = Carrier::table}).windows);
  EXPECT_TRUE(carry(two, {.carrier = Carrier::per_link}).windows);
}

/// A large plan of `shapes` shapes in many specs over two files.
PlanOf large_plan(int sites, unsigned shapes) {
  PlanOf plan;
  for (int i = 0; i < sites; ++i) {
    if (i == sites / 2) plan.file();
    const unsigned shape = static_cast<unsigned>(i) % shapes;
    plan.site({reg(shape % 15), mem(static_cast<std::int64_t>(i % 977) * 8, shape / 15 % 15), reg(3)});
  }
  return plan;
}

TEST(Carriers, lead_every_site_of_a_large_plan_to_its_spec) {
  const auto plan = large_plan(3000, 40);
  EXPECT_EQ(carry(plan).in_cookie, 3000U);
  carry(plan, {.carrier = Carrier::table});
  EXPECT_THAT(carry(plan, {.carrier = Carrier::per_link}).programs, SizeIs(40));
  EXPECT_THAT(carry(plan, {.carrier = Carrier::per_link, .max_programs = 20}).programs, SizeIs(19))
      << "18 shapes, and one for cookies";
  EXPECT_THAT(carry(plan, {.carrier = Carrier::ip_hash}).programs, SizeIs(6)) << "512 sites of 8 bytes to a page";
}

TEST(Carriers, of_50000_sites_are_decided_about_as_fast_as_the_sites_are_made) {
  const auto seconds_of = [](auto&& work) {
    const std::clock_t start = std::clock();
    work();
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  const double made = seconds_of([] { large_plan(50000, 200); });
  const auto plan = large_plan(50000, 200);
  for (const Carrier each : {Carrier::automatic, Carrier::table, Carrier::per_link, Carrier::ip_hash}) {
    const auto decide = [&] { EXPECT_TRUE(plan_carriers(plan, {.carrier = each, .max_programs = 200})); };
    EXPECT_LT(seconds_of(decide), 3 * made) << to_string(each) << ": the sites take " << made << " s";
  }
}

}  // namespace
}  // namespace usdt
