// SPDX-License-Identifier: BSD-2-Clause
// What providers say of their sites beside the stapsdt notes: notes of owner "usdt" in sections that are not loaded
// (docs/provider-note.md). Every length in them is somebody's claim, too.
#pragma once

#include <stop_token>
#include <vector>

#include "elf/elf_impl.hpp"

namespace usdt::elf {

/// Gives `sites`, which are those of `image`, the descriptions that its notes have of them. Two notes that say
/// different things of one site, or of one probe, say nothing. Nothing in relocatable objects, where sites have no
/// addresses yet.
void add_descriptions(const File& file, const Image& image, std::span<Site> sites, Warnings& warnings,
                      const std::stop_token& stop);

}  // namespace usdt::elf
