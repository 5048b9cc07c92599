// SPDX-License-Identifier: BSD-2-Clause
#include "plan/placement.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace usdt::plan {
namespace {

std::string no_offset_reason(const Site& site, const ElfFile& file) {
  if (!site.member.empty()) {
    return fmt::format("in archive member {}: attach to the program that is linked from it", site.member);
  }
  if (file.kind() == ElfKind::relocatable) return "in an object file: attach to the program that is linked from it";
  if (file.kind() == ElfKind::debug) return "in a separate debug file, which holds no code: attach to the file itself";
  return fmt::format("address {:#x} is in no executable segment", site.pc_adjusted.value);
}

/// The breakpoint of a 5-byte nop becomes a call on Linux 6.18, which writes below the stack pointer. That is safe
/// only where the stack pointer was moved past the red zone just before: `lea -128(%rsp),%rsp`.
bool red_zone_is_guarded(FileOffset offset, const ElfFile& file) {
  constexpr std::array<std::uint8_t, 5> kGuard = {0x48, 0x8d, 0x64, 0x24, 0x80};
  if (offset.value < kGuard.size()) return false;
  std::array<std::uint8_t, kGuard.size()> before{};
  const auto start = static_cast<off_t>(offset.value - kGuard.size());
  return pread(file.fd(), before.data(), before.size(), start) == static_cast<ssize_t>(before.size()) &&
         before == kGuard;
}

/// The kernel rewrites a nop10 only within one page; pages of the file and of memory coincide.
bool nop10_fits_page(FileOffset offset) {
  constexpr std::uint64_t kPage = 4096;
  constexpr std::uint64_t kNop10 = 10;
  return offset.value % kPage + kNop10 <= kPage;
}

bool nop10_is_optimised(FileOffset offset, const PlanOptions& options) {
  return options.nops == NopOptimisation::nop10 && nop10_fits_page(offset);
}

/// What x86 uprobes refuse (is_prefix_bad() and is_trap_insn(), arch/x86/kernel/uprobes.c and kernel/events/uprobes.c):
/// segment and lock prefixes, and int3. Should no process have the file mapped when a probe is registered, the kernel
/// finds out only when one maps it, and then tells nobody: the probe would never fire.
bool kernel_refuses(const SiteBytes& bytes) {
  for (std::size_t i = 0; i < bytes.size; ++i) {
    switch (bytes.data[i]) {
      case 0x26:  // es
      case 0x2e:  // cs, as in nop10
      case 0x36:  // ss
      case 0x3e:  // ds
      case 0xf0:  // lock
        return true;
      case 0x66:  // operand size
      case 0x67:  // address size
      case 0xf2:  // repne
      case 0xf3:  // rep
        break;
      default:
        return i == 0 && bytes.data[0] == 0xcc;
    }
  }
  return false;
}

}  // namespace

tl::expected<Placement, std::string> place(const Site& site, const ElfFile& file, const PlanOptions& options) {
  if (!site.offset) return tl::unexpected(no_offset_reason(site, file));
  if (site.has_semaphore && !site.semaphore_offset) {
    return tl::unexpected(fmt::format("its semaphore at {:#x} is in no writable segment, so that it cannot be enabled",
                                      site.semaphore_adjusted.value));
  }
  Placement placement{.offset = *site.offset};
  if (site.semaphore_offset) placement.semaphore = site.semaphore_offset->value;
  if (file.machine() == Machine::aarch64) return placement;

  const bool bare_nop10 = site.site_class == SiteClass::nop10 && nop10_is_optimised(*site.offset, options);
  if (kernel_refuses(site.bytes) && !bare_nop10) {
    return tl::unexpected(
        fmt::format("this kernel takes no probe on the instruction there ({:02x})",
                    fmt::join(site.bytes.data.begin(), site.bytes.data.begin() + site.bytes.size, " ")));
  }
  if (file.machine() != Machine::x86_64) return placement;

  if (site.site_class == SiteClass::nop5 && options.nops == NopOptimisation::nop5 && !options.allow_unsafe_nop5 &&
      !red_zone_is_guarded(*site.offset, file)) {
    return tl::unexpected(
        std::string("a bare 5-byte nop: this kernel would turn it into a call that overwrites the "
                    "program's red zone below the stack pointer"));
  }
  const FileOffset nop10 = *site.offset + 1;
  if (site.site_class == SiteClass::nop_nop10 && nop10_is_optimised(nop10, options)) {
    placement.offset = nop10;
    placement.shift = 1;
  }
  return placement;
}

}  // namespace usdt::plan
