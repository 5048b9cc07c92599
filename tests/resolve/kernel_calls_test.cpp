// SPDX-License-Identifier: BSD-2-Clause
// The calling conventions, judged by compilers: functions of random parameters are called with known values, and what
// their signatures read from the registers and the stack at the entry has to be these values.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <optional>
#include <random>

#include "btf/names.hpp"
#include "c_types.hpp"
#include "elf/toolchain.hpp"
#include "fake_task.hpp"
#include "resolve/encode.hpp"
#include "resolve/prototype.hpp"
#include "usdt/bits.hpp"
#include "usdt/decode.hpp"

namespace usdt::resolve {
namespace {

using test::BtfBuilder;
using test::CType;

/// What the callee of every call writes down: pt_regs as 64-bit words, and the stack from its pointer on.
constexpr std::size_t register_words = 21;
constexpr std::size_t stack_bytes = 640;

constexpr std::string_view dump_x86_64 = R"(
  .globl dump
dump:
  movq %r9, regs+8*8
  movq %r8, regs+8*9
  movq %rax, regs+8*10
  movq %rcx, regs+8*11
  movq %rdx, regs+8*12
  movq %rsi, regs+8*13
  movq %rdi, regs+8*14
  movq %rsp, regs+8*19
  movq %rsp, %rsi
  movq $stack, %rdi
  movl $80, %ecx
  rep movsq
  ret
  .section .note.GNU-stack
)";
constexpr std::string_view dump_i386 = R"(
  .globl dump
dump:
  movl %eax, regs+8*10
  movl %ecx, regs+8*11
  movl %edx, regs+8*12
  movl %esp, regs+8*19
  movl %esp, %eax
  pushl %esi
  pushl %edi
  movl %eax, %esi
  movl $stack, %edi
  movl $160, %ecx
  rep movsl
  popl %edi
  popl %esi
  ret
  .section .note.GNU-stack
)";
/// Compiled without the kernel's flags, as it calls the C library.
constexpr std::string_view main_program = R"(
#include <stdio.h>
unsigned long long regs[21];
unsigned char stack[640];
extern void (*const calls[])(void);
int main(void) {
  for (int i = 0; calls[i]; ++i) {
    calls[i]();
    fwrite(regs, sizeof(regs), 1, stdout);
    fwrite(stack, sizeof(stack), 1, stdout);
  }
  return 0;
}
)";
struct Compilation {
  std::string name;
  Machine machine;
  std::string compiler;  ///< of the calls
  std::string mode;      ///< for every file
  std::string flags;     ///< of the calls
  bool floats;
};

struct Call {
  std::vector<CType> parameters;
  std::vector<std::array<std::uint8_t, 48>> values;
  BtfBuilder::Id proto = 0;
};

/// Random prototypes, the C program that calls functions of them, and what it wrote down.
class Calls {
 public:
  explicit Calls(const Compilation& how) : how_(how) {
    const std::vector<CType> plain = test::c_scalars(made_, how.machine, how.floats);
    const std::vector<CType> structs = test::c_structs(made_, plain, how.machine);
    source_ = test::c_structures;
    source_ += "extern void dump(void);\n";
    for (unsigned i = 0; i < 300; ++i) add(i, plain, structs);
    source_ += "void (*const calls[])(void) = {";
    for (unsigned i = 0; i < all_.size(); ++i) source_ += fmt::format("call{}, ", i);
    source_ += "0};\n";
  }

  /// What the program printed; empty, and a failed test, where it cannot be made or run.
  [[nodiscard]] std::string run() const {
    const test::TempDir dir;
    dir.write("calls.c", source_);
    dir.write("main.c", main_program);
    dir.write("dump.s", how_.machine == Machine::i386 ? dump_i386 : dump_x86_64);
    const auto made =
        test::run_in(dir, fmt::format("{2} {0} -fno-pie -fno-strict-aliasing {1} -w -c calls.c && "
                                      "cc {0} -fno-pie -no-pie main.c dump.s calls.o -o calls && ./calls >out",
                                      how_.mode, how_.flags, how_.compiler));
    EXPECT_EQ(made.status, 0) << made.output;
    return made.status == 0 ? test::read_file(dir / "out") : std::string();
  }

  [[nodiscard]] const std::vector<Call>& all() const { return all_; }
  [[nodiscard]] std::shared_ptr<const btf::Types> types() const { return made_.types(); }

 private:
  unsigned below(std::size_t limit) { return static_cast<unsigned>(random_() % limit); }

  void add(unsigned number, const std::vector<CType>& plain, const std::vector<CType>& structs) {
    Call call;
    const unsigned count = below(13);
    std::string types, values;
    for (unsigned i = 0; i < count; ++i) {
      const CType& one = below(3) == 0 ? structs[below(structs.size())] : plain[below(plain.size())];
      auto& bytes = call.values.emplace_back();
      for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random_());
      if (one.c == "_Bool") bytes[0] &= 1;
      const std::string value = fmt::format("v{}_{}", number, i);
      source_ += fmt::format("static unsigned char {}[48] __attribute__((aligned(16))) = {{", value);
      for (const auto byte : bytes) source_ += fmt::format("{},", byte);
      source_ += "};\n";
      types += fmt::format("{}{}", i == 0 ? "" : ", ", one.c);
      values += fmt::format("{}*({} *){}", i == 0 ? "" : ", ", one.c, value);
      call.parameters.push_back(one);
    }
    const bool varargs = count != 0 && below(8) == 0;
    std::optional<CType> result;
    // i386 callees of variable arguments would have to pop the result's address.
    if (!varargs && below(3) == 0) result = structs[below(structs.size())];
    source_ += fmt::format("static void call{}(void) {{ (({} (*)({}{}))dump)({}); }}\n", number,
                           result ? result->c : "void", count == 0 ? "void" : types, varargs ? ", ..." : "", values);
    std::vector<BtfBuilder::Param> parameters;
    for (const CType& one : call.parameters) parameters.push_back({"", one.id});
    call.proto = made_.prototype(result ? result->id : 0, parameters, varargs);
    all_.push_back(std::move(call));
  }

  Compilation how_;
  BtfBuilder made_;
  std::mt19937 random_{20260730};
  std::string source_;
  std::vector<Call> all_;
};

/// The task at the entry of a function, from what was written down there.
test::FakeTask task_of(std::string_view record, Machine machine) {
  test::FakeTask task(machine);
  std::memcpy(task.words.data(), record.data(), 8 * register_words);
  const std::uint64_t top = task.words[19];
  for (std::size_t i = 0; i < stack_bytes; ++i)
    task.memory[top + i] = static_cast<std::uint8_t>(record[8 * register_words + i]);
  return task;
}

std::uint64_t value_of(const std::array<std::uint8_t, 48>& bytes, const Type& type) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes.data(), type.size);
  return cut(bits, type.size, type.is_signed);
}

struct KernelCalls : testing::TestWithParam<Compilation> {};

TEST_P(KernelCalls, find_every_value_that_was_passed) {
  const Compilation& how = GetParam();
#if !defined(__x86_64__)
  GTEST_SKIP() << "the calls are x86's";
#endif
  const test::TempDir probe;
  probe.write("probe.c", "int x;\n");
  if (!test::can_compile(how.mode) || !test::can_run(how.mode))
    GTEST_SKIP() << "programs for " << how.mode << " cannot be made or run";
  if (test::run_in(probe, fmt::format("{} {} -c probe.c", how.compiler, how.mode)).status != 0)
    GTEST_SKIP() << "no " << how.compiler;
  const Calls calls(how);
  const std::string written = calls.run();
  constexpr std::size_t record = 8 * register_words + stack_bytes;
  ASSERT_EQ(written.size(), record * calls.all().size());
  const auto types = calls.types();
  std::size_t in_registers = 0, on_stack = 0, unknown = 0;
  for (std::size_t i = 0; i < calls.all().size(); ++i) {
    const Call& call = calls.all()[i];
    const auto prototype = types->prototype(call.proto);
    ASSERT_TRUE(prototype);
    const auto signature = kernel_signature(*types, *prototype, Convention::registers, how.machine);
    const test::FakeTask task = task_of(std::string_view(written).substr(i * record, record), how.machine);
    for (std::size_t n = 0; n < signature.args.size(); ++n) {
      const Arg& arg = signature.args[n];
      const bool is_number = call.parameters[n].readable;
      const bool is_lost = arg.why_unreadable().starts_with("behind");
      if (is_number && is_lost) ++unknown;
      ASSERT_TRUE(arg.readable() == is_number || is_lost) << arg.why_unreadable();
      if (!arg.readable()) continue;
      (std::holds_alternative<Memory>(arg.location) ? on_stack : in_registers) += 1;
      EXPECT_EQ(task.read(encode(arg, task.arch)), value_of(call.values[n], arg.type))
          << prototype_text(*types, "f", *prototype) << ": argument " << n << " in "
          << location_text(arg.location, how.machine);
    }
  }
  EXPECT_GT(in_registers, 200U);
  EXPECT_GT(on_stack, 200U);
  EXPECT_LT(unknown, 100U) << "behind an __int128 that does not fit";
}

INSTANTIATE_TEST_SUITE_P(
    Compilations, KernelCalls,
    testing::Values(Compilation{"x86_64", Machine::x86_64, "gcc", "-m64", "-O2", true},
                    Compilation{"x86_64_kernel", Machine::x86_64, "gcc", "-m64",
                                "-O2 -mno-sse -mno-mmx -mpreferred-stack-boundary=3", false},
                    Compilation{"x86_64_clang", Machine::x86_64, "clang", "-m64", "-O2", true},
                    Compilation{"x86_64_kernel_clang", Machine::x86_64, "clang", "-m64",
                                "-O2 -mno-sse -mno-mmx -mstack-alignment=8", false},
                    Compilation{"i386_clang", Machine::i386, "clang", "-m32",
                                "-O2 -mregparm=3 -freg-struct-return -mstack-alignment=4", false},
                    Compilation{"i386_kernel", Machine::i386, "gcc", "-m32",
                                "-O2 -mregparm=3 -freg-struct-return -msoft-float -mpreferred-stack-boundary=2", true}),
    [](const auto& made) { return made.param.name; });

}  // namespace
}  // namespace usdt::resolve
