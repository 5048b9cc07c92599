// SPDX-License-Identifier: BSD-2-Clause
// Traces that never were, for tests of recordings.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "usdt/recording.hpp"
#include "usdt/testing/event_builder.hpp"

namespace usdt::record_test {

/// A plan of two probes with three sites, whose arguments differ.
inline AttachPlan plan_of_three_sites() {
  AttachPlan plan = testing::synthetic_plan("db", "query", Machine::x86_64, "8@%rdi -4@%esi 8f@%rdx", {0});
  const auto add = [&plan](Index<PlannedProbe> probe, std::string_view args, std::vector<std::uint8_t> texts) {
    AttachPlan more = testing::synthetic_plan("x", "y", Machine::x86_64, args, texts);
    const auto site = plan.sites.add({.probe = probe,
                                      .point = FilePlace{.pc = VirtAddr(0x1000 + plan.sites.size())},
                                      .spec = plan.specs.next(),
                                      .args = plan.args.next()});
    plan.groups[0].sites.push_back(site);
    plan.specs.add(more.specs[0]);
    plan.args.add(more.args[0]);
    plan.max_args = std::max(plan.max_args, more.max_args);
    plan.string_slots = std::max(plan.string_slots, more.string_slots);
  };
  add(0, "-8@%rdi 4f@%esi odd!operand", {});
  add(plan.probes.add({.file = Index<PlannedFile>(0), .provider = "db", .name = "done"}), "8@%rdi 8@%rsi 8@%rdx 1@%cl",
      {0, 2});
  return plan;
}

/// A record of site `site`, any there can be: numbers, errors and texts of all lengths.
inline std::vector<std::byte> random_record(const AttachPlan& plan, std::uint32_t site, std::uint64_t time,
                                            std::mt19937_64& random) {
  constexpr std::uint32_t string_size = 12;
  testing::EventBuilder builder(plan, string_size);
  const auto below = [&random](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  builder.site(site).timestamp(time).pid(10 + below(3)).cpu(below(4));
  builder.tid(100 + below(5)).comm(std::string(below(16), static_cast<char>('a' + below(26))));
  const EncodedSpec& spec = plan.specs[plan.sites[Index<PlannedSite>(site)].spec];
  for (std::size_t n = 0; n < spec.args.size(); ++n) {
    builder.arg(n, random() >> random() % 64);
    if (random() % 8 == 0) {
      builder.error(n, random() % 2 ? -14 : -61);
    } else if (spec.args[n].capture != USDT_CAPTURE_NONE && random() % 4 != 0) {
      builder.text(n, std::string(below(20), static_cast<char>('A' + below(60))));
    }
  }
  return *builder.build();
}

/// A file in memory: disks wait for what was cut and written again.
class File {
 public:
  File() : fd_(::memfd_create("recording", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_)) {}
  ~File() { ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string bytes() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void set(std::string_view bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  int fd_;
  std::filesystem::path path_;
};

}  // namespace usdt::record_test
