// SPDX-License-Identifier: BSD-2-Clause
#include "features/measured_code.hpp"

#include <link.h>

#include <cstdlib>

// A function each, whose first instruction has the breakpoint.
#define TRAPPED_FUNCTION(name, code)                                                                           \
  __asm__(".pushsection .text\n.balign 16\n.hidden " name "\n.globl " name "\n.type " name ",%function\n" name \
          ":\n" code "\nret\n.size " name ", .-" name "\n.popsection\n")

#if defined(__x86_64__)
TRAPPED_FUNCTION("usdt_trapped_nop", "nop");
TRAPPED_FUNCTION("usdt_trapped_emulated", "push %rbp\npop %rbp");
TRAPPED_FUNCTION("usdt_trapped_step", "xor %eax, %eax");
#elif defined(__i386__)
TRAPPED_FUNCTION("usdt_trapped_nop", "nop");
TRAPPED_FUNCTION("usdt_trapped_emulated", "push %ebp\npop %ebp");
TRAPPED_FUNCTION("usdt_trapped_step", "xor %eax, %eax");
#elif defined(__aarch64__)
TRAPPED_FUNCTION("usdt_trapped_nop", "nop");
TRAPPED_FUNCTION("usdt_trapped_emulated", "adr x0, .");
TRAPPED_FUNCTION("usdt_trapped_step", "mov x0, x1");
#elif defined(__riscv) && __riscv_xlen == 64
TRAPPED_FUNCTION("usdt_trapped_nop", "nop");
TRAPPED_FUNCTION("usdt_trapped_emulated", "auipc a0, 0");
TRAPPED_FUNCTION("usdt_trapped_step", "mv a0, a1");
#else
#error "no functions to have a breakpoint for this machine"
#endif

extern "C" {
[[gnu::visibility("hidden")]] void usdt_trapped_nop();
[[gnu::visibility("hidden")]] void usdt_trapped_emulated();
[[gnu::visibility("hidden")]] void usdt_trapped_step();
}

#if defined(__x86_64__)

// Sixteen locals at -8(%rsp) to -128(%rsp) hold seed + n before the nop and are compared behind it; nothing is pushed
// or called in between. The nop is aligned so that it is within a page and within what a kernel may write at once.
// clang-format off
#define RED_ZONE_FUNCTION(name, nop)                                                                            \
  __asm__(".pushsection .text\n.balign 16\n.hidden " name "\n.globl " name "\n.type " name ",@function\n" name ":\n" \
          ".set n, 0\n.rept 16\n lea n(%rdi), %rax\n mov %rax, -8-8*n(%rsp)\n .set n, n+1\n.endr\n"             \
          ".balign 16\n.hidden " name "_nop\n.globl " name "_nop\n" name "_nop: " nop "\nxor %eax, %eax\n"      \
          ".set n, 0\n.rept 16\n lea n(%rdi), %rcx\n xor %edx, %edx\n cmp %rcx, -8-8*n(%rsp)\n setne %dl\n"     \
          " add %rdx, %rax\n .set n, n+1\n.endr\n ret\n.size " name ", .-" name "\n.popsection\n")
// clang-format on

RED_ZONE_FUNCTION("usdt_red_zone_nop1", "nop");
RED_ZONE_FUNCTION("usdt_red_zone_nop5", ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00");
RED_ZONE_FUNCTION("usdt_red_zone_nop10", ".byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00");

extern "C" {
[[gnu::visibility("hidden")]] std::uint64_t usdt_red_zone_nop1(std::uint64_t seed);
[[gnu::visibility("hidden")]] std::uint64_t usdt_red_zone_nop5(std::uint64_t seed);
[[gnu::visibility("hidden")]] std::uint64_t usdt_red_zone_nop10(std::uint64_t seed);
[[gnu::visibility("hidden")]] extern const unsigned char usdt_red_zone_nop1_nop[];
[[gnu::visibility("hidden")]] extern const unsigned char usdt_red_zone_nop5_nop[];
[[gnu::visibility("hidden")]] extern const unsigned char usdt_red_zone_nop10_nop[];
}

#endif

namespace usdt::features {

TrappedFunction trapped_function(TrappedInstruction instruction) noexcept {
  switch (instruction) {
    case TrappedInstruction::nop:
      return usdt_trapped_nop;
    case TrappedInstruction::emulated:
      return usdt_trapped_emulated;
    case TrappedInstruction::single_step:
      return usdt_trapped_step;
  }
  return usdt_trapped_nop;
}

bool has_red_zone_code() noexcept { return red_zone_code(NopForm::nop).function != nullptr; }

RedZoneCode red_zone_code([[maybe_unused]] NopForm form) noexcept {
#if defined(__x86_64__)
  switch (form) {
    case NopForm::nop:
      return {usdt_red_zone_nop1, usdt_red_zone_nop1_nop, 1};
    case NopForm::nop5:
      return {usdt_red_zone_nop5, usdt_red_zone_nop5_nop, 5};
    case NopForm::nop10:
      return {usdt_red_zone_nop10, usdt_red_zone_nop10_nop, 10};
  }
#endif
  return {};
}

namespace {

struct Search {
  std::uintptr_t address;
  FilePlace found;
};

int look_into(dl_phdr_info* object, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const std::uintptr_t start = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || search.address < start || search.address >= start + segment.p_filesz) continue;
    // In dl_iterate_phdr(3) the main program has an empty name.
    search.found.path = *object->dlpi_name != '\0' ? object->dlpi_name : "/proc/self/exe";
    search.found.offset = search.address - start + segment.p_offset;
    return 1;
  }
  return 0;
}

}  // namespace

Result<FilePlace> file_place(const void* address) {
  Search search{reinterpret_cast<std::uintptr_t>(address), {}};
  if (::dl_iterate_phdr(look_into, &search) == 0)
    return fail(ErrorKind::not_found, "the code of the self-test is in no loaded file");
  return search.found;
}

}  // namespace usdt::features
