// SPDX-License-Identifier: BSD-2-Clause
// Operands put together at random from odd parts: whatever comes out keeps the promises of the encoding.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "fake_task.hpp"
#include "resolve/resolver.hpp"
#include "tiny_elf.hpp"

namespace usdt {
namespace {

class OddOperands {
 public:
  explicit OddOperands(std::uint32_t seed) : random_(seed) {}

  ParsedArg next() {
    ParsedArg spec;
    if (one_of(4) != 0) spec.size = pick({0U, 1U, 2U, 3U, 4U, 8U, 16U, 255U, 4294967295U});
    spec.is_signed = one_of(2) != 0;
    spec.is_float = one_of(4) == 0;
    switch (one_of(4)) {
      case 0:
        spec.operand = ConstOperand{one_of(2) != 0, pick<std::uint64_t>({0, 7, ~0ULL, 1ULL << 63}), symbol()};
        break;
      case 1:
        spec.operand = RegOperand{name()};
        break;
      case 2:
        spec.operand = memory();
        break;
      default:
        break;
    }
    if (one_of(16) == 0) spec.unreadable = Unreadable{"odd", 3};
    return spec;
  }

 private:
  std::size_t one_of(std::size_t count) { return random_() % count; }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[one_of(choices.size())];
  }
  std::string_view name() {
    return pick<const char*>(
        {"",   "rax",   "eax", "ax", "ah", "rsp", "esp", "rip", "eip", "r10d", "xmm0",
         "fs", "st(1)", "x0",  "w1", "sp", "wsp", "xzr", "wzr", "d0",  "nope", "a name far too long to be a register"});
  }
  std::optional<SymbolRef> symbol() {
    if (one_of(2) == 0) return std::nullopt;
    return SymbolRef{pick<const char*>({"", "counter", "twice", "elsewhere", "slotless_elsewhere", "per_thread"}),
                     pick<const char*>({"", "GOT", "GOTPCREL", "GOTOFF", "lo12", "got_lo12", "tpoff", "PLT", "?"})};
  }
  MemOperand memory() {
    MemOperand mem;
    mem.base = name();
    mem.index = name();
    mem.scale = pick({0U, 1U, 2U, 3U, 8U, 16U, 1U << 31});
    mem.disp = pick<std::int64_t>({0, -8, 4096, std::numeric_limits<std::int64_t>::min()});
    mem.symbol = symbol();
    mem.segment = pick<const char*>({"", "", "", "fs", "gs"});
    mem.extend = pick({Extend::none, Extend::lsl, Extend::uxtw, Extend::sxtw, Extend::uxtx, Extend::sxtx});
    mem.writeback = pick({Writeback::none, Writeback::pre, Writeback::post});
    return mem;
  }

  std::mt19937 random_;
};

void expect_sound(const test::Resolved& resolved) {
  const usdt_arg_spec& spec = resolved.encoded;
  EXPECT_EQ(resolved.arg.readable(), spec.kind != USDT_ARG_UNREADABLE);
  EXPECT_EQ(resolved.arg.readable(), resolved.arg.why_unreadable().empty()) << resolved.arg.why_unreadable();
  EXPECT_EQ(spec.capture, 0);
  EXPECT_EQ(spec.window, 0);
  EXPECT_TRUE(spec.reg <= 32 || spec.reg == USDT_REG_NONE);
  EXPECT_TRUE(spec.index <= 32 || spec.index == USDT_REG_NONE);
  if (!resolved.arg.readable()) return;
  EXPECT_TRUE(spec.size == 1 || spec.size == 2 || spec.size == 4 || spec.size == 8) << int{spec.size};
  EXPECT_LE(spec.shift, spec.kind == USDT_ARG_REG ? 8 : 4);
  if (spec.kind == USDT_ARG_REG) {
    EXPECT_NE(spec.reg, USDT_REG_NONE);
  }
  if (spec.kind == USDT_ARG_CONST) {
    EXPECT_EQ(spec.reg, USDT_REG_NONE);
  }
  const unsigned both_extensions = USDT_ARG_INDEX_U32 | USDT_ARG_INDEX_S32;
  EXPECT_NE(spec.flags & both_extensions, both_extensions);
}

class Resolving : public testing::TestWithParam<Machine> {};
INSTANTIATE_TEST_SUITE_P(Machines, Resolving,
                         testing::Values(Machine::x86_64, Machine::i386, Machine::aarch64, Machine::riscv64),
                         [](const auto& machine) { return std::string(to_string(machine.param)); });

TEST_P(Resolving, odd_operands_is_sound_or_refused) {
  const auto elf = test::sample_elf(GetParam()).open();
  const elf::SymbolIndex symbols(*elf);
  OddOperands odd(1);
  int readable = 0;
  for (int i = 0; i < 50000; ++i) {
    const arch::Arch& arch = arch::for_machine(GetParam());
    const Arg arg = resolve::resolve_arg(odd.next(), arch, i % 4 == 0 ? nullptr : &symbols);
    const VirtAddr pc(test::TinyElf::kText);
    expect_sound({arg, resolve::encode(arg, arch, {.site = pc, .breakpoint = pc})});
    readable += arg.readable() ? 1 : 0;
    if (HasFailure()) break;
  }
  EXPECT_GT(readable, 500);
}

}  // namespace
}  // namespace usdt
