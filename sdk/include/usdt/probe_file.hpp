// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <memory>
#include <vector>

#include "usdt/discover.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/pattern.hpp"
#include "usdt/probe.hpp"
#include "usdt/result.hpp"

namespace usdt {

/// One scanned file with the sites asked for.
struct ProbeFile {
  TargetFile target;
  std::shared_ptr<const ElfFile> elf;
  std::vector<Site> sites;
  std::vector<ScanWarning> warnings;
};

/// Scans `target` and keeps the sites that one of `patterns` matches by provider and name (all if there are none).
[[nodiscard]] Result<ProbeFile> find_probes(const TargetFile& target, const std::vector<PointPattern>& patterns,
                                            const OpenOptions& options = {});

}  // namespace usdt
