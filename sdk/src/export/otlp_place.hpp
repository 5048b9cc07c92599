// SPDX-License-Identifier: BSD-2-Clause
// How a server that speaks OpenTelemetry's protocol over HTTP is spoken to: its place, and what its replies say.
#pragma once

#include <cstdint>
#include <string>

#include "http/poster.hpp"
#include "usdt/result.hpp"

namespace usdt::exports::otlp {

enum class Encoding : std::uint8_t { protobuf, json };

/// "http://HOST:PORT/PREFIX?encoding=json"
struct Place {
  http::Url url = {};
  Encoding encoding = Encoding::protobuf;
};

/// Parses a place; the path of one kind of batches at its end ("/v1/traces") does not count. Errors: invalid_argument,
/// with what is wrong: those of parse_url(), and options that there are not.
[[nodiscard]] Result<Place> parse_place(const std::string& text);

/// Returns how many items of a batch that was taken were rejected, and what the server says of it, in words that may be
/// there without any of them. Reads the reply in protobuf or in JSON, whatever was sent: `type` of a reply says it.
[[nodiscard]] http::Rejected rejected_by(const http::Reply& reply);

/// Returns the message of a refusal (google.rpc.Status), in protobuf or in JSON; empty: the reply has none.
[[nodiscard]] std::string message_of(const http::Reply& reply);

/// Parses a place. Errors: invalid_argument.
[[nodiscard]] Result<http::Endpoint> find_endpoint(const std::string& place);

}  // namespace usdt::exports::otlp
