// SPDX-License-Identifier: BSD-2-Clause
// What of the development corpus fits a packed cookie, and that what fits comes back as it was.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "elf/toolchain.hpp"
#include "resolve/encode.hpp"
#include "tests/places.hpp"
#include "usdt/bpf/cookie.h"
#include "usdt/cookie.hpp"
#include "usdt/decode.hpp"
#include "usdt/plan.hpp"

namespace usdt {
namespace {

namespace fs = std::filesystem;

Machine machine_named(const std::string& name) {
  if (name == "amd64") return Machine::x86_64;
  return name == "i386" ? Machine::i386 : Machine::aarch64;
}

/// Specs tried, and how many fit.
struct Share {
  int fit = 0;
  int all = 0;

  [[nodiscard]] double percent() const { return all == 0 ? 0 : 100.0 * fit / all; }
};

using Shares = std::map<Machine, Share>;

void count(Machine machine, const std::vector<usdt_arg_spec>& args, std::uint32_t site, unsigned site_bits,
           Shares& shares) {
  Share& share = shares[machine];
  ++share.all;
  const auto cookie = pack_cookie(machine, args, site, site_bits);
  if (!cookie) return;
  ++share.fit;
  const auto back = unpack_cookie(machine, *cookie);
  ASSERT_TRUE(back) << back.error().message;
  ASSERT_EQ(back->size(), args.size());
  EXPECT_TRUE(args.empty() || std::memcmp(back->data(), args.data(), args.size() * sizeof(usdt_arg_spec)) == 0);
  EXPECT_EQ(USDT_PACKED_SITE(*cookie, site_bits), site);
}

/// Prints the shares, and requires the given percentages of x86-64, i386 and arm64.
void expect_shares(const std::string& of, const Shares& shares, const std::array<int, 3>& at_least) {
  for (const auto& [machine, share] : shares) {
    fmt::print("  {} of {}: {} of {}, {:.1f} %\n", of, to_string(machine), share.fit, share.all, share.percent());
    EXPECT_GE(share.percent(), at_least[static_cast<std::size_t>(machine)]) << of << " of " << to_string(machine);
  }
  EXPECT_EQ(shares.size(), 3U);
}

/// The distinct argument texts that mean the same in any file.
Shares texts_that_fit(std::ifstream& reference, std::uint32_t site, unsigned site_bits) {
  Shares shares;
  for (std::string line; std::getline(reference, line);) {
    rapidjson::Document row;
    row.Parse(line.c_str());
    const auto decoded = row["decoded"].GetArray();
    if (std::any_of(decoded.begin(), decoded.end(), [](const auto& arg) { return !arg["needs"].Empty(); })) continue;
    const Machine machine = machine_named(row["arch"].GetString());
    const std::string text = row["args"].GetString();
    SCOPED_TRACE(text);
    std::vector<usdt_arg_spec> args;
    for (const Arg& arg : ArgDecoder(machine).decode(text))
      args.push_back(resolve::encode(arg, arch::for_machine(machine)));
    count(machine, args, site, site_bits, shares);
  }
  return shares;
}

TEST(CookieCorpus, distinct_argument_texts_come_back) {
  std::ifstream reference(test::corpus_dir() / "decode-dev.jsonl");
  if (!reference) GTEST_SKIP() << "no corpus at " << test::corpus_dir() << " (set USDT_CORPUS)";
  expect_shares("distinct texts", texts_that_fit(reference, 0, 0), {88, 74, 88});
  reference.clear();
  reference.seekg(0);
  expect_shares("distinct texts with 10 bits of site number", texts_that_fit(reference, 0x2a5, 10), {79, 70, 80});
}

/// The sites of a file of the corpus as the planner encodes them, symbols and all.
void count_file(const fs::path& path, Shares& alone, Shares& numbered) {
  auto elf = ElfFile::open(path, {.debug_dirs = {}});
  if (!elf || (elf->kind() != ElfKind::dynamic && elf->kind() != ElfKind::executable)) return;
  const auto scanned = elf->scan();
  ASSERT_TRUE(scanned) << scanned.error().message;
  ProbeFile file;
  file.target = {.path = path, .access = path};
  file.elf = std::make_shared<const ElfFile>(std::move(*elf));
  file.sites = scanned->sites;
  const auto plan = plan_attach({.files = {file}}, KernelFacts{});
  if (!plan) return;
  SCOPED_TRACE(path.filename().string());
  for (const PlannedSite& site : plan->sites) {
    const auto& args = plan->specs[site.spec].args;
    count(file.elf->machine(), args, 0, 0, alone);
    count(file.elf->machine(), args, 0x2a5, 10, numbered);
  }
}

TEST(CookieCorpus, sites_of_real_files_come_back) {
  const fs::path archive = test::corpus_dir() / "bin-dev.tar.xz";
  if (!fs::exists(archive)) GTEST_SKIP() << "no corpus at " << archive << " (set USDT_CORPUS)";
  const test::TempDir dir;
  const auto unpacked = test::run_in(dir, "tar xf " + archive.string());
  ASSERT_EQ(unpacked.status, 0) << unpacked.output;
  Shares alone, numbered;
  for (const auto& entry : fs::recursive_directory_iterator(dir.path())) {
    if (entry.is_regular_file() && !entry.is_symlink()) count_file(entry.path(), alone, numbered);
  }
  expect_shares("sites", alone, {96, 83, 96});
  expect_shares("sites with 10 bits of site number", numbered, {92, 82, 92});
}

}  // namespace
}  // namespace usdt
