// SPDX-License-Identifier: BSD-2-Clause
// Any bytes as the name of attach points and as a glob against a text (the two sides of the first newline).
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "usdt/pattern.hpp"

namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

void check_pattern(std::string_view text) {
  const usdt::Result<usdt::PointPattern> pattern = usdt::parse_pattern(text);
  if (!pattern) {
    require(pattern.error().column && *pattern.error().column <= text.size(), "the column is outside the pattern");
    return;
  }
  const std::string written = usdt::to_string(*pattern);
  const usdt::Result<usdt::PointPattern> again = usdt::parse_pattern(written);
  require(again && usdt::to_string(*again) == written, "a pattern does not come back from its own text");
}

void check_glob(std::string_view glob, std::string_view text) {
  const bool matched = usdt::glob_match(glob, text);
  require(!matched || usdt::glob_match("*", text), "'*' does not match");
  const bool plain = !usdt::has_glob(glob) && glob.find('\\') == std::string_view::npos;
  require(!plain || matched == (glob == text), "a plain glob is not a comparison");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  check_pattern(input);
  const std::size_t newline = input.find('\n');
  if (newline != std::string_view::npos) check_glob(input.substr(0, newline), input.substr(newline + 1));
  return 0;
}
