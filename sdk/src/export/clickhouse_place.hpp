// SPDX-License-Identifier: BSD-2-Clause
// How a ClickHouse server is spoken to over HTTP: its place, the statements that rows are sent by, and its errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "http/poster.hpp"
#include "usdt/result.hpp"

namespace usdt::exports::clickhouse {

/// "http://HOST:8123/DATABASE?SETTING=VALUE&..."
struct Place {
  http::Url url = {};         ///< without a path
  std::string database = {};  ///< empty: the user's own
  /// As they were given. A value that is empty takes away a setting of ours, which an older server does not know.
  http::UrlOptions settings = {};
};

/// Parses a place. Errors: invalid_argument, with what is wrong: those of parse_url(); users and passwords, which
/// USDT_CLICKHOUSE_USER and USDT_CLICKHOUSE_PASSWORD have; settings by which errors would not be seen.
[[nodiscard]] Result<Place> parse_place(const std::string& text);

/// Returns a text as a part of a URL.
[[nodiscard]] std::string escaped(std::string_view text);

/// Returns the path of a request that inserts rows into `table`. `token`: escaped; the server takes rows with the same
/// one once.
[[nodiscard]] std::string insert_path(const Place& place, std::string_view table, std::string_view token);

/// Judges the reply to an insertion: what was taken says so by 200 and no exception, in a header or in the body.
[[nodiscard]] http::Verdict judge_insertion(const http::Reply& reply);

/// Parses a place and adds what the environment says of the user. Errors: invalid_argument.
[[nodiscard]] Result<http::Endpoint> find_endpoint(const std::string& place);

}  // namespace usdt::exports::clickhouse
