// SPDX-License-Identifier: BSD-2-Clause
// Links in the BPF file system (bpf(2): BPF_OBJ_PIN, BPF_OBJ_GET; links since 5.7): one file each, called
// NUMBER-BACKEND-SITES-CARRIER, in a directory of their own. The kernel could tell the sites of few kinds of links, and
// not which of two links ends the calls the other one begins. Private to attach/link.
#pragma once

#include <filesystem>

#include "link/kernel_links.hpp"
#include "usdt/carrier.hpp"
#include "usdt/result.hpp"

namespace usdt::backends {

/// Links that were opened from pins.
struct PinnedLinks {
  KernelLinks links = {};
  Carrier carrier = Carrier::automatic;
};

/// Makes the directory and pins the links there (Link::pin()); they then know where they are pinned.
[[nodiscard]] Result<void> pin_links(KernelLinks& links, Carrier carrier, const std::filesystem::path& directory);
/// Opens what pin_links() left (Link::open()).
[[nodiscard]] Result<PinnedLinks> open_pins(const std::filesystem::path& directory);
/// Removes the pins and the directory (Link::unpin()).
[[nodiscard]] Result<void> remove_pins(const std::filesystem::path& directory);

}  // namespace usdt::backends
