// SPDX-License-Identifier: BSD-2-Clause
// Decides where the breakpoint of a site goes, or says why none may. Private to plan/.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>

#include "usdt/plan.hpp"

namespace usdt::plan {

struct Placement {
  FileOffset offset;
  std::uint64_t semaphore = 0;  ///< file offset, 0: none
  std::uint8_t shift = 0;       ///< bytes from the site to the breakpoint: to the nop that this kernel makes a call of
  bool optimised = false;       ///< the kernel will turn the breakpoint into a call
  bool long_nop = false;        ///< the breakpoint is on an x86 nop of the 0f 1f kind
};

/// The unexpected value is the reason of SkippedSite.
[[nodiscard]] tl::expected<Placement, std::string> place(const Site& site, const ElfFile& file,
                                                         const KernelFacts& kernel, const PlanOptions& options);

}  // namespace usdt::plan
