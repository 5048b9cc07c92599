// SPDX-License-Identifier: BSD-2-Clause
// Any bytes as the perf map of a process, read in two parts: each address has the last line that has it, of what there
// was at the time; names lie within the text, and are taken apart without leaving it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "stack/code_history.hpp"
#include "stack/java_name.hpp"
#include "stack/perf_map.hpp"
#include "stack/v8_name.hpp"

namespace {

using namespace usdt::stack;

bool is_within(std::string_view part, std::string_view text) {
  return part.empty() || (part.data() >= text.data() && part.data() + part.size() <= text.data() + text.size());
}

void look(const CodeHistory& history, std::string_view text, std::uint64_t address, std::uint64_t time) {
  const auto found = history.find(address, Period::at(time), text);
  if (found.code == nullptr) return;
  if (address < found.code->start || address > found.code->last || found.code->code > found.code->start) std::abort();
  if (found.code->name > text.size() || found.code->length > text.size() - found.code->name) std::abort();
  const std::string_view name = text.substr(found.code->name, found.code->length);
  static_cast<void>(is_java_method(name));
  if (const auto parsed = parse_v8_name(name))
    if (!is_within(parsed->function, name) || !is_within(parsed->file, name)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(parse_v8_name(text));
  const std::size_t third = size / 3;
  static_cast<void>(
      java_method_name(text.substr(0, third), text.substr(third, third), text.substr(std::min(2 * third, size))));
  CodeHistory history;
  std::size_t lines = 0;
  const auto first = add_lines(text.substr(0, size / 2), 0, {0, 10}, lines, history);
  if (!first || *first > size / 2) return 0;
  const auto second = add_lines(text, *first, {10, 20}, lines, history);
  if (second && (*second < *first || *second > size)) std::abort();
  // A range adds two at most to those before.
  if (history.size() > 2 * lines) std::abort();
  for (const std::uint64_t address : {0ULL, 0x1000ULL, 0x1008ULL, 0x7f0000001000ULL, ~0ULL})
    for (const std::uint64_t time : {5ULL, 10ULL, 15ULL, 20ULL, 25ULL}) look(history, text, address, time);
  return 0;
}
