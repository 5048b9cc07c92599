// SPDX-License-Identifier: BSD-2-Clause
// A scan may not take longer than the tool everyone has for it, and a file without probes must be passed over at once.
#include <fmt/format.h>
#include <gtest/gtest.h>

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

TEST(Speed, ScanOf10000ProbesTakesNoLongerThanReadelf) {
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
/// As a whole process: loading, starting, scanning, decoding, printing.
TEST(Speed, AListOf10000ProbesTakesNoLongerThanReadelfAsProcesses) {
  const TempDir dir;
  dir.write("probes.S", many_probes(10'000));
  const auto built = run_in(dir, "cc -shared -nostdlib probes.S -o probes.so");
  ASSERT_EQ(built.status, 0) << built.output;
  const auto best = [&](const std::string& command) {
    return best_of(9, [&] { ASSERT_EQ(run_in(dir, command + " probes.so > /dev/null").status, 0) << command; });
  };
  const double readelf = best("readelf -nW");
  const double text = best(USDT_LIST);
  const double json = best(USDT_LIST " --format json");
  fmt::print("text {:.2f}, JSON {:.2f} of readelf -nW, {:.2f} ms\n", text / readelf, json / readelf, readelf);
  EXPECT_LT(text, readelf);
  EXPECT_LT(json, 1.25 * readelf) << "0.9 on a quiet machine, and the costs of the sites are asked of the kernel";
}
#endif

TEST(Speed, AFileWithoutProbesIsPassedOverWithoutReadingIt) {
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
