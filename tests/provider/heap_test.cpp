// SPDX-License-Identifier: BSD-2-Clause
// What libusdt-heap.so is made of: which allocations are chosen, what they stand for, and the set of those that are
// not free yet. Expected are the numbers of probability theory, by the C++ library's distributions and by formulas.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "chosen.h"
#include "sampler.h"

namespace {

constexpr std::uint64_t kProcess = 1;
constexpr std::uint64_t kKiB = 1024;

double chance_of(std::uint64_t mean, std::size_t size) {
  return 1 - std::exp(-static_cast<double>(size) / static_cast<double>(mean));
}

/// Expects `taken` of `all` to be what chance `p` makes of them, but for one in 10^5 runs of all these.
void expect_share(std::uint64_t taken, std::uint64_t all, double p, const std::string& what) {
  const double expected = static_cast<double>(all) * p;
  const double deviation = std::sqrt(static_cast<double>(all) * p * (1 - p));
  EXPECT_NEAR(static_cast<double>(taken), expected, 5 * deviation + 1) << what;
}

TEST(Sampler, chooses_each_size_with_its_probability_whatever_came_before) {
  constexpr std::uint64_t mean = 4 * kKiB;
  constexpr std::size_t allocations = 2'000'000;
  constexpr std::array<std::size_t, 6> sizes{1, 24, 300, 4096, 10'000, 60'000};
  std::mt19937_64 random(20);  // of sizes alone
  heap_sampler sampler{};
  std::map<std::size_t, std::pair<std::uint64_t, std::uint64_t>> of_size, after_chosen;  // all, and chosen
  bool before = false;
  for (std::size_t n = 0; n < allocations; ++n) {
    const std::size_t size = sizes[random() % sizes.size()];
    const bool chosen = heap_choose(&sampler, kProcess, mean, size);
    for (auto* counts : {&of_size, before ? &after_chosen : nullptr}) {
      if (counts == nullptr) continue;
      ++(*counts)[size].first;
      (*counts)[size].second += chosen ? 1 : 0;
    }
    before = chosen;
  }
  for (const auto& [counts, what] : {std::pair(&of_size, "of all"), {&after_chosen, "after one that was chosen"}})
    for (const auto& [size, count] : *counts)
      expect_share(count.second, count.first, chance_of(mean, size), std::to_string(size) + " bytes, " + what);
}

TEST(Sampler, weights_have_the_size_as_their_expectation) {
  for (const std::uint64_t mean : {std::uint64_t{1}, 100 * kKiB, 512 * kKiB, std::uint64_t{1} << 40})
    for (const std::size_t size : {1UL, 16UL, 1000UL, 524'288UL, 100'000'000UL, 1UL << 40, (1UL << 62) + 12345}) {
      const double expected =
          static_cast<double>(size) / -std::expm1(-static_cast<double>(size) / static_cast<double>(mean));
      EXPECT_NEAR(static_cast<double>(heap_weight(mean, size)), expected, 0.5 + expected * 1e-14)
          << size << " by " << mean;
    }
  EXPECT_EQ(heap_weight(512 * kKiB, (std::size_t{1} << 62) + 12345), (std::size_t{1} << 62) + 12345)
      << "is not rounded";
}

/// One estimate of how many bytes a program allocates.
struct Estimate {
  double sum = 0, variance = 0;
  std::uint64_t truth = 0;
  [[nodiscard]] double errors() const { return (sum - static_cast<double>(truth)) / std::sqrt(variance); }
};

Estimate estimate(std::mt19937_64& random) {
  constexpr std::uint64_t mean = 64 * kKiB;
  std::lognormal_distribution<> sizes(6, 2);  // a median of 400 bytes, and some of a MiB
  heap_sampler sampler{};
  Estimate made;
  for (int n = 0; n < 20'000; ++n) {
    const std::size_t size = 1 + static_cast<std::size_t>(std::min(sizes(random), 1e7));
    made.truth += size;
    if (!heap_choose(&sampler, kProcess, mean, size)) continue;
    const auto weight = static_cast<double>(heap_weight(mean, size));
    made.sum += weight;
    made.variance += weight * (weight - static_cast<double>(size));
  }
  return made;
}

TEST(Sampler, sums_are_unbiased_and_their_standard_error_is_what_the_weights_say) {
  constexpr int runs = 1000;
  std::mt19937_64 random(35);
  double total = 0, squares = 0;
  int within_two = 0, within_three = 0;
  for (int n = 0; n < runs; ++n) {
    const double errors = estimate(random).errors();
    total += errors;
    squares += errors * errors;
    within_two += std::abs(errors) <= 2;
    within_three += std::abs(errors) <= 3;
  }
  EXPECT_NEAR(total / runs, 0, 0.15) << "a bias, in standard errors";
  EXPECT_NEAR(squares / runs, 1, 0.15) << "the variance, in that of the weights";
  EXPECT_GE(within_two, runs * 93 / 100);
  EXPECT_GE(within_three, runs * 99 / 100);
}

TEST(Sampler, chooses_as_often_in_a_signal_handler_that_interrupts_it) {
  constexpr std::uint64_t mean = 4 * kKiB;
  constexpr std::size_t size = 1000, all = 200'000;
  heap_sampler sampler{};
  heap_choose(&sampler, kProcess, mean, 1);
  std::uint64_t chosen = 0;
  for (std::size_t n = 0; n < all; ++n) {
    sampler.left = -1;  // as it is between the last byte before a point and the next distance
    chosen += heap_choose(&sampler, kProcess, mean, size) ? 1 : 0;
    EXPECT_EQ(sampler.left, -1) << "the distance is for who is interrupted";
  }
  expect_share(chosen, all, chance_of(mean, size), "in handlers");
}

TEST(Sampler, draws_other_numbers_in_another_process) {
  heap_sampler parent{};
  heap_choose(&parent, kProcess, 512 * kKiB, 1);
  heap_sampler child = parent;
  heap_choose(&child, kProcess + 1, 512 * kKiB, 1);
  EXPECT_NE(child.seed, parent.seed);
  EXPECT_EQ(child.process, kProcess + 1);
}

TEST(Sampler, chooses_each_allocation_for_what_it_is_by_a_mean_of_0) {
  heap_sampler sampler{};
  for (std::size_t size = 1; size < 100; ++size) EXPECT_TRUE(heap_choose(&sampler, kProcess, 0, size));
  EXPECT_EQ(heap_weight(0, 77), 77);
}

TEST(Sampler, reads_means_with_units_and_nothing_else) {
  std::uint64_t mean = 7;
  for (const auto& [text, expected] : {std::pair("0", std::uint64_t{0}),
                                       {"524288", 512 * kKiB},
                                       {"512K", 512 * kKiB},
                                       {"3M", 3 * kKiB * kKiB},
                                       {"2G", 2 * kKiB * kKiB * kKiB}}) {
    EXPECT_EQ(heap_read_mean(text, &mean), 0) << text;
    EXPECT_EQ(mean, expected) << text;
  }
  mean = 7;
  for (const char* text :
       {"", "K", "-1", "1.5M", "12KB", "1T", " 1", "99999999999999999999999", "4503599627370497", "9999999999G"})
    EXPECT_EQ(heap_read_mean(text, &mean), -1) << text;
  EXPECT_EQ(mean, 7);
}

/// The set, as a library has it.
class Chosen : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(set.get(), nullptr); }
  static const void* address(std::uint64_t n) { return reinterpret_cast<const void*>(0x7f00'0000'0000 + n * 16); }

  struct Unmap {
    void operator()(heap_chosen* chosen) const { heap_unmap_chosen(chosen); }
  };
  std::unique_ptr<heap_chosen, Unmap> set{heap_map_chosen()};
};

TEST_F(Chosen, allocations_are_found_once_with_their_sizes) {
  std::size_t size = 0;
  EXPECT_FALSE(heap_remove(set.get(), address(1), &size));
  for (std::uint64_t n = 0; n < 10'000; ++n) EXPECT_TRUE(heap_add(set.get(), address(n), n + 5));
  EXPECT_EQ(set->count, 10'000);
  EXPECT_FALSE(heap_remove(set.get(), address(10'000), &size)) << "one that was not added";
  for (std::uint64_t n = 0; n < 10'000; ++n) {
    EXPECT_TRUE(heap_remove(set.get(), address(n), &size));
    EXPECT_EQ(size, n + 5);
    EXPECT_FALSE(heap_remove(set.get(), address(n), &size));
  }
  EXPECT_EQ(set->count, 0);
}

TEST_F(Chosen, there_is_room_for_half_of_all_slots_and_what_finds_none_is_counted) {
  constexpr std::uint64_t slots = std::uint64_t{HEAP_BUCKETS} * HEAP_SLOTS_OF_BUCKET;
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> added;
  for (std::uint64_t n = 0; n < slots / 2; ++n) {
    added.push_back(random() >> 24);
    ASSERT_TRUE(heap_add(set.get(), address(added.back()), 1)) << "after " << n;
  }
  EXPECT_EQ(set->left_out, 0);
  for (std::uint64_t n = 0; n < slots; ++n)
    if (heap_add(set.get(), address(random() >> 24), 1)) added.push_back(0);
  EXPECT_EQ(set->count, added.size());
  EXPECT_LE(set->count, slots);
  EXPECT_EQ(set->left_out + set->count, slots / 2 + slots);
  std::size_t size = 0;
  EXPECT_TRUE(heap_remove(set.get(), address(added.front()), &size));
}

TEST_F(Chosen, threads_add_and_remove_at_once) {
  constexpr int threads = 4;
  constexpr std::uint64_t each = 50'000;
  std::atomic<std::uint64_t> wrong = 0;
  std::vector<std::thread> all;
  for (int thread = 0; thread < threads; ++thread)
    all.emplace_back([&, thread] {
      std::vector<std::uint64_t> mine;
      for (std::uint64_t n = 0; n < each; ++n) {
        const std::uint64_t number = n * threads + static_cast<std::uint64_t>(thread);
        wrong += heap_add(set.get(), address(number), number) ? 0 : 1;
        mine.push_back(number);
        if (mine.size() < 500) continue;
        for (const std::uint64_t old : mine) {
          std::size_t size = 0;
          wrong += heap_remove(set.get(), address(old), &size) && size == old ? 0 : 1;
        }
        mine.clear();
      }
    });
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(set->count, 0);
}

TEST_F(Chosen, a_child_starts_with_nothing_and_a_number_of_its_own) {
  const std::uint64_t process = heap_process(set.get());
  EXPECT_NE(process, 0);
  EXPECT_EQ(heap_process(set.get()), process);
  ASSERT_TRUE(heap_add(set.get(), address(1), 9));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::size_t size = 0;
    const bool empty = set->count == 0 && !heap_remove(set.get(), address(1), &size);
    _exit(empty && heap_process(set.get()) != process ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::size_t size = 0;
  EXPECT_TRUE(heap_remove(set.get(), address(1), &size));
}

}  // namespace
