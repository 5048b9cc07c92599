// SPDX-License-Identifier: BSD-2-Clause
// A scan may not take longer than the tool everyone has for it, and a file without probes must be passed over at once.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
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
/// What a process has used, or several together.
struct Used {
  double ms = 0;     ///< of processors
  double pages = 0;  ///< that it was given
};

Used used_by(int who) {
  rusage used{};
  ::getrusage(who, &used);
  const auto ms = [](const timeval& t) {
    return 1e3 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_usec);
  };
  return {ms(used.ru_utime) + ms(used.ru_stime), static_cast<double>(used.ru_minflt)};
}

/// What it takes this machine to give a process a page, in ms: 0.0002 on processors of our day, a hundred times as much
/// in some virtual machines, where it would be all that is measured.
double ms_of_a_page() {
  constexpr std::size_t page = 4096, pages = 2048;
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const Used before = used_by(RUSAGE_SELF);
    auto* memory =
        static_cast<char*>(::mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory == MAP_FAILED) return 0;
    ::madvise(memory, pages * page, MADV_NOHUGEPAGE);
    for (std::size_t k = 0; k < pages; ++k) memory[k * page] = 1;
    const Used after = used_by(RUSAGE_SELF);
    ::munmap(memory, pages * page);
    if (after.pages > before.pages) best = std::min(best, (after.ms - before.ms) / (after.pages - before.pages));
  }
  return best;
}

/// The processor time of `command` over the probes, without what its pages took, in ms. Waiting for a processor or a
/// disk is not in it.
double processor_ms(const TempDir& dir, const std::string& command, double of_a_page) {
  const Used before = used_by(RUSAGE_CHILDREN);
  EXPECT_EQ(run_in(dir, command + " probes.so > /dev/null").status, 0) << command;
  const Used after = used_by(RUSAGE_CHILDREN);
  return after.ms - before.ms - (after.pages - before.pages) * of_a_page;
}

/// As a whole process: loading, starting, scanning, decoding, printing. JSON is four times as much text as readelf's,
/// of which that of binutils 2.44 takes two thirds of the time that 2.40 takes.
TEST(Speed, a_list_of_10000_probes_takes_no_more_processor_time_than_readelf_and_in_json_a_quarter_more_at_most) {
  const TempDir dir;
  dir.write("probes.S", many_probes(10'000));
  const auto built = run_in(dir, "cc -shared -nostdlib probes.S -o probes.so");
  ASSERT_EQ(built.status, 0) << built.output;
  // In turns, so that a slow moment of the machine is one of all three.
  double readelf = 1e9;
  double text = 1e9;
  double json = 1e9;
  const double page = ms_of_a_page();
  for (int i = 0; i < 15; ++i) {
    readelf = std::min(readelf, processor_ms(dir, "readelf -nW", page));
    text = std::min(text, processor_ms(dir, USDT_LIST, page));
    json = std::min(json, processor_ms(dir, USDT_LIST " --format json", page));
  }
  fmt::print("text {:.2f}, JSON {:.2f} of readelf -nW, {:.2f} ms; a page {:.2f} us\n", text / readelf, json / readelf,
             readelf, 1e3 * page);
#ifdef __OPTIMIZE__
  EXPECT_LT(text, readelf);
  EXPECT_LT(json, 1.25 * readelf);
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
