// SPDX-License-Identifier: BSD-2-Clause
#include "export/clickhouse_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "base/try.hpp"

namespace usdt::exports::clickhouse {
namespace {

constexpr std::string_view kCredentials =
    "a user and a password are not given in a URL, which others can see: set USDT_CLICKHOUSE_USER and "
    "USDT_CLICKHOUSE_PASSWORD in the environment";

constexpr std::string_view kSettings = "settings are NAME=VALUE&NAME=VALUE";

tl::unexpected<Error> wrong(std::string_view why) {
  return fail(ErrorKind::invalid_argument, fmt::format("of clickhouse=http://HOST:8123/DATABASE: {}", why));
}

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
  constexpr std::array<std::string_view, 4> kOurs{"query", "database", "default_format", "compress"};
  if (name == "user" || name == "password") return wrong(kCredentials);
  if (name.empty() || !is_name(name) || !is_value(value)) return wrong(kSettings);
  if (std::ranges::find(kOurs, name) != kOurs.end()) return wrong(fmt::format("\"{}\" is no setting", name));
  if (name == "wait_for_async_insert" && value != "1")
    return wrong("without wait_for_async_insert=1 nobody learns of rows that the server does not take");
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
  for (const auto& [name, value] : split->second) TRY(check_setting(name, value));
  place.settings = std::move(split->second);
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
  };
  const bool waits = std::ranges::find(place.settings, std::pair<std::string, std::string>("async_insert", "1")) !=
                     place.settings.end();
  // Servers refuse that both are deduplicated, views and what was not written at once.
  set(settings, waits ? "async_insert_deduplicate" : "deduplicate_blocks_in_dependent_materialized_views", "1");
  if (waits) set(settings, "wait_for_async_insert", "1");
  for (const auto& [name, value] : place.settings) set(settings, name, value);
  std::string path = fmt::format("/?query=INSERT%20INTO%20{}%20FORMAT%20JSONEachRow", table);
  if (!place.database.empty()) path += "&database=" + place.database;
  for (const auto& [name, value] : settings)
    if (!value.empty()) path.append("&").append(name).append("=").append(value);
  return path;
}

http::Verdict judge_insertion(const http::Reply& reply) {
  const auto code = code_of(reply);
  if (!code) return http::judge_status(reply);
  const auto passing = std::ranges::find(kPassing, *code, &PassingError::code);
  if (passing == kPassing.end()) return http::Verdict::refused;
  return passing->may_have_it ? http::Verdict::maybe_again : http::Verdict::again;
}

Result<http::Endpoint> find_endpoint(const std::string& place) {
  http::Endpoint endpoint{.url = TRY(parse_place(place)).url, .judge = judge_insertion};
  const std::string user = TRY(header_from("USDT_CLICKHOUSE_USER"));
  const std::string password = TRY(header_from("USDT_CLICKHOUSE_PASSWORD"));
  if (!user.empty()) endpoint.headers.emplace_back("X-ClickHouse-User", user);
  if (!password.empty()) endpoint.headers.emplace_back("X-ClickHouse-Key", password);
  return endpoint;
}

}  // namespace usdt::exports::clickhouse
