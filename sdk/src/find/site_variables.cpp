// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/site_variables.hpp"

#include <utility>

#include "base/try.hpp"
#include "dwarf/debug_info.hpp"
#include "dwarf/running.hpp"
#include "locate/signature.hpp"

namespace usdt {
namespace {

std::vector<Arg> variables_at(const dwarf::DebugInfo& debug, const locate::Signatures& signatures, VirtAddr pc) {
  const auto function = dwarf::function_around(debug, pc);
  if (!function || function->instances.empty() || function->go) return {};
  const auto running = dwarf::functions_at(debug, pc);
  const std::uint32_t line = running.empty() ? 0 : running.front().line.line;
  auto signature = signatures.with_variables(*function, function->instances.front(), line);
  return signature ? std::move(signature->args) : std::vector<Arg>();
}

}  // namespace

inline namespace v1 {

Result<std::vector<std::vector<Arg>>> site_variables(const ElfFile& file, std::span<const Site> sites,
                                                     const StopToken& stop) {
  const auto debug = TRY(dwarf::DebugInfo::open(file, stop));
  const locate::Signatures signatures(debug);
  std::vector<std::vector<Arg>> all;
  for (const Site& site : sites) {
    if (stop.stop_requested()) return fail(ErrorKind::stopped, "the variables at sites were not all read");
    all.push_back(variables_at(debug, signatures, site.pc_adjusted));
  }
  return all;
}

}  // namespace v1
}  // namespace usdt
