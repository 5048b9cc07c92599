// SPDX-License-Identifier: BSD-2-Clause
#include "elf/debug_package.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>
#include <vector>

#include "sys/read.hpp"

namespace usdt::elf {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kLongestList = std::size_t{16} << 20;  // one of a kernel with its modules has 4 MB

bool has_line(const std::string& text, const std::string& line) {
  const std::string_view all = text;
  for (std::size_t at = all.find(line); at != all.npos; at = all.find(line, at + 1)) {
    const std::size_t end = at + line.size();
    if ((at == 0 || all[at - 1] == '\n') && (end == all.size() || all[end] == '\n')) return true;
  }
  return false;
}

/// Returns the names a package may have for the file: since /lib became a link to /usr/lib, lists use either.
std::vector<std::string> names_of(const fs::path& path) {
  std::error_code ec;
  const fs::path real = fs::canonical(path, ec);
  std::vector<std::string> names = {path.string()};
  if (!ec) names.push_back(real.string());
  for (std::size_t i = 0, count = names.size(); i < count; ++i) {
    if (names[i].starts_with("/usr/")) names.push_back(names[i].substr(4));
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

/// Packages install nothing elsewhere; what people build themselves is not looked for in their lists.
bool may_be_packaged(const std::vector<std::string>& names) {
  static constexpr std::array<std::string_view, 6> kPlaces = {"/usr/", "/lib", "/bin/", "/sbin/", "/opt/", "/etc/"};
  return std::ranges::any_of(names, [](const std::string& name) {
    return !name.starts_with("/usr/local/") &&
           std::ranges::any_of(kPlaces, [&](std::string_view place) { return name.starts_with(place); });
  });
}

}  // namespace

std::string package_of(const fs::path& path, const fs::path& lists) {
  const std::vector<std::string> names = names_of(path);
  if (!may_be_packaged(names)) return {};
  std::error_code ec;
  for (fs::directory_iterator each(lists, ec), end; !ec && each != end; each.increment(ec)) {
    if (each->path().extension() != ".list") continue;
    const std::string text = sys::read_text(each->path().string(), kLongestList).value_or("");
    if (std::ranges::none_of(names, [&](const std::string& name) { return has_line(text, name); })) continue;
    const std::string package = each->path().stem().string();
    return package.substr(0, package.find(':'));
  }
  return {};
}

std::string where_symbols_are(const std::string& package, const std::string& build_id) {
  if (package.empty()) return {};
  return fmt::format("package {}-dbgsym or {}-dbg brings its symbols{}", package, package,
                     build_id.empty() ? "" : fmt::format(" (build id {})", build_id));
}

}  // namespace usdt::elf
