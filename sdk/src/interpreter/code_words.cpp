// SPDX-License-Identifier: BSD-2-Clause
#include "interpreter/code_words.hpp"

#include <span>

namespace usdt::interpreter {

std::optional<CodeWords> read_code_words(const Memory& memory, const usdt_code_shape& shape, std::uint64_t code) {
  CodeWords words{};
  if (!memory.read(code + shape.at, std::as_writable_bytes(std::span(words)).first(shape.bytes))) return std::nullopt;
  return words;
}

}  // namespace usdt::interpreter
