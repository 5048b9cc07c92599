// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>
#include <string_view>

namespace usdt::http {

/// Whether size or time matters more.
enum class GzipEffort { small, quick };
/// Returns `data` deflated, as a file of gzip. Empty: there is no memory for that.
[[nodiscard]] std::string gzip(std::string_view data, GzipEffort effort = GzipEffort::small);

}  // namespace usdt::http
