// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <utility>

#include "usdt/probe_file.hpp"

namespace usdt {

Result<ProbeFile> find_probes(const TargetFile& target, const std::vector<PointPattern>& patterns,
                              const OpenOptions& options) {
  Result<ElfFile> elf = ElfFile::open(target.access, options);
  if (!elf) return fail(std::move(elf.error()));
  Result<ScanResult> scanned = elf->scan();
  if (!scanned) return fail(std::move(scanned.error()));

  std::vector<Site>& sites = scanned->sites;
  if (!patterns.empty()) {
    std::erase_if(sites, [&patterns](const Site& site) {
      return std::ranges::none_of(patterns, [&site](const PointPattern& pattern) {
        const auto* probe = std::get_if<ProbePattern>(&pattern);
        return probe && probe->matches(site.provider, site.name);
      });
    });
  }
  return ProbeFile{.target = target,
                   .elf = std::make_shared<const ElfFile>(std::move(*elf)),
                   .sites = std::move(sites),
                   .warnings = std::move(scanned->warnings)};
}

}  // namespace usdt
