// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/script.hpp"

namespace usdt::tools {
namespace {

using Version = std::vector<unsigned>;

/// Returns the numbers of "6.1.12-amd64"; nothing: it does not begin with one.
std::optional<Version> version_of(std::string_view text) {
  Version version;
  while (true) {
    unsigned number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) return version.empty() ? std::nullopt : std::optional(version);
    version.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.starts_with('.')) return version;
    text.remove_prefix(1);
  }
}

/// Says what a need lacks, in words; empty: it is there; nothing: no such need is known.
std::optional<std::string> missing(std::string_view kind, const std::string& what) {
  if (kind == "usdt-trace" || kind == "linux") {
    const auto wanted = version_of(what);
    if (!wanted) return std::nullopt;
    utsname kernel{};
    if (::uname(&kernel) != 0) return std::string();
    const std::string_view have = kind == "linux" ? kernel.release : USDT_VERSION;
    return version_of(have) >= wanted ? std::string() : fmt::format("this is {} {}", kind, have);
  }
  if (kind == "feature") {
    const auto feature = feature_by_name(what);
    if (!feature) return std::nullopt;
    const FeatureState state = probe_feature(*feature);
    return state.answer == Answer::no ? state.detail : std::string();
  }
  if (kind == "program") {
    const auto program = find_program(what);
    return program ? std::string() : program.error().message;
  }
  return std::nullopt;
}

}  // namespace

Result<void> check_needs(const Script& script) {
  std::vector<std::string> all;
  for (const ScriptNeed& need : script.needs) {
    const std::size_t space = std::min(need.text.find(' '), need.text.size());
    const std::string_view kind = std::string_view(need.text).substr(0, space);
    const auto why = missing(kind, need.text.substr(std::min(space + 1, need.text.size())));
    if (!why)
      return fail(script.wrong(need.place, fmt::format("'{}' is no need: there are 'usdt-trace VERSION', 'linux "
                                                       "VERSION', 'feature NAME' and 'program NAME'",
                                                       need.text)));
    if (!why->empty()) all.push_back(script.wrong(need.place, fmt::format("needs {}: {}", need.text, *why)).message);
  }
  if (all.empty()) return {};
  return fail(ErrorKind::not_supported, fmt::format("{}", fmt::join(all, "; ")));
}

}  // namespace usdt::tools
