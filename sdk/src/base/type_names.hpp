// SPDX-License-Identifier: BSD-2-Clause
// Names of types as people type them and as compilers write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace usdt {
inline namespace v1 {

/// The word before the name of a type in C; a class is a struct by another word.
enum class TypeKeyword : std::uint8_t { none, structure, union_type, enumeration };

/// "struct ns::x" taken apart.
struct TypeName {
  TypeKeyword keyword = TypeKeyword::none;
  std::string_view name;
};
[[nodiscard]] TypeName split_type_name(std::string_view name) noexcept;

/// One spelling for all compilers and people: "unsigned long" for "long unsigned int", blanks only between words.
[[nodiscard]] std::string normal_type_name(std::string_view name);

/// Behind the last "::" that is not within a template's arguments.
[[nodiscard]] std::string_view last_scope(std::string_view name) noexcept;

}  // namespace v1
}  // namespace usdt
