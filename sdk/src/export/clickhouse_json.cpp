// SPDX-License-Identifier: BSD-2-Clause
#include "export/clickhouse_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "export/clickhouse_binary.hpp"

namespace usdt::exports::clickhouse {
namespace {

/// Takes values from the front of bytes; where they end too early all is 0, and ok() says so.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  [[nodiscard]] bool is_empty() const noexcept { return rest_.empty(); }
  [[nodiscard]] bool ok() const noexcept { return ok_; }

  template <class Number>
  Number number() {
    Number number{};
    const std::string_view bytes = take(sizeof(number));
    if (ok_) std::memcpy(&number, bytes.data(), sizeof(number));
    return number;
  }

  /// Each value of an array or a map has a byte or more.
  std::size_t count() {
    const std::size_t count = length();
    if (count > rest_.size()) ok_ = false;
    return ok_ ? count : 0;
  }
  std::string_view text() { return take(length()); }

 private:
  std::size_t length() {
    std::size_t length = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
      const auto byte = number<std::uint8_t>();
      length |= std::size_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return length;
    }
    ok_ = false;
    return 0;
  }

  std::string_view take(std::size_t size) {
    if (size > rest_.size()) ok_ = false;
    if (!ok_) return {};
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  bool ok_ = true;
};

/// Texts are UTF-8: quotes, backslashes and control characters alone need an escape (RFC 8259, section 7).
void append_text(std::string& json, std::string_view text) {
  const auto needs_escape = [](char c) { return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20; };
  json += '"';
  for (auto at = text.begin(); at != text.end();) {
    const auto next = std::find_if(at, text.end(), needs_escape);
    json.append(at, next);
    if (next == text.end()) break;
    if (static_cast<unsigned char>(*next) < 0x20)
      json += fmt::format("\\u{:04x}", static_cast<unsigned>(*next));
    else
      json.append({'\\', *next});
    at = next + 1;
  }
  json += '"';
}

/// Appends a value as JSON.
using AppendValue = void (*)(Reader& in, std::string& json);

template <class Number>
void append_number(Reader& in, std::string& json) {
  const auto number = in.number<Number>();
  if constexpr (std::is_floating_point_v<Number>) {
    if (std::isfinite(number))
      json += fmt::format("{}", number);
    else
      json += std::isnan(number) ? "\"nan\"" : number > 0 ? "\"inf\"" : "\"-inf\"";
  } else {
    const fmt::format_int digits(number);
    json.append(digits.data(), digits.size());
  }
}

void append_label(Reader& in, std::string& json) { append_text(json, in.text()); }

void append_bool(Reader& in, std::string& json) { json += in.number<std::uint8_t>() != 0 ? "true" : "false"; }

void append_kind(Reader& in, std::string& json) {
  constexpr std::array<std::string_view, 3> kNames{"\"hit\"", "\"span\"", "\"in_flight\""};
  json += kNames[std::min<std::size_t>(in.number<std::uint8_t>(), kNames.size() - 1)];
}

template <AppendValue append_value>
void append_nullable(Reader& in, std::string& json) {
  in.number<std::uint8_t>() != 0 ? void(json += "null") : append_value(in, json);
}

template <AppendValue append_value>
void append_array(Reader& in, std::string& json) {
  const std::size_t count = in.count();
  json += '[';
  for (std::size_t n = 0; n < count; ++n) {
    if (n > 0) json += ',';
    append_value(in, json);
  }
  json += ']';
}

template <AppendValue append_value>
void append_map(Reader& in, std::string& json) {
  const std::size_t count = in.count();
  json += '{';
  for (std::size_t n = 0; n < count; ++n) {
    if (n > 0) json += ',';
    append_label(in, json);
    json += ':';
    append_value(in, json);
  }
  json += '}';
}

struct TypeRow {
  std::string_view name;
  AppendValue append;
};
constexpr std::array kTypes{
    TypeRow{kTypeName<bool>, append_bool},
    TypeRow{kTypeName<std::uint8_t>, append_number<std::uint8_t>},
    TypeRow{kTypeName<std::uint16_t>, append_number<std::uint16_t>},
    TypeRow{kTypeName<std::uint32_t>, append_number<std::uint32_t>},
    TypeRow{kTypeName<std::uint64_t>, append_number<std::uint64_t>},
    TypeRow{kTypeName<float>, append_number<float>},
    TypeRow{kTypeName<Time>, append_number<std::int64_t>},
    TypeRow{kTypeName<Kind>, append_kind},
    TypeRow{kTypeName<Label>, append_label},
    TypeRow{kTypeName<std::optional<double>>, append_nullable<append_number<double>>},
    TypeRow{kTypeName<std::optional<std::uint64_t>>, append_nullable<append_number<std::uint64_t>>},
    TypeRow{kTypeName<Array<Label>>, append_array<append_label>},
    TypeRow{kTypeName<Array<std::int32_t>>, append_array<append_number<std::int32_t>>},
    TypeRow{kTypeName<Array<std::uint64_t>>, append_array<append_number<std::uint64_t>>},
    TypeRow{kTypeName<Array<double>>, append_array<append_number<double>>},
    TypeRow{kTypeName<Map<std::int64_t>>, append_map<append_number<std::int64_t>>},
    TypeRow{kTypeName<Map<FreeText>>, append_map<append_label>},
};

struct Column {
  std::string key = {};  ///< "time":
  AppendValue append = nullptr;
};

/// Reads the header. Nothing: it is none of ours.
std::optional<std::vector<Column>> read_header(Reader& in) {
  constexpr std::size_t kMostColumns = 256;
  const std::size_t count = in.count();
  if (count > kMostColumns) return std::nullopt;
  std::vector<Column> columns(count);
  for (Column& column : columns) {
    append_text(column.key, in.text());
    column.key += ':';
  }
  for (Column& column : columns) {
    const auto found = std::ranges::find(kTypes, in.text(), &TypeRow::name);
    if (found == kTypes.end()) return std::nullopt;
    column.append = found->append;
  }
  return in.ok() && !columns.empty() ? std::optional(std::move(columns)) : std::nullopt;
}

void append_row(const std::vector<Column>& columns, Reader& in, std::string& json) {
  json += '{';
  for (const Column& column : columns) {
    if (json.back() != '{') json += ',';
    json += column.key;
    column.append(in, json);
  }
  json += "}\n";
}

}  // namespace

Result<std::string> json_rows(std::string_view rows) {
  Reader in(rows);
  const auto columns = read_header(in);
  std::string json;
  json.reserve(rows.size() * 2);
  while (columns && in.ok() && !in.is_empty()) append_row(*columns, in, json);
  if (!columns || !in.ok()) return fail(ErrorKind::malformed, "these are no rows in RowBinary");
  return json;
}

}  // namespace usdt::exports::clickhouse
