// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/catalogue.hpp"

#include <algorithm>

#include "kernel/names.hpp"
#include "kernel/read_tracepoints.hpp"

namespace usdt::kernel {

Result<std::shared_ptr<const Catalogue>> Catalogue::load(const Sources& sources,
                                                         std::span<const KernelPattern> patterns) {
  const std::shared_ptr<Catalogue> made(new Catalogue(sources));
  const auto names_tracepoint = [](const KernelPattern& pattern) { return is_tracepoint(pattern); };
  const bool tracepoints = patterns.empty() || std::ranges::any_of(patterns, names_tracepoint);
  const bool functions = patterns.empty() || !std::ranges::all_of(patterns, names_tracepoint);
  if (const auto types = made->types_.load(); !types)
    made->texts_.miss(types.error(), "a kernel without CONFIG_DEBUG_INFO_BTF has no types");
  if (functions) made->functions_ = read_functions(made->texts_, made->types_, patterns);
  if (tracepoints) made->tracepoints_ = read_tracepoints(made->texts_, made->types_, patterns);
  if (!made->lists_functions() && made->tracepoints_.empty())
    return fail(made->unusable(functions ? "the kernel's functions" : "the kernel's raw tracepoints"));
  return made;
}

}  // namespace usdt::kernel
