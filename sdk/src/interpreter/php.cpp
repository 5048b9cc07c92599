// SPDX-License-Identifier: BSD-2-Clause
#include "interpreter/php.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "interpreter/code_words.hpp"
#include "interpreter/php_8_2.hpp"
#include "interpreter/php_8_4.hpp"

namespace usdt::interpreter {
namespace {

constexpr std::array kPhpLayouts{&kPhp82, &kPhp84};
/// A path has at most 4095 bytes, and nobody reads longer names.
constexpr std::uint64_t kMostBytes = 4096;
/// ZEND_INTERNAL_FUNCTION, its own, which has no file; ZEND_USER_FUNCTION, ZEND_EVAL_CODE.
constexpr std::uint8_t kInternal = 1, kOfScript = 2, kEvaluated = 4;

std::optional<std::string> read_php_text(const Memory& memory, const PhpLayout& layout, std::uint64_t address) {
  const auto length = memory.value<std::uint64_t>(address + layout.text_length);
  if (!length) return std::nullopt;
  std::string text(std::min(*length, kMostBytes), '\0');
  if (!memory.read(address + layout.text_data, std::as_writable_bytes(std::span(text)))) return std::nullopt;
  return *length > kMostBytes ? text + "..." : text;
}

/// Whether the words are those of the hit. The hash of a name may have been computed since.
bool is_as_at_hit(const Memory& memory, const PhpLayout& layout, const CodeWords& words, std::uint64_t cookie) {
  const std::uint64_t name = words[layout.walk.code.name_word];
  const auto hash =
      name != 0 ? memory.value<std::uint64_t>(name + layout.walk.code.name_at) : std::optional<std::uint64_t>(0);
  const auto fits = [&](std::uint64_t with) {
    return usdt_code_cookie(words.data(), layout.walk.code.mask, with) == cookie;
  };
  return hash && (fits(*hash) || fits(0));
}

/// "Class::function", as tracebacks have it; code outside of functions has no name.
std::optional<std::string> read_name(const Memory& memory, const PhpLayout& layout, std::uint64_t function) {
  const auto name = memory.value<std::uint64_t>(function + layout.function_name);
  const auto of_class = memory.value<std::uint64_t>(function + layout.function_class);
  if (!name || !of_class) return std::nullopt;
  if (*name == 0) return "{main}";
  auto text = read_php_text(memory, layout, *name);
  if (!text || *of_class == 0) return text;
  const auto class_name = memory.value<std::uint64_t>(*of_class + layout.class_name);
  const auto class_text = class_name ? read_php_text(memory, layout, *class_name) : std::nullopt;
  return class_text ? std::optional(*class_text + "::" + *text) : std::nullopt;
}

}  // namespace

const PhpLayout* php_layout(std::uint16_t version) {
  const auto found = std::ranges::find(kPhpLayouts, version, &PhpLayout::version);
  return found == kPhpLayouts.end() ? nullptr : *found;
}

CodeState read_function(const Memory& memory, const PhpLayout& layout, std::uint64_t function, std::uint64_t cookie,
                        PhpNames& names) {
  const auto words = read_code_words(memory, layout.walk.code, function);
  const auto type = memory.value<std::uint8_t>(function + layout.function_type);
  const auto is_function = [](std::uint8_t t) { return t == kInternal || t == kOfScript || t == kEvaluated; };
  if (!words || !type) return CodeState::unreadable;
  // What was freed begins with the address of the next free place.
  if (!is_function(*type) || !is_as_at_hit(memory, layout, *words, cookie)) return CodeState::changed;
  auto name = read_name(memory, layout, function);
  std::optional<std::string> file = "";
  PhpNames read;
  if (*type != kInternal) {
    const auto file_at = memory.value<std::uint64_t>(function + layout.function_file);
    file = file_at ? read_php_text(memory, layout, *file_at) : std::nullopt;
    read.instructions = memory.value<std::uint64_t>(function + layout.function_instructions).value_or(0);
    read.count = memory.value<std::uint32_t>(function + layout.function_count).value_or(0);
  }
  // Were it freed meanwhile, its texts might be others'.
  const auto again = read_code_words(memory, layout.walk.code, function);
  if (!again || memory.value<std::uint8_t>(function + layout.function_type) != type ||
      !is_as_at_hit(memory, layout, *again, cookie) || !name || !file)
    return CodeState::changed;
  read.function = std::move(*name);
  read.file = std::move(*file);
  names = std::move(read);
  return CodeState::read;
}

std::uint32_t line_of(const Memory& memory, const PhpLayout& layout, const PhpNames& names, std::uint64_t instruction) {
  const std::uint64_t distance = instruction - names.instructions;
  if (instruction < names.instructions || distance >= names.count * layout.instruction_size) return 0;
  const auto line = memory.value<std::uint32_t>(instruction + layout.instruction_line);
  return line && *line <= INT32_MAX ? *line : 0;
}

}  // namespace usdt::interpreter
