// SPDX-License-Identifier: BSD-2-Clause
// OpenTelemetry's protocol in JSON: what is sent in protobuf, read back by a table that has the name and the kind of
// each field. There is one description of what is sent, the code that writes protobuf.
#pragma once

#include <string>
#include <string_view>

namespace usdt::exports::otlp {

/// The kinds of answers, each of which has requests and a path of its own.
enum class Signal { traces, logs, metrics };

/// Returns the path of a signal's requests, behind that of the server: "/v1/traces".
[[nodiscard]] std::string_view path_of(Signal signal) noexcept;

/// Returns an Export request in JSON, as the specification has it: proto3's JSON, but identifiers in hexadecimal digits
/// and enumerators as numbers. `request`: in protobuf, of the fields of otlp_fields.hpp.
[[nodiscard]] std::string to_json(Signal signal, const std::string& request);

}  // namespace usdt::exports::otlp
