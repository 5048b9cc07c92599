// SPDX-License-Identifier: BSD-2-Clause
// One file through all that is pure: scan, plan, carriers. For files that nobody vouches for.
#pragma once

#include <cstdint>
#include <string>

namespace usdt::test {

/// How far a file came.
struct PipelineRun {
  std::size_t sites = 0;    ///< in its notes
  std::size_t planned = 0;  ///< of them, those that could be attached
  std::string error;        ///< why there is no plan; empty: there is
};

/// Runs the file at `path` through every stage, as `variant` says: which kernel, which texts, whose user cookies, which
/// carrier. What the stages promise each other is checked on the way; a broken promise ends the program (abort()).
[[nodiscard]] PipelineRun run_pipeline(const std::string& path, std::uint32_t variant);

}  // namespace usdt::test
