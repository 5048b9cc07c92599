// SPDX-License-Identifier: BSD-2-Clause
// The presets that the tools have inside: names, and texts of scripts. What is generated of their files lies in a
// directory of each build, which one source alone is told: all others are the same in each build, and the compiler's
// cache knows them.
#pragma once

#include <span>
#include <string_view>
#include <utility>

namespace usdt::tools {

[[nodiscard]] std::span<const std::pair<std::string_view, std::string_view>> built_in_presets() noexcept;

}  // namespace usdt::tools
