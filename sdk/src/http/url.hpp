// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "usdt/result.hpp"

namespace usdt::http {

/// A place that things are sent to: "http://collector:4318/prefix".
struct Url {
  std::string host;  ///< a name or an address, IPv6 without brackets
  std::string port;  ///< "80" where none was given
  std::string path;  ///< "/prefix" without a slash at its end; or empty

  /// "collector:4318", as the header Host has it.
  [[nodiscard]] std::string authority() const;
};

/// Parses a URL. There is no TLS yet: "https:" is an error that says what to do. Errors: invalid_argument.
[[nodiscard]] Result<Url> parse_url(std::string_view text);

/// Returns a text with "..." in the place of all users and passwords ("//user:password@") in it.
[[nodiscard]] std::string without_user(std::string_view text);

/// Names and values, as they were written.
using UrlOptions = std::vector<std::pair<std::string, std::string>>;
/// Splits "URL?NAME=VALUE&NAME=VALUE", neither part of which is looked into. Nothing: an option has no '='.
[[nodiscard]] std::optional<std::pair<std::string, UrlOptions>> split_options(std::string_view text);

}  // namespace usdt::http
