// SPDX-License-Identifier: BSD-2-Clause
#include "export/clickhouse_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "base/try.hpp"
#include "export/clickhouse_json.hpp"
#include "http/gzip.hpp"

namespace usdt::exports::clickhouse {
namespace {

constexpr std::string_view kCredentials =
    "a user and a password are not given in a URL, which others can see: set USDT_CLICKHOUSE_USER and "
    "USDT_CLICKHOUSE_PASSWORD in the environment";

constexpr std::string_view kSettings = "settings are NAME=VALUE&NAME=VALUE";

tl::unexpected<Error> wrong(std::string_view why) {
  return fail(ErrorKind::invalid_argument, fmt::format("of clickhouse=http://HOST:8123/DATABASE: {}", why));
}

/// Settings that came with 21.11, or before it. By the first two the server compares the names and types of columns
/// with those of the table, as it does by default; by the third an answer means that rows are stored.
constexpr std::string_view kNamesSetting = "input_format_with_names_use_header",
                           kTypesSetting = "input_format_with_types_use_header", kWaitSetting = "wait_for_async_insert";
constexpr std::string_view kRowBinary = "RowBinaryWithNamesAndTypes", kJsonLines = "JSONEachRow";

bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool is_name(std::string_view text) { return std::ranges::all_of(text, is_of_name); }

/// A value that needs no escapes, or has them.
bool is_value(std::string_view text) {
  return std::ranges::all_of(text,
                             [](char c) { return is_of_name(c) || c == '-' || c == '.' || c == '%' || c == ':'; });
}

Result<void> check_setting(std::string_view name, std::string_view value) {
  constexpr std::array<std::string_view, 5> kOurs{"query", "database", "default_format", "compress",
                                                  "wait_end_of_query"};
  if (name == "user" || name == "password") return wrong(kCredentials);
  if (name.empty() || !is_name(name) || !is_value(value)) return wrong(kSettings);
  if (std::ranges::find(kOurs, name) != kOurs.end()) return wrong(fmt::format("\"{}\" is no setting", name));
  if (name == "insert_deduplication_token" && !value.empty())
    return wrong("one insert_deduplication_token for all batches would have the server keep the first alone");
  if (name == kWaitSetting && value != "1")
    return wrong("without wait_for_async_insert=1 nobody learns of rows that the server does not take");
  if ((name == kNamesSetting || name == kTypesSetting) && value != "1")
    return wrong(fmt::format("without {}=1 nobody learns that a column has another type", name));
  return {};
}

/// Codes of exceptions (ClickHouse: src/Common/ErrorCodes.cpp) after which the same insertion may succeed. Most are
/// those of ClickHouse's own connector for Kafka, which is without its 3 (a body that was cut), 164 (a user may read
/// alone) and 1002 (anything).
struct PassingError {
  int code;
  bool may_have_it;  ///< the server, although it says so
};
constexpr std::array kPassing{
    PassingError{159, true},   // TIMEOUT_EXCEEDED
    PassingError{202, false},  // TOO_MANY_SIMULTANEOUS_QUERIES
    PassingError{203, false},  // NO_FREE_CONNECTION
    PassingError{209, true},   // SOCKET_TIMEOUT
    PassingError{210, true},   // NETWORK_ERROR
    PassingError{225, false},  // NO_ZOOKEEPER
    PassingError{236, true},   // ABORTED: it shuts down
    PassingError{241, false},  // MEMORY_LIMIT_EXCEEDED
    PassingError{242, false},  // TABLE_IS_READ_ONLY: a replica that has lost its Keeper
    PassingError{243, false},  // NOT_ENOUGH_SPACE
    PassingError{252, false},  // TOO_MANY_PARTS
    PassingError{279, false},  // ALL_CONNECTION_TRIES_FAILED
    PassingError{285, false},  // TOO_FEW_LIVE_REPLICAS
    PassingError{286, false},  // UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE
    PassingError{319, true},   // UNKNOWN_STATUS_OF_INSERT
    PassingError{425, true},   // SYSTEM_ERROR
    PassingError{439, false},  // CANNOT_SCHEDULE_TASK
    PassingError{745, false},  // SERVER_OVERLOADED
    PassingError{999, true},   // KEEPER_EXCEPTION
};

/// The code of "Code: 60. DB::Exception: ..."; nothing: it is not there.
std::optional<int> code_in(std::string_view body) {
  constexpr std::string_view kCode = "Code: ";
  if (body.find("DB::Exception") == body.npos && body.find("e.displayText()") == body.npos) return std::nullopt;
  int code = 0;
  const std::size_t at = body.find(kCode);
  if (at == body.npos) return code;
  std::from_chars(body.data() + at + kCode.size(), body.data() + body.size(), code);
  return code;
}

std::optional<int> code_of(const http::Reply& reply) {
  int code = 0;
  const std::string& text = reply.exception_code;
  if (std::from_chars(text.data(), text.data() + text.size(), code).ec == std::errc()) return code;
  return code_in(reply.body);
}

void set(http::UrlOptions& settings, const std::string& name, const std::string& value) {
  const auto found = std::ranges::find(settings, name, &http::UrlOptions::value_type::first);
  if (found != settings.end())
    found->second = value;
  else
    settings.emplace_back(name, value);
}

Result<Encoding> parse_encoding(std::string_view name) {
  if (name == kJsonLines) return Encoding::json;
  if (name == "RowBinary" || name == kRowBinary) return Encoding::row_binary;
  return wrong("the format is RowBinary or JSONEachRow");
}

/// Takes a setting out of a path.
void take_out(std::string& path, std::string_view setting) {
  const std::string text = fmt::format("&{}=1", setting);
  if (const std::size_t at = path.find(text); at != path.npos) path.erase(at, text.size());
}

/// Whether the server says that it does not know the format, or a setting that is as old.
bool is_from_before(int code, std::string_view said) {
  constexpr int kUnknownFormat = 73, kUnknownSetting = 115;
  const auto names = [&](std::string_view setting) { return said.find(setting) != said.npos; };
  return code == kUnknownFormat ||
         (code == kUnknownSetting && (names(kNamesSetting) || names(kTypesSetting) || names(kWaitSetting)));
}

/// A text of the environment that may be a header.
Result<std::string> header_from(const char* variable) {
  const char* text = std::getenv(variable);
  std::string value = text == nullptr ? "" : text;
  if (!std::ranges::all_of(value, [](char c) { return c >= ' ' && c < '\x7f'; }))
    return fail(ErrorKind::invalid_argument, fmt::format("{} has characters that a header cannot have", variable));
  return value;
}

}  // namespace

Result<Place> parse_place(const std::string& text) {
  auto split = http::split_options(text);
  if (!split) return wrong(kSettings);
  if (split->first.find('@') != text.npos) return wrong(kCredentials);
  Place place{.url = TRY(http::parse_url(split->first))};
  const std::string path = std::exchange(place.url.path, {});
  if (!path.empty()) place.database = path.substr(1);
  if (!is_name(place.database)) return wrong("a database's name has letters, digits and _");
  for (auto& [name, value] : split->second) {
    if (name == "format") {
      place.encoding = TRY(parse_encoding(value));
    } else {
      TRY(check_setting(name, value));
      place.settings.emplace_back(std::move(name), std::move(value));
    }
  }
  return place;
}

std::string escaped(std::string_view text) {
  std::string all;
  for (const char c : text)
    is_of_name(c) || c == '-' || c == '.' ? all += c : all += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return all;
}

std::string insert_path(const Place& place, std::string_view table, std::string_view token) {
  http::UrlOptions settings{
      {"wait_end_of_query", "1"},
      {"input_format_skip_unknown_fields", "0"},
      {"insert_deduplication_token", std::string(token)},
      // Servers collect by default since 26.2, and what waits there is lost if one is killed.
      {std::string(kWaitSetting), "1"},
  };
  const bool is_binary = place.encoding == Encoding::row_binary;
  if (is_binary) set(settings, std::string(kNamesSetting), "1"), set(settings, std::string(kTypesSetting), "1");
  const bool waits = std::ranges::find(place.settings, std::pair<std::string, std::string>("async_insert", "1")) !=
                     place.settings.end();
  // Servers of 2024 and 2025 refuse both at once (ClickHouse's pull request 60888); from 26.2 on both are defaults.
  set(settings, waits ? "async_insert_deduplicate" : "deduplicate_blocks_in_dependent_materialized_views", "1");
  for (const auto& [name, value] : place.settings) set(settings, name, value);
  std::string path =
      fmt::format("/?query=INSERT%20INTO%20{}%20FORMAT%20{}", table, is_binary ? kRowBinary : kJsonLines);
  if (!place.database.empty()) path += "&database=" + place.database;
  for (const auto& [name, value] : settings)
    if (!value.empty()) path.append("&").append(name).append("=").append(value);
  return path;
}

std::string_view media_type(Encoding encoding) noexcept {
  return encoding == Encoding::json ? "application/x-ndjson" : "application/octet-stream";
}

std::optional<http::SpooledBatch> older_insertion(const http::Message& message) {
  constexpr std::size_t kMostBytes = 256 << 20;
  http::SpooledBatch older{.path = std::string(message.path), .type = std::string(media_type(Encoding::json))};
  for (const std::string_view setting : {kNamesSetting, kTypesSetting, kWaitSetting}) take_out(older.path, setting);
  if (older.path == message.path) return std::nullopt;
  const std::size_t at = older.path.find(kRowBinary);
  if (at != older.path.npos) older.path.replace(at, kRowBinary.size(), kJsonLines);
  const auto rows = message.is_gzip ? http::gunzip(message.body, kMostBytes) : std::string(message.body);
  if (!rows) return std::nullopt;
  const auto json = at == older.path.npos ? Result<std::string>(*rows) : json_rows(*rows);
  if (!json) return std::nullopt;
  older.deflated = http::gzip(*json, http::GzipEffort::quick);
  return older.deflated.empty() ? std::nullopt : std::optional(std::move(older));
}

http::Verdict judge_insertion(const http::Reply& reply) {
  const auto code = code_of(reply);
  if (!code) return http::judge_status(reply);
  if (is_from_before(*code, reply.body)) return http::Verdict::unknown_form;
  const auto passing = std::ranges::find(kPassing, *code, &PassingError::code);
  if (passing == kPassing.end()) return http::Verdict::refused;
  return passing->may_have_it ? http::Verdict::maybe_again : http::Verdict::again;
}

Result<http::Endpoint> find_endpoint(const std::string& place) {
  http::Endpoint endpoint{.url = TRY(parse_place(place)).url, .judge = judge_insertion, .older_form = older_insertion};
  const std::string user = TRY(header_from("USDT_CLICKHOUSE_USER"));
  const std::string password = TRY(header_from("USDT_CLICKHOUSE_PASSWORD"));
  if (!user.empty()) endpoint.headers.emplace_back("X-ClickHouse-User", user);
  if (!password.empty()) endpoint.headers.emplace_back("X-ClickHouse-Key", password);
  return endpoint;
}

}  // namespace usdt::exports::clickhouse
