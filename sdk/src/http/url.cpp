// SPDX-License-Identifier: BSD-2-Clause
#include "http/url.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace usdt::http {
namespace {

constexpr std::size_t kMostCharacters = 2048;

}  // namespace

std::string without_user(std::string_view text) {
  constexpr std::string_view kBegin = "//";
  std::string done;
  while (true) {
    const std::size_t begin = text.find(kBegin);
    if (begin == text.npos) return done.append(text);
    done += text.substr(0, begin + kBegin.size());
    text.remove_prefix(begin + kBegin.size());
    // A password may have any character, slashes too: the last '@' of the word ends it.
    const std::size_t at = text.substr(0, std::min(text.find_first_of(" \t\n\"'"), text.size())).rfind('@');
    if (at == text.npos) continue;
    done += "...";
    text.remove_prefix(at);
  }
}

namespace {

/// What was meant as a URL may have a user without "//" before it.
std::string shown(std::string_view text) {
  const std::size_t at = text.find("//") == text.npos ? text.rfind('@') : text.npos;
  return at == text.npos ? without_user(text) : "..." + std::string(text.substr(at));
}

tl::unexpected<Error> wrong(std::string_view text, std::string_view why) {
  constexpr std::size_t kShown = 200;
  std::string quoted = shown(text);
  if (quoted.size() > kShown) quoted.replace(kShown, quoted.npos, "...");
  return fail(ErrorKind::invalid_argument, "\"" + quoted + "\" is no URL: " + std::string(why));
}

/// Characters that a request line or a header can have.
bool is_plain(char c) { return c > ' ' && c < '\x7f'; }

bool is_of_host(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}
bool is_of_address(char c) {
  return (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || (c >= '0' && c <= '9') || c == ':' || c == '.';
}

bool is_port(std::string_view digits) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return error == std::errc() && end == digits.data() + digits.size() && port > 0;
}

}  // namespace

std::string Url::authority() const {
  const bool is_v6 = host.find(':') != host.npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + port;
}

Result<Url> parse_url(std::string_view text) {
  constexpr std::string_view kHttp = "http://";
  if (text.size() > kMostCharacters) return wrong(text, "it is too long");
  if (!std::ranges::all_of(text, is_plain)) return wrong("...", "it has characters that a URL cannot have");
  if (text.starts_with("https://"))
    return fail(ErrorKind::invalid_argument,
                without_user(text) + ": TLS is not supported: send to a collector of this host, which does that");
  if (!text.starts_with(kHttp)) return wrong(text, "http://HOST:PORT");
  const std::string_view rest = text.substr(kHttp.size());
  const std::size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  std::string_view place = rest.substr(0, end), path = rest.substr(end);
  if (path.find_first_of("?#") != path.npos) return wrong(text, "it is a place alone, without '?' and '#'");
  if (place.find('@') != place.npos) return wrong(text, "users and passwords are not supported");
  while (path.ends_with('/')) path.remove_suffix(1);
  Url url{.host = {}, .port = "80", .path = std::string(path)};
  const bool is_v6 = place.starts_with('[');
  const std::size_t host_end =
      is_v6 ? std::min(place.find(']'), place.size()) : std::min(place.find(':'), place.size());
  url.host = place.substr(is_v6 ? 1 : 0, host_end - (is_v6 ? 1 : 0));
  place.remove_prefix(std::min(host_end + (is_v6 ? 1 : 0), place.size()));
  if (url.host.empty() || (is_v6 && text.find(']') == text.npos) ||
      !std::ranges::all_of(url.host, is_v6 ? is_of_address : is_of_host))
    return wrong(text, "its host is none");
  if (place.empty()) return url;
  if (place.front() != ':' || !is_port(place.substr(1))) return wrong(text, "its port is none");
  url.port = place.substr(1);
  return url;
}

std::optional<std::pair<std::string, UrlOptions>> split_options(std::string_view text) {
  const std::size_t question = std::min(text.find('?'), text.size());
  const std::string_view all = text.substr(std::min(question + 1, text.size()));
  UrlOptions options;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('&', at), all.size());
    const std::string_view pair = all.substr(at, end - at);
    const std::size_t equals = pair.find('=');
    if (equals == pair.npos) return std::nullopt;
    options.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
    at = end + 1;
  }
  return std::pair(std::string(text.substr(0, question)), std::move(options));
}

}  // namespace usdt::http
