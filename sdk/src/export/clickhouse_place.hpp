// SPDX-License-Identifier: BSD-2-Clause
// How a ClickHouse server is spoken to over HTTP: its place, the statements that rows are sent by, and its errors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/poster.hpp"
#include "usdt/result.hpp"

namespace usdt::exports::clickhouse {

/// How rows are encoded.
enum class Encoding : std::uint8_t {
  row_binary,  ///< RowBinaryWithNamesAndTypes: the server refuses what is not of its columns' types
  json,        ///< JSONEachRow: the server makes of a value what it can
};

/// "http://HOST:8123/DATABASE?SETTING=VALUE&..."
struct Place {
  http::Url url = {};                        ///< without a path
  std::string database = {};                 ///< empty: the user's own
  Encoding encoding = Encoding::row_binary;  ///< "format=JSONEachRow", which is no setting
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

/// Returns the media type of rows.
[[nodiscard]] std::string_view media_type(Encoding encoding) noexcept;

/// Makes an insertion that servers from before 21.11 know: of lines of JSON, without settings that are newer. Nothing:
/// it is one, or the rows are damaged.
[[nodiscard]] std::optional<http::SpooledBatch> older_insertion(const http::Message& message);

/// Judges the reply to an insertion: what was taken says so by 200 and no exception, in a header or in the body. A
/// server that does not know the format, or our settings for it, is older than they are.
[[nodiscard]] http::Verdict judge_insertion(const http::Reply& reply);

/// Parses a place and adds what the environment says of the user. Errors: invalid_argument.
[[nodiscard]] Result<http::Endpoint> find_endpoint(const std::string& place);

}  // namespace usdt::exports::clickhouse
