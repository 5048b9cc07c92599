// SPDX-License-Identifier: BSD-2-Clause
// Writer of every JSON line of the tools.
#pragma once

#ifdef __SSE2__
#define RAPIDJSON_SSE2  // sixteen characters at a time are searched for what must be escaped
#endif
// RapidJSON 1.1 adds to null pointers while a stack of its own is empty: it is not sanitized, code that includes this
// is.
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("pointer-overflow"))), apply_to = function)
#endif
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#ifdef __clang__
#pragma clang attribute pop
#endif

#include <cstdint>
#include <string_view>

namespace usdt::io {

using JsonWriter = rapidjson::Writer<rapidjson::StringBuffer>;

void json_key(JsonWriter& json, std::string_view name);
/// A string of any bytes: Stream::json() replaces what is not UTF-8.
void json_text(JsonWriter& json, std::string_view text);
/// Writes `text`, or null where it is empty.
void json_text_or_null(JsonWriter& json, std::string_view text);
/// An address or offset as the contract writes them: "0x1f40".
void json_hex(JsonWriter& json, std::uint64_t value);
/// A number, or "NaN", "Infinity", "-Infinity": JSON has no word for these three.
void json_real(JsonWriter& json, double value);

}  // namespace usdt::io
