// SPDX-License-Identifier: BSD-2-Clause
#include "plan/placement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include "arch/arch.hpp"
#include "elf/elf_impl.hpp"

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

/// The kernel rewrites a nop only within one page; pages of the file and of memory coincide.
bool fits_page(FileOffset offset, std::uint64_t size) {
  constexpr std::uint64_t kPage = 4096;
  return offset.value % kPage + size <= kPage;
}

bool nop10_is_optimised(FileOffset offset, const KernelFacts& kernel) {
  return kernel.nops == NopOptimisation::nop10 && fits_page(offset, 10);
}

/// Linux 6.18 makes a call of every nop of 5 bytes, not only of the usual 0f 1f 44 00 00: 66 0f 1f 40 00 and
/// 66 66 66 66 90 too. The call writes below the stack pointer (measured on 6.18.44: red zone overwritten in 999 of
/// 1000 calls), and it leads to a page that children of the process do not inherit: the call they do, and die of it
/// (SIGSEGV in each, same kernel). So no code around the nop makes it safe.
bool is_nop5(const Site& site, const arch::Nop& nop) { return site.site_class == SiteClass::nop5 || nop.size == 5; }

/// Moves the breakpoint to the nop that this kernel makes a safe call of.
tl::expected<Placement, std::string> place_on_nop(Placement placement, const Site& site, const arch::Nop& nop,
                                                  const KernelFacts& kernel, const PlanOptions& options) {
  const FileOffset at = *site.offset;
  if (kernel.nops == NopOptimisation::nop5 && is_nop5(site, nop)) {
    if (!options.allow_unsafe_nop5) {
      return tl::unexpected(
          std::string("a bare 5-byte nop: this kernel would turn it into a call that overwrites the program's red zone "
                      "below the stack pointer, and that children of the program die of"));
    }
    placement.optimised = fits_page(at, 5);
  }
  if (site.site_class == SiteClass::nop10) placement.optimised = nop10_is_optimised(at, kernel);
  if (site.site_class == SiteClass::nop_nop10 && nop10_is_optimised(at + 1, kernel)) {
    placement.offset = at + 1;
    placement.shift = 1;
    placement.optimised = true;
  }
  return placement;
}

}  // namespace

tl::expected<Placement, std::string> place(const Site& site, const ElfFile& file, const KernelFacts& kernel,
                                           const PlanOptions& options) {
  if (!site.offset) return tl::unexpected(no_offset_reason(site, file));
  if (site.has_semaphore && !site.semaphore_offset) {
    return tl::unexpected(fmt::format("its semaphore at {:#x} is in no writable segment, so that it cannot be enabled",
                                      site.semaphore_adjusted.value));
  }
  Placement placement{.offset = *site.offset};
  if (site.semaphore_offset) placement.semaphore = site.semaphore_offset->value;
  if (elf::code_is_writable(elf::Inside::of(file)->image, site.pc_adjusted)) {
    return tl::unexpected(std::string("in a segment that is writable, where the kernel puts no breakpoints"));
  }
  const bool bare_nop10 = site.site_class == SiteClass::nop10 && nop10_is_optimised(*site.offset, kernel);
  const std::span bytes(site.bytes.data.data(), site.bytes.size);
  if (const auto refusal = arch::uprobe_refusal(file.machine(), bytes); !refusal.empty() && !bare_nop10) {
    return tl::unexpected(
        fmt::format("no probe can be on the instruction there ({:02x}): {}", fmt::join(bytes, " "), refusal));
  }
  const arch::Nop nop = arch::nop_at(file.machine(), bytes);
  placement.long_nop = site.site_class == SiteClass::nop5 || bare_nop10 || nop.is_long;
  return arch::for_machine(file.machine()).kernel.rewrites_nops ? place_on_nop(placement, site, nop, kernel, options)
                                                                : placement;
}

}  // namespace usdt::plan
