// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string_view>
#include <vector>

#include "io/json.hpp"
#include "usdt/decode.hpp"

namespace usdt::tools {

/// One ARG object of the JSON contract (version 1): text, size, signed, float, kind, readable, reason, needs, and by
/// kind the keys that say where the value is; name and type where the source knows them.
void write_arg(io::JsonWriter& json, const Arg& arg, const ParsedArg& parsed, Machine machine);
/// The same of one that no note wrote. `shown`: how it is shown that is no number itself; empty: it is none of those.
void write_arg(io::JsonWriter& json, const Arg& arg, Machine machine, std::string_view shown);
/// "enumerators": the names that numbers have, each with its number.
void write_enumerators(io::JsonWriter& json, const std::vector<Enumerator>& all);

}  // namespace usdt::tools
