// SPDX-License-Identifier: BSD-2-Clause
// Values of columns as ClickHouse's format RowBinary has them (clickhouse.com/docs/reference/formats/RowBinary):
// numbers with their lowest byte first, before each text, array and map its length as unsigned LEB128, before what may
// be NULL a byte that is 1 if it is. Values of LowCardinality(T) are those of T.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace usdt::exports::clickhouse {

/// A time of day, in ns since 1970.
struct Time {
  std::int64_t ns = 0;
};

/// A row of usdt_events is of one of these.
enum class Kind : std::uint8_t { hit, span, in_flight };

/// A text of a column of few values. It is UTF-8 (io::valid_utf8), as all texts are.
struct Label {
  std::string_view text = {};
};

/// A text of a column of many.
struct FreeText {
  std::string_view text = {};
};

/// Appends a number by which RowBinary says how long something is.
inline void append_length(std::string& out, std::size_t length) {
  for (; length >= 0x80; length >>= 7U) out += static_cast<char>(length | 0x80);
  out += static_cast<char>(length);
}

template <class Number>
requires std::is_arithmetic_v<Number>
void append(std::string& out, Number number) {
  static_assert(std::endian::native == std::endian::little);
  out.append(reinterpret_cast<const char*>(&number), sizeof(number));
}
inline void append(std::string& out, Time time) { append(out, time.ns); }
inline void append(std::string& out, Kind kind) { append(out, static_cast<std::uint8_t>(kind)); }
inline void append(std::string& out, std::string_view text) { append_length(out, text.size()), out.append(text); }
inline void append(std::string& out, Label label) { append(out, label.text); }
inline void append(std::string& out, FreeText text) { append(out, text.text); }
template <class Value>
void append(std::string& out, const std::optional<Value>& value) {
  append(out, std::uint8_t{!value});
  if (value) append(out, *value);
}

/// Values one behind the other.
template <class Value>
class Array {
 public:
  void add(const Value& value) { ++count_, append(bytes_, value); }
  void clear() { count_ = 0, bytes_.clear(); }
  friend void append(std::string& out, const Array& array) {
    append_length(out, array.count_), out.append(array.bytes_);
  }

 private:
  std::size_t count_ = 0;
  std::string bytes_;
};

/// Values by name.
template <class Value>
class Map {
 public:
  void add(std::string_view name, const Value& value) { ++count_, append(bytes_, name), append(bytes_, value); }
  void clear() { count_ = 0, bytes_.clear(); }
  friend void append(std::string& out, const Map& map) { append_length(out, map.count_), out.append(map.bytes_); }

 private:
  std::size_t count_ = 0;
  std::string bytes_;
};

/// The name of the type that a column of such values has.
template <class Value>
inline constexpr std::string_view kTypeName = {};
template <>
inline constexpr std::string_view kTypeName<bool> = "Bool";
template <>
inline constexpr std::string_view kTypeName<std::uint8_t> = "UInt8";
template <>
inline constexpr std::string_view kTypeName<std::uint16_t> = "UInt16";
template <>
inline constexpr std::string_view kTypeName<std::uint32_t> = "UInt32";
template <>
inline constexpr std::string_view kTypeName<std::uint64_t> = "UInt64";
template <>
inline constexpr std::string_view kTypeName<float> = "Float32";
template <>
inline constexpr std::string_view kTypeName<Time> = "DateTime64(9, 'UTC')";
template <>
inline constexpr std::string_view kTypeName<Kind> = "Enum8('hit' = 0, 'span' = 1, 'in_flight' = 2)";
template <>
inline constexpr std::string_view kTypeName<Label> = "LowCardinality(String)";
template <>
inline constexpr std::string_view kTypeName<std::optional<double>> = "Nullable(Float64)";
template <>
inline constexpr std::string_view kTypeName<std::optional<std::uint64_t>> = "Nullable(UInt64)";
template <>
inline constexpr std::string_view kTypeName<Array<Label>> = "Array(LowCardinality(String))";
template <>
inline constexpr std::string_view kTypeName<Array<std::int32_t>> = "Array(Int32)";
template <>
inline constexpr std::string_view kTypeName<Array<std::uint64_t>> = "Array(UInt64)";
template <>
inline constexpr std::string_view kTypeName<Array<double>> = "Array(Float64)";
template <>
inline constexpr std::string_view kTypeName<Map<std::int64_t>> = "Map(LowCardinality(String), Int64)";
template <>
inline constexpr std::string_view kTypeName<Map<FreeText>> = "Map(LowCardinality(String), String)";

}  // namespace usdt::exports::clickhouse
