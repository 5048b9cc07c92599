// SPDX-License-Identifier: BSD-2-Clause
// Compile-time building of a machine's register table and of the hash that finds a name in it. Private to arch/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "arch/arch.hpp"

namespace usdt::arch {

constexpr char to_lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Spreads register names (at most 5 bytes, in either case) well enough that a lookup probes 1.3 slots on average.
constexpr std::size_t hash_name(std::string_view name) noexcept {
  std::uint32_t hash = 2166136261U;
  for (const char c : name) hash = (hash ^ static_cast<std::uint8_t>(to_lower(c))) * 16777619U;
  return hash ^ (hash >> 15);
}

/// `Count` registers of which none is known yet.
template <std::size_t Count>
constexpr std::array<RegisterId, Count> no_registers() {
  std::array<RegisterId, Count> none{};
  none.fill(RegisterId::none);
  return none;
}

/// The names PREFIX0 .. PREFIX(Count-1), as text that lives as long as the program.
template <std::size_t Count>
class NumberedNames {
 public:
  constexpr explicit NumberedNames(std::string_view prefix, std::string_view suffix = "") {
    for (std::size_t i = 0; i < Count; ++i) {
      auto& name = names_[i];
      for (const char c : prefix) name.text[name.size++] = c;
      if (i >= 10) name.text[name.size++] = static_cast<char>('0' + i / 10);
      name.text[name.size++] = static_cast<char>('0' + i % 10);
      for (const char c : suffix) name.text[name.size++] = c;
    }
  }
  [[nodiscard]] constexpr std::string_view operator[](std::size_t i) const {
    return {names_[i].text.data(), names_[i].size};
  }
  [[nodiscard]] static constexpr std::size_t size() noexcept { return Count; }

 private:
  struct Name {
    std::array<char, 7> text{};
    std::uint8_t size = 0;
  };
  std::array<Name, Count> names_{};
};

/// A register table under construction. Adding more than `Capacity` names, or one name twice, does not compile.
template <std::size_t Capacity>
struct RegisterTable {
  static constexpr std::size_t kSlots = 1024;
  static_assert(Capacity * 2 <= kSlots, "the hash stays at most half full");

  std::array<Register, Capacity> registers{};
  std::array<std::uint16_t, kSlots> slots{};
  std::size_t count = 0;

  constexpr void add(const Register& entry) {
    std::size_t slot = hash_name(entry.name) % kSlots;
    while (slots[slot] != 0) {
      if (registers[slots[slot] - 1U].name == entry.name) throw "register named twice";
      slot = (slot + 1) % kSlots;
    }
    registers[count++] = entry;
    slots[slot] = static_cast<std::uint16_t>(count);
  }

  /// The register called `name`; that there is none does not compile.
  [[nodiscard]] constexpr RegisterId id(std::string_view name) const {
    for (std::size_t i = 0; i < count; ++i) {
      if (registers[i].name == name) return static_cast<RegisterId>(i);
    }
    throw "no such register";
  }
  template <std::size_t Count>
  [[nodiscard]] constexpr std::array<RegisterId, Count> ids(const std::string_view (&names)[Count]) const {
    std::array<RegisterId, Count> found{};
    for (std::size_t i = 0; i < Count; ++i) found[i] = id(names[i]);
    return found;
  }

  /// Gives the registers of `names` the places from `at` on.
  template <std::size_t Size, std::size_t Count>
  constexpr void place(std::array<RegisterId, Size>& order, std::size_t at, const NumberedNames<Count>& names,
                       std::size_t how_many = Count) const {
    for (std::size_t i = 0; i < how_many; ++i) order[at + i] = id(names[i]);
  }
  template <std::size_t Size, std::size_t Count>
  constexpr void place(std::array<RegisterId, Size>& order, std::size_t at,
                       const std::string_view (&names)[Count]) const {
    for (std::size_t i = 0; i < Count; ++i) order[at + i] = id(names[i]);
  }
  /// The first `Count` of `names`.
  template <std::size_t Count, std::size_t All>
  [[nodiscard]] constexpr std::array<RegisterId, Count> first(const NumberedNames<All>& names) const {
    std::array<RegisterId, Count> found{};
    place(found, 0, names, Count);
    return found;
  }

  /// Every name of `names` as floating-point or vector registers that are parts of those of `canon`.
  template <std::size_t Count>
  constexpr void add_vectors(const NumberedNames<Count>& names, std::uint16_t bits, const NumberedNames<Count>& canon) {
    for (std::size_t i = 0; i < Count; ++i) add({names[i], canon[i], bits, 0, RegClass::fp, -1});
  }

  [[nodiscard]] constexpr std::span<const Register> all() const { return {registers.data(), count}; }
};

}  // namespace usdt::arch
