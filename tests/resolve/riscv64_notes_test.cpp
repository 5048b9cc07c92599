// SPDX-License-Identifier: BSD-2-Clause
// Notes of programs that were compiled for riscv64, judged by readelf; and what their operands mean, judged by writing
// each anew.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <variant>

#include "elf/readelf.hpp"
#include "elf/toolchain.hpp"
#include "usdt/decode.hpp"

namespace usdt {
namespace {

constexpr std::string_view kProgram = R"(
#include <sys/sdt.h>
struct item { int a; long b; char c; };
__attribute__((noinline)) long passed(int a, long b, const char* c, unsigned char d, struct item* s) {
  DTRACE_PROBE5(demo, passed, a, b, c, d, s);
  DTRACE_PROBE3(demo, members, s->a, s->b, s->c);
  DTRACE_PROBE2(demo, constants, 42, -7);
  return a + b;
}
__attribute__((noinline)) double floats(double x, float y) {
  DTRACE_PROBE2(demo, floats, x, y);
  return x;
}
void start(void) {
  struct item s = {1, 2, 3};
  passed(1, 2, "x", 3, &s);
  floats(1, 2);
  DTRACE_PROBE(demo, none);
}
)";

/// A compiler, and operands that it can write.
struct Compilation {
  std::string_view name;
  std::string_view command;
};

constexpr std::string_view kClang = "clang --target=riscv64-linux-gnu -fuse-ld=lld";

const std::array compilations{
    Compilation{"gcc_O0", "riscv64-linux-gnu-gcc -O0"},
    Compilation{"gcc_O2", "riscv64-linux-gnu-gcc -O2"},
    // Clang 14 knows no "o" of this machine, which is sys/sdt.h's usual constraint.
    Compilation{"clang_memory_O0", "{clang} -O0 -DSTAP_SDT_ARG_CONSTRAINT=nmr"},
    Compilation{"clang_memory_O2", "{clang} -O2 -DSTAP_SDT_ARG_CONSTRAINT=nmr"},
    Compilation{"clang_registers_O2", "{clang} -O2 -DSTAP_SDT_ARG_CONSTRAINT=nr"},
};

class NotesOfRiscv64 : public testing::TestWithParam<std::size_t> {};

TEST_P(NotesOfRiscv64, are_those_of_readelf_and_mean_what_they_say) {
  const test::TempDir dir;
  dir.write("prog.c", kProgram);
  const std::string compiler =
      fmt::format(fmt::runtime(compilations.at(GetParam()).command), fmt::arg("clang", kClang));
  const auto built = test::run_in(
      dir,
      fmt::format("{} -nostdlib -static -ffreestanding -Wl,-e,start -idirafter /usr/include/$(cc -print-multiarch) "
                  "prog.c -o prog",
                  compiler));
  if (built.status != 0) GTEST_SKIP() << "no program for riscv64 by " << compiler;
  const ScanResult scan = test::scan_file(dir / "prog");
  EXPECT_EQ(test::notes_by_scan(scan), test::notes_by_readelf(dir, dir / "prog"));
  EXPECT_EQ(scan.sites.size(), 5U);
  const ArgDecoder decoder(Machine::riscv64);
  std::size_t constants = 0, others = 0;
  for (const Site& site : scan.sites) {
    EXPECT_EQ(site.bytes.data[0] | site.bytes.data[1] << 8, 1) << site.name << ": c.nop";
    EXPECT_EQ(site.site_class, SiteClass::single_step) << "the kernel simulates no nop of riscv64";
    for (const Arg& arg : decoder.decode(site)) {
      EXPECT_EQ(arg.why_unreadable(), "") << arg.source;
      const std::string written = arg.source.substr(arg.source.find('@') + 1);
      const bool constant = std::holds_alternative<Constant>(arg.location);
      if (!constant) {
        EXPECT_EQ(location_text(arg.location, Machine::riscv64), written);
      }
      ++(constant ? constants : others);
    }
  }
  EXPECT_EQ(constants, 2U);
  EXPECT_EQ(others, 10U);
}

INSTANTIATE_TEST_SUITE_P(Compilers, NotesOfRiscv64, testing::Range<std::size_t>(0, compilations.size()),
                         [](const auto& instance) { return std::string(compilations.at(instance.param).name); });

}  // namespace
}  // namespace usdt
