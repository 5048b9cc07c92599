// SPDX-License-Identifier: BSD-2-Clause
// Tables with texts as keys, in which views of texts are looked up without being copied.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace usdt::exports {

struct TextHash : std::hash<std::string_view> {
  using is_transparent = void;
};

template <class Value>
using TextTable = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

}  // namespace usdt::exports
