# SPDX-License-Identifier: BSD-2-Clause
# Turns the TOML files FILES into the header HEADER with kPresetTexts: names and texts.
set(rows "")
list(SORT FILES)
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND rows "    {\"${name}\", R\"TOML(${text})TOML\"},\n")
endforeach()
list(LENGTH FILES count)
file(WRITE ${HEADER} "// Generated from tools/presets; do not edit.
#pragma once
#include <array>
#include <string_view>
#include <utility>

inline constexpr std::array<std::pair<std::string_view, std::string_view>, ${count}> kPresetTexts{{
${rows}}};
")
