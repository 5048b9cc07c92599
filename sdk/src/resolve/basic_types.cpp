// SPDX-License-Identifier: BSD-2-Clause
#include "resolve/basic_types.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/type_names.hpp"

namespace usdt::resolve {
namespace {

constexpr std::array kBasicTypes{
    BasicType{"char", 1, true, TypeKind::integer, true},
    BasicType{"signed char", 1, true},
    BasicType{"unsigned char", 1},
    BasicType{"short", 2, true},
    BasicType{"unsigned short", 2},
    BasicType{"int", 4, true},
    BasicType{"unsigned int", 4},
    BasicType{"long", 0, true},
    BasicType{"unsigned long", 0},
    BasicType{"long long", 8, true},
    BasicType{"unsigned long long", 8},
    BasicType{"bool", 1, false, TypeKind::boolean},
    BasicType{"_Bool", 1, false, TypeKind::boolean},
    BasicType{"float", 4, false, TypeKind::floating},
    BasicType{"double", 8, false, TypeKind::floating},
    BasicType{"int8_t", 1, true},
    BasicType{"int16_t", 2, true},
    BasicType{"int32_t", 4, true},
    BasicType{"int64_t", 8, true},
    BasicType{"uint8_t", 1},
    BasicType{"uint16_t", 2},
    BasicType{"uint32_t", 4},
    BasicType{"uint64_t", 8},
    BasicType{"s8", 1, true},
    BasicType{"s16", 2, true},
    BasicType{"s32", 4, true},
    BasicType{"s64", 8, true},
    BasicType{"u8", 1},
    BasicType{"u16", 2},
    BasicType{"u32", 4},
    BasicType{"u64", 8},
    BasicType{"size_t"},
    BasicType{"ssize_t", 0, true},
    BasicType{"intptr_t", 0, true},
    BasicType{"uintptr_t"},
};

}  // namespace

const BasicType* find_basic_type(std::string_view name) {
  const std::string wanted = normal_type_name(name);
  const auto* found = std::ranges::find(kBasicTypes, wanted, &BasicType::name);
  return found == kBasicTypes.end() ? nullptr : &*found;
}

const BasicType* basic_type_of(const Type& type) {
  const auto* found = std::ranges::find_if(kBasicTypes, [&type](const BasicType& each) {
    return each.size == type.size && each.is_signed == type.is_signed && each.kind == type.kind && !each.is_char;
  });
  return found == kBasicTypes.end() ? nullptr : &*found;
}

}  // namespace usdt::resolve
