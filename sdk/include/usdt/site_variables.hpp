// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <span>
#include <vector>

#include "usdt/arg.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/probe.hpp"
#include "usdt/result.hpp"
#include "usdt/stop.hpp"

namespace usdt {
inline namespace v1 {

/// The parameters and local variables in scope at each of `sites` of `file`, by its debug information (its own, or a
/// separate file's): how they are declared, and where each is just then. Of a site about which nothing is known the
/// list is empty. Errors: not_found (no debug information), not_supported, malformed, limit, stopped.
[[nodiscard]] Result<std::vector<std::vector<Arg>>> site_variables(const ElfFile& file, std::span<const Site> sites,
                                                                   const StopToken& stop = {});

}  // namespace v1
}  // namespace usdt
