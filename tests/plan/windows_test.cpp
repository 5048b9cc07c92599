// SPDX-License-Identifier: BSD-2-Clause
// Which neighbouring memory operands are fetched by one read.
#include "carry/windows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tests/arg_specs.hpp"

namespace usdt {
namespace {

using carry::gather_windows;
using carry::Windowed;
using test::Args;
using testing::Each;
using testing::ElementsAre;

constexpr unsigned kBase = 4, kOther = 5, kIndex = 10;

usdt_arg_spec mem(std::int64_t displacement, unsigned size, unsigned base = kBase, unsigned flags = 0) {
  return test::mem(displacement, base, size, flags);
}
usdt_arg_spec indexed(std::int64_t displacement, unsigned shift) {
  return test::indexed(displacement, kBase, kIndex, shift);
}
usdt_arg_spec in_register(unsigned size) { return test::reg(kBase, size); }

/// "NUMBER+OFFSET" for each argument of a window, "-" for those read alone.
std::vector<std::string> windows(const Windowed& windowed) {
  std::vector<std::string> all;
  for (const usdt_arg_spec& arg : windowed.args) {
    const unsigned number = arg.window / 64, offset = arg.window % 64;
    all.push_back(arg.window == 0 ? "-" : std::to_string(number) + "+" + std::to_string(offset));
  }
  return all;
}

std::vector<std::string> windows(const Args& args) { return windows(gather_windows(args)); }

TEST(Windows, hold_neighbours_on_one_base) {
  const Windowed out = gather_windows({mem(-8, 8), mem(-16, 4), mem(-4, 2)});
  EXPECT_THAT(windows(out), ElementsAre("1+8", "1+0", "1+12"));
  EXPECT_THAT(out.sizes, ElementsAre(0, 16, 0, 0));
}

TEST(Windows, leave_alone_what_is_alone) {
  const Windowed out = gather_windows({mem(0, 8), in_register(8), mem(0, 8, kOther)});
  EXPECT_THAT(windows(out), Each("-"));
  EXPECT_THAT(out.sizes, Each(0));
  EXPECT_THAT(windows(Args{}), ElementsAre());
}

TEST(Windows, change_nothing_but_the_window) {
  const Args before{mem(-8, 8, kBase, USDT_ARG_SIGNED), mem(-16, 4, kBase, USDT_ARG_FLOAT), in_register(2)};
  Args after = gather_windows(before).args;
  for (usdt_arg_spec& arg : after) arg.window = 0;
  ASSERT_EQ(after.size(), before.size());
  EXPECT_EQ(std::memcmp(after.data(), before.data(), before.size() * sizeof(before[0])), 0);
}

TEST(Windows, reach_exactly_64_bytes) {
  const Windowed inside = gather_windows({mem(0, 8), mem(56, 8)});
  EXPECT_THAT(windows(inside), ElementsAre("1+0", "1+56"));
  EXPECT_EQ(inside.sizes[1], 64);
  EXPECT_THAT(windows({mem(0, 8), mem(57, 8)}), Each("-"));
  EXPECT_THAT(windows({mem(0, 8), mem(63, 1)}), ElementsAre("1+0", "1+63"));
  EXPECT_THAT(windows({mem(0, 8), mem(64, 1)}), Each("-"));
  EXPECT_THAT(windows({mem(-32, 8), mem(24, 8)}), ElementsAre("1+0", "1+56"));
}

TEST(Windows, begin_anew_where_the_last_is_full) {
  const Windowed out = gather_windows({mem(0, 8), mem(40, 8), mem(64, 8), mem(100, 8)});
  EXPECT_THAT(windows(out), ElementsAre("1+0", "1+40", "2+0", "2+36"));
  EXPECT_THAT(out.sizes, ElementsAre(0, 48, 44, 0));
}

TEST(Windows, are_three_and_the_fullest_come_first) {
  const Windowed out = gather_windows({mem(0, 8), mem(8, 8), mem(1000, 8), mem(1008, 8), mem(1016, 8), mem(2000, 8),
                                       mem(2008, 8), mem(3000, 8), mem(3008, 8), mem(3016, 8), mem(3024, 8)});
  EXPECT_THAT(windows(out), ElementsAre("3+0", "3+8", "2+0", "2+8", "2+16", "-", "-", "1+0", "1+8", "1+16", "1+24"));
  EXPECT_THAT(out.sizes, ElementsAre(0, 32, 24, 16));
}

TEST(Windows, keep_addresses_of_different_make_apart) {
  EXPECT_THAT(windows({mem(0, 8), mem(8, 8, kOther)}), Each("-"));
  EXPECT_THAT(windows({mem(0, 8), indexed(8, 0)}), Each("-"));
  EXPECT_THAT(windows({indexed(0, 0), indexed(8, 3)}), Each("-"));
  EXPECT_THAT(windows({indexed(0, 3), indexed(8, 3)}), ElementsAre("1+0", "1+8"));
  for (const unsigned flag : {USDT_ARG_ADDR32, USDT_ARG_IP, USDT_ARG_INDEX_U32, USDT_ARG_INDEX_S32, USDT_ARG_THREAD})
    EXPECT_THAT(windows({mem(0, 8), mem(8, 8, kBase, flag)}), Each("-")) << flag;
  EXPECT_THAT(windows({mem(0, 8, kBase, USDT_ARG_SIGNED), mem(8, 8, kBase, USDT_ARG_FLOAT)}),
              ElementsAre("1+0", "1+8"));
}

TEST(Windows, hold_globals_that_lie_together) {
  EXPECT_THAT(windows({mem(0x2ff0, 4, USDT_REG_NONE, USDT_ARG_IP), mem(0x2ff8, 8, USDT_REG_NONE, USDT_ARG_IP)}),
              ElementsAre("1+0", "1+8"));
}

TEST(Windows, hold_operands_that_overlap) {
  const Windowed out = gather_windows({mem(0, 8), mem(4, 2), mem(0, 8), mem(2, 1)});
  EXPECT_THAT(windows(out), ElementsAre("1+0", "1+4", "1+0", "1+2"));
  EXPECT_EQ(out.sizes[1], 8);
}

TEST(Windows, do_not_reach_round_the_end_of_the_address_space) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max(), kLeast = std::numeric_limits<std::int64_t>::min();
  EXPECT_THAT(windows({mem(kMost, 1), mem(kLeast, 1)}), Each("-"));
  EXPECT_THAT(windows({mem(kMost - 7, 8), mem(kMost - 15, 8)}), ElementsAre("1+8", "1+0"));
}

TEST(Windows, are_written_with_their_spec) {
  const EncodedSpec spec{.user_cookie = 7, .args = {mem(8, 4), in_register(8), mem(0, 8)}};
  std::vector<std::byte> bytes(sizeof(usdt_spec) + 3 * sizeof(usdt_arg_spec));
  carry::write_spec(bytes.data(), spec);
  usdt_spec head{};
  std::memcpy(&head, bytes.data(), sizeof(head));
  EXPECT_EQ(head.user_cookie, 7U);
  EXPECT_EQ(head.arg_cnt, 3U);
  EXPECT_THAT(head.window_size, ElementsAre(0, 12, 0, 0));
  Args args(3);
  std::memcpy(args.data(), bytes.data() + sizeof(head), 3 * sizeof(usdt_arg_spec));
  EXPECT_THAT(windows(Windowed{args, {}}), ElementsAre("1+8", "-", "1+0"));
}

/// Random specs whose displacements are close to each other more often than not.
Args random_args(std::mt19937& random) {
  Args args;
  for (std::size_t left = random() % 16; left > 0; --left) {
    const int near = static_cast<int>(random() % 200) - 100;
    usdt_arg_spec arg = mem(random() % 20 == 0 ? near * 1000000007LL : near, 1U << random() % 4, kBase + random() % 2);
    if (random() % 8 == 0) arg.index = kIndex;
    if (random() % 8 == 0) arg.kind = static_cast<std::uint8_t>(random() % 5);
    if (random() % 8 == 0) arg.flags = static_cast<std::uint8_t>(random() % 64);
    args.push_back(arg);
  }
  return args;
}

/// What the address of an operand is made of besides its displacement, as spec.h states it.
bool one_base(const usdt_arg_spec& a, const usdt_arg_spec& b) {
  const unsigned of_value = USDT_ARG_SIGNED | USDT_ARG_FLOAT;
  return a.reg == b.reg && a.index == b.index && a.shift == b.shift && (a.flags & ~of_value) == (b.flags & ~of_value);
}

void expect_windows_hold_their_operands(const Windowed& out) {
  std::vector<const usdt_arg_spec*> members[1 + USDT_WINDOWS];
  for (const usdt_arg_spec& arg : out.args) {
    if (arg.window != 0) members[USDT_WINDOW_NUMBER(arg.window)].push_back(&arg);
  }
  EXPECT_TRUE(members[0].empty()) << "an offset in no window";
  for (unsigned number = 1; number <= USDT_WINDOWS; ++number) {
    const unsigned size = out.sizes[number];
    EXPECT_LE(size, USDT_WINDOW_BYTES);
    EXPECT_EQ(size == 0, members[number].empty());
    EXPECT_NE(members[number].size(), 1U) << "a window for one operand";
    unsigned end = 0;
    for (const usdt_arg_spec* arg : members[number]) {
      EXPECT_EQ(arg->kind, USDT_ARG_MEM);
      EXPECT_TRUE(one_base(*arg, *members[number].front()));
      EXPECT_EQ(arg->value - USDT_WINDOW_OFFSET(arg->window),
                members[number].front()->value - USDT_WINDOW_OFFSET(members[number].front()->window))
          << "all members agree where the window begins";
      end = std::max<unsigned>(end, USDT_WINDOW_OFFSET(arg->window) + arg->size);
    }
    EXPECT_EQ(end, size) << "not a byte beyond the operands is read";
  }
}

TEST(Windows, of_any_spec_hold_their_operands_whole) {
  std::mt19937 random(1);
  int gathered = 0;
  for (int i = 0; i < 50000 && !testing::Test::HasFailure(); ++i) {
    const Windowed out = gather_windows(random_args(random));
    gathered += out.sizes[1] != 0 ? 1 : 0;
    expect_windows_hold_their_operands(out);
  }
  EXPECT_GT(gathered, 10000);
}

}  // namespace
}  // namespace usdt
