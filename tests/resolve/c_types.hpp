// SPDX-License-Identifier: BSD-2-Clause
// Parameter types for programs that judge calling conventions.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "btf/btf_builder.hpp"
#include "usdt/machine.hpp"

namespace usdt::test {

inline constexpr std::string_view c_structures = R"(
struct empty {};
struct s1 { char b[1]; };
struct s3 { char b[3]; };
struct s7 { char b[7]; };
struct s12 { int b[3]; };
struct s13 { char b[13]; };
struct one { long a; };
struct two { long a, b; };
struct three { long a, b, c; };
struct s40 { char b[40]; };
struct __attribute__((packed)) packed { char a; long b; };
union either { int a; char b[6]; };
#ifdef __SIZEOF_INT128__
struct wide { __int128 a; };
#endif
enum colour { red, green };
)";

/// A type in C and in BTF.
struct CType {
  std::string c;
  std::uint32_t size;
  BtfBuilder::Id id;
  bool readable = false;  ///< a number of 1, 2, 4 or 8 bytes
};

inline std::vector<CType> c_scalars(BtfBuilder& made, Machine machine, bool floats) {
  const std::uint32_t word = machine == Machine::i386 ? 4 : 8;
  const auto character = made.integer("char", 1, true);
  std::vector<CType> all = {
      {"char", 1, character},
      {"unsigned char", 1, made.integer("unsigned char", 1)},
      {"short", 2, made.integer("short", 2, true)},
      {"unsigned short", 2, made.integer("unsigned short", 2)},
      {"int", 4, made.integer("int", 4, true)},
      {"unsigned", 4, made.integer("unsigned int", 4)},
      {"long", word, made.integer("long", word, true)},
      {"long long", 8, made.integer("long long", 8, true)},
      {"unsigned long long", 8, made.integer("unsigned long long", 8)},
      {"_Bool", 1, made.boolean()},
      {"void *", word, made.pointer(0)},
      {"const char *", word, made.pointer(made.constant(character))},
      {"enum colour", 4, made.enumeration("colour", 4, {{"red", 0}})},
  };
  for (CType& one : all) one.readable = true;
  if (word == 8) all.push_back({"__int128", 16, made.integer("__int128", 16, true)});
  if (floats) {
    all.push_back({"float", 4, made.floating("float", 4)});
    all.push_back({"double", 8, made.floating("double", 8)});
  }
  return all;
}

inline std::vector<CType> c_structs(BtfBuilder& made, const std::vector<CType>& from, Machine machine) {
  const BtfBuilder::Id character = from[0].id, number = from[4].id, longest = from[6].id;
  const std::uint32_t word = from[6].size;
  const auto bytes = [&](const char* name, std::uint32_t size) {
    return CType{fmt::format("struct {}", name), size,
                 made.structure(name, size, {{"b", made.array(character, size)}})};
  };
  const auto longs = [&](const char* name, std::uint32_t count) {
    std::vector<BtfBuilder::Field> fields;
    for (std::uint32_t i = 0; i < count; ++i) fields.push_back({"x", longest, 8 * word * i});
    // One number alone is passed as that number is.
    return CType{fmt::format("struct {}", name), word * count, made.structure(name, word * count, fields), count == 1};
  };
  std::vector<CType> all = {bytes("s1", 1), bytes("s3", 3), bytes("s7", 7), bytes("s13", 13), bytes("s40", 40)};
  all.push_back({"struct s12", 12, made.structure("s12", 12, {{"b", made.array(number, 3)}})});
  for (const auto& [name, count] : {std::pair{"one", 1U}, {"two", 2U}, {"three", 3U}})
    all.push_back(longs(name, count));
  all.push_back({"struct empty", 0, made.structure("empty", 0)});
  all.push_back({"struct packed", 1 + word, made.structure("packed", 1 + word, {{"a", character}, {"b", longest, 8}})});
  all.push_back({"union either", 8, made.union_of("either", 8, {{"a", number}, {"b", made.array(character, 6)}})});
  if (machine != Machine::i386) all.push_back({"struct wide", 16, made.structure("wide", 16, {{"a", from[13].id}})});
  return all;
}

}  // namespace usdt::test
