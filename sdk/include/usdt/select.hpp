// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/pattern.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"

namespace usdt {

/// Where patterns without a target look for probes. At most one is set; neither: the files of every running process.
struct SearchScope {
  std::optional<pid_t> pid;                      ///< the files this process has mapped
  std::optional<std::filesystem::path> program;  ///< this program and the libraries it needs
};

/// The full name of a probe, "usdt:PATH:PROVIDER:NAME", which ProbePattern::parse() takes for exactly this probe. PATH
/// is what opens the file: below /proc for deleted files and those of other mount namespaces.
[[nodiscard]] std::string probe_name(const TargetFile& file, std::string_view provider, std::string_view name);

struct Selection {
  std::vector<ProbeFile> files;     ///< with the matching sites only; files without any are left out
  std::vector<Error> unreadable;    ///< files named by a pattern or mapped that could not be read
  std::vector<std::string> looked;  ///< what was searched, for a message when nothing matched
};

/// Finds the probes `patterns` mean, each inode once whatever the number of patterns. With a pid, a pattern's target is
/// looked for among the files of the process first (by path, file name or glob), so that it works across mount
/// namespaces and for deleted files. not_found when nothing matches, saying what was searched and which providers are
/// there.
[[nodiscard]] Result<Selection> select_probes(const std::vector<ProbePattern>& patterns, const SearchScope& scope = {});

}  // namespace usdt
