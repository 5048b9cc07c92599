// SPDX-License-Identifier: BSD-2-Clause
// The types that C has without a declaration, so that memory behind an argument can be read where no debug information
// tells what is there: ((char **)arg1)[1], *(u32 *)arg0.
#pragma once

#include <cstdint>
#include <string_view>

#include "usdt/type.hpp"

namespace usdt::resolve {

struct BasicType {
  std::string_view name;
  std::uint8_t size = 0;  ///< bytes; 0: a word of the machine, as `long` is on all of them
  bool is_signed = false;
  TypeKind kind = TypeKind::integer;
  bool is_char = false;
};

/// "unsigned long", in any order of its words, "uint32_t" of <stdint.h>, "u32" and "__u32" of Linux, "size_t". Null:
/// none of those.
[[nodiscard]] const BasicType* find_basic_type(std::string_view name);

/// One of them that has values of this type. Null: none has.
[[nodiscard]] const BasicType* basic_type_of(const Type& type);

}  // namespace usdt::resolve
