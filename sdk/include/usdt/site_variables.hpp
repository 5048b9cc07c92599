// SPDX-License-Identifier: BSD-2-Clause
// The variables in scope at USDT sites, from debug information: site_variables() lists them, typed and with their
// places, as if they were arguments. usdt-list shows them. Threads: any; the file is only read.
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

/// Lists the parameters and local variables in scope at each of `sites` of `file`, by its debug information (its own,
/// or a separate file's): how they are declared, and where each is just then. Returns a list for each site, in their
/// order; it is empty if nothing is known about the site. Errors: not_found (no debug information), not_supported,
/// malformed, limit, stopped.
[[nodiscard]] Result<std::vector<std::vector<Arg>>> site_variables(const ElfFile& file, std::span<const Site> sites,
                                                                   const StopToken& stop = {});

}  // namespace v1
}  // namespace usdt
