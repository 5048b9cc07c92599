// SPDX-License-Identifier: BSD-2-Clause
// Any bytes as a file of questions: its TOML, its options, and the expressions and names of points in them.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "usdt-trace/script_flags.hpp"

namespace {

constexpr std::string_view kFile = "questions.toml";

void require(bool holds, const char* what, const std::string& said) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s: %s\n", what, said.c_str());
  std::abort();
}

/// "questions.toml:LINE:COLUMN: ..." of a place that the text has.
bool names_a_place(const std::string& said, std::string_view text) {
  std::size_t line = 0, column = 0;
  if (!said.starts_with(kFile) || std::sscanf(said.c_str() + kFile.size(), ":%zu:%zu: ", &line, &column) != 2)
    return false;
  return line > 0 && column > 0 && line <= text.size() + 1 && column <= text.size() + 1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto questions = usdt_trace::parse_questions(std::string(kFile), text, {}, true);
  if (!questions) {
    require(names_a_place(questions.error().message, text), "an error without its place", questions.error().message);
    return 0;
  }
  for (const usdt_trace::Flags& each : *questions) {
    require(!each.question.name.empty() && !each.question.points.patterns.empty(), "a question about nothing",
            each.question.name);
    for (const auto& pattern : each.question.points.patterns)
      require(usdt::parse_pattern(usdt::to_string(pattern)).has_value(), "a point without a name",
              usdt::to_string(pattern));
  }
  return 0;
}
