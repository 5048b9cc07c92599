// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace usdt::http {

/// Whether size or time matters more.
enum class GzipEffort { small, quick };
/// Returns `data` deflated, as a file of gzip. Empty: there is no memory for that.
[[nodiscard]] std::string gzip(std::string_view data, GzipEffort effort = GzipEffort::small);

/// Returns what gzip() deflated. Nothing: it is damaged, has more than `most` bytes, or there is no memory.
[[nodiscard]] std::optional<std::string> gunzip(std::string_view deflated, std::size_t most);

}  // namespace usdt::http
