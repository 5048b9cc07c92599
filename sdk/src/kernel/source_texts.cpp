// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/source_texts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace usdt::kernel {

std::string_view SourceTexts::keep(Text&& text) { return texts_.emplace_back(std::move(text)).view(); }

std::optional<std::string_view> SourceTexts::keep(const std::string& path, std::string_view advice) {
  auto text = Text::read(path);
  if (text) return keep(std::move(*text));
  miss(text.error(), advice);
  return std::nullopt;
}

Result<Text> SourceTexts::read_tracefs(std::string_view name) const {
  std::optional<Error> first;
  for (const std::string& directory : sources_.tracefs) {
    auto text = Text::read(fmt::format("{}/{}", directory, name));
    if (text) return text;
    if (!first || text.error().kind == ErrorKind::no_permission) first = text.error();
  }
  return fail(first.value_or(Error{ErrorKind::not_found, fmt::format("no tracefs with {}", name)}));
}

std::optional<std::string_view> SourceTexts::keep_tracefs(std::string_view name) {
  auto text = read_tracefs(name);
  if (text) return keep(std::move(*text));
  const bool mounted = std::ranges::any_of(sources_.tracefs, [](const std::string& directory) {
    return ::access(fmt::format("{}/trace", directory).c_str(), F_OK) == 0;
  });
  miss(text.error(), mounted ? "a kernel without CONFIG_DYNAMIC_FTRACE has no such list"
                             : "mount -t tracefs tracefs /sys/kernel/tracing");
  return std::nullopt;
}

void SourceTexts::miss(const Error& error, std::string_view advice) {
  const bool privilege = error.kind == ErrorKind::no_permission;
  no_permission_ = no_permission_ || privilege;
  if (privilege) advice = "run as root";
  missing_.push_back(advice.empty() ? error.message : fmt::format("{}: {}", error.message, advice));
}

Error SourceTexts::unusable(std::string_view what) const {
  const ErrorKind kind = no_permission_ ? ErrorKind::no_permission : ErrorKind::not_supported;
  return {kind, fmt::format("cannot list {}: {}", what, fmt::join(missing_, "; "))};
}

}  // namespace usdt::kernel
