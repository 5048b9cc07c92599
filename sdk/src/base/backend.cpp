// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/backend.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace usdt {
namespace {

constexpr std::array<std::string_view, 10> kNames{"automatic",      "uprobe_multi", "perf_uprobe",   "kprobe_multi",
                                                  "kprobe_session", "perf_kprobe",  "tracing_multi", "tracing",
                                                  "raw_tp",         "tp_btf"};

}  // namespace

std::string_view to_string(Backend backend) noexcept { return kNames[static_cast<std::size_t>(backend)]; }

Result<Backend> backend_by_name(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found != kNames.end()) return static_cast<Backend>(found - kNames.begin());
  return fail(ErrorKind::not_found, fmt::format("no backend '{}': there are {}", name, fmt::join(kNames, ", ")));
}

}  // namespace usdt
