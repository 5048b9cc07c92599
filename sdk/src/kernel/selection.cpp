// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/selection.hpp"

#include <algorithm>
#include <new>
#include <set>
#include <tuple>
#include <utility>

#include "base/no_memory.hpp"
#include "base/try.hpp"
#include "kernel/match.hpp"

namespace usdt::kernel {

Result<KernelSelection> select_from(const Sources& sources, const std::vector<KernelPattern>& patterns,
                                    bool skip_unknown) try {
  if (patterns.empty()) return fail(ErrorKind::invalid_argument, "no patterns of kernel functions");
  auto catalogue = TRY(Catalogue::load(sources, patterns));
  KernelSelection out;
  CatalogueOf::set(out, catalogue);
  out.missing.assign(catalogue->missing().begin(), catalogue->missing().end());
  std::set<std::tuple<KernelFamily, Moment, const KernelFunction*>> taken;
  std::set<std::tuple<KernelFamily, Moment, std::string, std::string>> refused;
  for (std::uint32_t i = 0; i < patterns.size(); ++i) {
    auto meant = match(*catalogue, patterns[i]);
    if (!meant && skip_unknown && meant.error().kind == ErrorKind::not_found) {
      out.unknown.push_back(meant.error().message);
      if (out.unknown.size() < patterns.size()) continue;
    }
    if (!meant) return fail(meant.error());
    const KernelKind kind = patterns[i].kind;
    for (const KernelFunction* function : meant->functions) {
      if (taken.emplace(kind.family, kind.moment, function).second) out.entries.push_back({kind, function, i});
    }
    for (RefusedFunction& function : meant->refused) {
      if (refused.emplace(kind.family, kind.moment, function.module, function.name).second)
        out.refused.push_back(std::move(function));
    }
  }
  return out;
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

}  // namespace usdt::kernel
