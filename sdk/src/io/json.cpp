// SPDX-License-Identifier: BSD-2-Clause
#include "io/json.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <string>

namespace usdt::io {
namespace {

// The writer has written the text when it returns; cppcheck, which has no header of RapidJSON, takes it for kept.
void put(JsonWriter& json, std::string_view text) {
  // cppcheck-suppress invalidLifetime
  json.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

}  // namespace

void json_key(JsonWriter& json, std::string_view name) {
  json.Key(name.data(), static_cast<rapidjson::SizeType>(name.size()));
}

void json_text(JsonWriter& json, std::string_view text) { put(json, text); }

void json_text_or_null(JsonWriter& json, std::string_view text) {
  if (text.empty()) {
    json.Null();
  } else {
    json_text(json, text);
  }
}

void json_hex(JsonWriter& json, std::uint64_t value) {
  std::array<char, 18> text{'0', 'x'};  // and 16 digits
  const auto end = std::to_chars(text.data() + 2, text.data() + text.size(), value, 16).ptr;
  put(json, {text.data(), static_cast<std::size_t>(end - text.data())});
}

void json_real(JsonWriter& json, double value) {
  if (std::isfinite(value))
    json.Double(value);
  else
    json_text(json, std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

}  // namespace usdt::io
