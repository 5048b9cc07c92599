// SPDX-License-Identifier: BSD-2-Clause
#include "common/built_in_presets.hpp"

#include "preset_texts.hpp"

namespace usdt::tools {

std::span<const std::pair<std::string_view, std::string_view>> built_in_presets() noexcept { return kPresetTexts; }

}  // namespace usdt::tools
