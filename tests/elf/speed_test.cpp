// SPDX-License-Identifier: BSD-2-Clause
// A scan may not take longer than the tool everyone has for it, and a file without probes must be passed over at once.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "sdt_assembly.hpp"
#include "toolchain.hpp"

namespace usdt::test {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

/// The fastest of `runs` runs: the one least disturbed by others.
template <class Work>
double best_of(int runs, Work&& work) {
  double best = 1e9;
  for (int i = 0; i < runs; ++i) {
    const auto start = Clock::now();
    work();
    best = std::min(best, Milliseconds(Clock::now() - start).count());
  }
  return best;
}

TEST(Speed, scan_of_10000_probes_takes_no_longer_than_readelf) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "built with a sanitizer: times mean nothing";
#endif
  const TempDir dir;
  dir.write("probes.S", many_probes(10'000));
  const auto built = run_in(dir, "cc -shared -nostdlib probes.S -o probes.so");
  ASSERT_EQ(built.status, 0) << built.output;
  const auto file = dir / "probes.so";
  ASSERT_EQ(scan_file(file).sites.size(), 10'000U);

  const double ours = best_of(7, [&] { (void)scan_file(file); });
  const double readelf = best_of(7, [&] { ASSERT_EQ(run_in(dir, "readelf -nW probes.so > /dev/null").status, 0); });
  // What popen and sh cost is not readelf's doing.
  const double shell = best_of(7, [&] { ASSERT_EQ(run_in(dir, "true").status, 0); });
  RecordProperty("scan_ms", fmt::format("{:.2f}", ours));
  RecordProperty("readelf_ms", fmt::format("{:.2f}", readelf - shell));
  fmt::print("scan {:.2f} ms, readelf -nW {:.2f} ms, ratio {:.2f}\n", ours, readelf - shell, ours / (readelf - shell));
  EXPECT_LT(ours, readelf - shell);
}

#ifdef USDT_LIST
/// The processor time of `command` over the probes, in ms. Waiting for a processor or a disk is not in it.
double processor_ms(const TempDir& dir, const std::string& command) {
  const auto of_children = [] {
    rusage used{};
    ::getrusage(RUSAGE_CHILDREN, &used);
    const auto ms = [](const timeval& t) {
      return 1e3 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_usec);
    };
    return ms(used.ru_utime) + ms(used.ru_stime);
  };
  const double before = of_children();
  EXPECT_EQ(run_in(dir, command + " probes.so > /dev/null").status, 0) << command;
  return of_children() - before;
}

/// As a whole process: loading, starting, scanning, decoding, printing.
TEST(Speed, a_list_of_10000_probes_takes_no_more_processor_time_than_readelf) {
  const TempDir dir;
  dir.write("probes.S", many_probes(10'000));
  const auto built = run_in(dir, "cc -shared -nostdlib probes.S -o probes.so");
  ASSERT_EQ(built.status, 0) << built.output;
  // In turns, so that a slow moment of the machine is one of all three.
  double readelf = 1e9;
  double text = 1e9;
  double json = 1e9;
  for (int i = 0; i < 15; ++i) {
    readelf = std::min(readelf, processor_ms(dir, "readelf -nW"));
    text = std::min(text, processor_ms(dir, USDT_LIST));
    json = std::min(json, processor_ms(dir, USDT_LIST " --format json"));
  }
  fmt::print("text {:.2f}, JSON {:.2f} of readelf -nW, {:.2f} ms\n", text / readelf, json / readelf, readelf);
#ifdef __OPTIMIZE__
  EXPECT_LT(text, readelf);
  EXPECT_LT(json, readelf);
#else
  GTEST_SKIP() << "built without optimisation: times mean nothing";
#endif
}
#endif

TEST(Speed, a_file_without_probes_is_passed_over_without_reading_it) {
  const TempDir dir;
  dir.write("small.S", ".text\nnop\n");
  const auto built = run_in(dir, "cc -shared -nostdlib small.S -o big.so && truncate -s 200M big.so");
  ASSERT_EQ(built.status, 0) << built.output;
  const double ours = best_of(5, [&] { ASSERT_TRUE(scan_file(dir / "big.so").sites.empty()); });
  const double reading = best_of(2, [&] { ASSERT_EQ(read_file(dir / "big.so").size(), 200U << 20); });
  EXPECT_LT(ours, reading / 20);
}

}  // namespace
}  // namespace usdt::test
