// SPDX-License-Identifier: BSD-2-Clause
#include "locate/rust_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "dwarf/compiler.hpp"
#include "dwarf/die.hpp"

namespace usdt::locate {
namespace {

using arch::UserPlace;

/// A number that a register has.
struct Primitive {
  std::uint32_t size = 0;
  bool is_signed = false;
  bool floating = false;
  bool pointer = false;
  bool flag =
      false;  ///< 0 or 1 in a byte, of which LLVM makes one bit: in a pair the others of its register are anything
};

/// The ABI that rustc gives to a type.
struct RustAbi {
  enum class Kind : std::uint8_t { unknown, nothing, scalar, pair, aggregate };
  Kind kind = Kind::unknown;
  std::uint32_t size = 0;
  Primitive first, second = {};  ///< of a scalar, and of a pair
  std::uint32_t second_at = 0;
  bool floats = false;  ///< an aggregate has some, or may have
};
using AbiKind = RustAbi::Kind;

struct RustField {
  std::uint64_t offset = 0;
  std::uint64_t alignment = 0;
  RustAbi abi;
};

struct RustVariant {
  bool is_told = false;  ///< by a value of the discriminant; else it is there for all others
  std::vector<RustField> fields;
};

std::uint64_t aligned(std::uint64_t offset, std::uint64_t alignment) {
  return alignment == 0 ? offset : (offset + alignment - 1) / alignment * alignment;
}

/// "clang LLVM (rustc version 1.63.0)": 63 of version 1.
std::optional<unsigned> rustc_minor(Dwarf_Die die) {
  constexpr std::string_view words = "rustc version 1.";
  const std::string_view told = producer_of(die);
  const std::size_t at = told.find(words);
  unsigned minor = 0;
  if (at == told.npos) return std::nullopt;
  const char* const begin = told.data() + at + words.size();
  return std::from_chars(begin, told.data() + told.size(), minor).ec == std::errc() ? std::optional(minor)
                                                                                    : std::nullopt;
}

class RustLayouts {
 public:
  RustLayouts(const Types& types, std::optional<unsigned> minor) : types_(types), minor_(minor) {}

  RustAbi of(std::optional<Dwarf_Die> declared, unsigned depth = 0) {
    auto die = resolved(declared);
    if (!die || depth == kDeepestType || steps_ == 0) return {};
    const Type type = types_.type(*die);
    const int tag = dwarf_tag(&*die);
    if (tag == DW_TAG_base_type) return number(*die, type);
    if (tag == DW_TAG_pointer_type) return scalar({.size = type.size, .pointer = true});
    if (tag == DW_TAG_enumeration_type)
      return type.size == 0
                 ? none(*die)
                 : scalar({.size = type.size, .is_signed = type.is_signed, .flag = type.size == 1 && names_two(*die)});
    if (tag == DW_TAG_array_type) return array(*die, type, depth);
    if (tag != DW_TAG_structure_type) return {};
    RustAbi abi = structure(*die, depth);
    abi.size = type.size;
    return abi;
  }

 private:
  static RustAbi scalar(Primitive number) {
    return {.kind = AbiKind::scalar, .size = number.size, .first = number, .floats = number.floating};
  }
  static RustAbi aggregate(bool floats) { return {.kind = AbiKind::aggregate, .first = {}, .floats = floats}; }
  /// The ABI of a type without a size: nothing if its DIE states 0 bytes, else unknown.
  static RustAbi none(Dwarf_Die die) {
    return {.kind = own_number(die, DW_AT_byte_size) == std::uint64_t{0} ? AbiKind::nothing : AbiKind::unknown,
            .first = {}};
  }

  static RustAbi number(Dwarf_Die die, const Type& type) {
    if (type.size == 0) return none(die);
    const bool floating = own_number(die, DW_AT_encoding) == std::uint64_t{DW_ATE_float};
    if (floating && type.size != 4 && type.size != 8) return {};
    return scalar({.size = type.size,
                   .is_signed = type.is_signed,
                   .floating = floating,
                   .flag = own_number(die, DW_AT_encoding) == std::uint64_t{DW_ATE_boolean}});
  }

  bool names_two(Dwarf_Die enumeration) {
    unsigned names = 0;
    for_each_child(enumeration, steps_, [&](Dwarf_Die child) {
      names += dwarf_tag(&child) == DW_TAG_enumerator ? 1 : 0;
      return true;
    });
    return names <= 2;
  }

  RustAbi array(Dwarf_Die die, const Type& type, unsigned depth) {
    if (own_attribute(die, DW_AT_GNU_vector)) return {};
    const auto count = array_count(die);
    const RustAbi element = of(type_of(die), depth + 1);
    if (!count) return {};
    if (*count == 0 || element.kind == AbiKind::nothing) return {.kind = AbiKind::nothing, .first = {}};
    RustAbi abi = aggregate(element.floats || element.kind == AbiKind::unknown);
    abi.size = type.size;
    return type.size == 0 ? RustAbi() : abi;
  }

  /// Nothing: a member has no place.
  std::optional<std::vector<RustField>> fields_of(Dwarf_Die structure, unsigned depth) {
    std::vector<RustField> fields;
    bool known = true;
    for_each_child(structure, steps_, [&](Dwarf_Die child) {
      if (dwarf_tag(&child) == DW_TAG_variant_part) known = false;
      if (dwarf_tag(&child) != DW_TAG_member) return known;
      const auto at = own_number(child, DW_AT_data_member_location);
      const auto alignment = own_number(child, DW_AT_alignment);
      if (!at || !alignment || own_attribute(child, DW_AT_bit_size)) known = false;
      if (known) fields.push_back({*at, *alignment, of(type_of(child), depth + 1)});
      return known;
    });
    return known && steps_ != 0 ? std::optional(std::move(fields)) : std::nullopt;
  }

  RustAbi structure(Dwarf_Die die, unsigned depth) {
    std::optional<Dwarf_Die> variants;
    bool members = false;
    for_each_child(die, steps_, [&](Dwarf_Die child) {
      if (dwarf_tag(&child) == DW_TAG_variant_part) variants = child;
      members |= dwarf_tag(&child) == DW_TAG_member;
      return true;
    });
    // A type with members beside its variants is the state of a coroutine, an aggregate with rules of its own.
    if (variants && members) return {};
    if (variants) return enumeration(die, *variants, depth);
    const auto fields = fields_of(die, depth);
    return fields ? struct_of(die, *fields) : RustAbi();
  }

  /// Whether its alignment is that of a member; if not, it is packed, aligned by its source, or a vector.
  static bool is_plain(Dwarf_Die die, const std::vector<RustField>& fields) {
    std::uint64_t strictest = 1;
    for (const RustField& each : fields) strictest = std::max(strictest, each.alignment);
    return own_number(die, DW_AT_alignment) == strictest && strictest <= 8;
  }

  /// (layout.rs: univariant.)
  RustAbi struct_of(Dwarf_Die die, const std::vector<RustField>& all) const {
    std::vector<RustField> fields;
    std::ranges::copy_if(all, std::back_inserter(fields),
                         [](const RustField& each) { return each.abi.kind != AbiKind::nothing; });
    const std::uint64_t size = own_number(die, DW_AT_byte_size).value_or(0);
    if (fields.empty()) return size == 0 ? none(die) : RustAbi();
    if (!is_plain(die, all)) return {};
    const bool floats = std::ranges::any_of(
        fields, [](const RustField& each) { return each.abi.floats || each.abi.kind == AbiKind::unknown; });
    if (fields.size() > 2) return aggregate(floats);
    if (std::ranges::any_of(fields, [](const RustField& each) { return each.abi.kind == AbiKind::unknown; })) return {};
    if (fields.size() == 1)
      return fields[0].offset == 0 && fields[0].abi.size == size ? fields[0].abi : aggregate(floats);
    std::ranges::sort(fields, {}, &RustField::offset);
    if (fields[0].abi.kind != AbiKind::scalar || fields[1].abi.kind != AbiKind::scalar) return aggregate(floats);
    return pair_or_aggregate(fields[0], fields[1], size);
  }

  static RustAbi pair_or_aggregate(const RustField& first, const RustField& second, std::uint64_t size) {
    const std::uint64_t at = aligned(first.abi.size, second.alignment);
    const std::uint64_t whole = aligned(at + second.abi.size, std::max(first.alignment, second.alignment));
    if (first.offset != 0 || second.offset != at || size != whole)
      return aggregate(first.abi.floats || second.abi.floats);
    return {.kind = AbiKind::pair,
            .first = first.abi.first,
            .second = second.abi.first,
            .second_at = static_cast<std::uint32_t>(at)};
  }

  /// Nothing: a variant is not told of as rustc does.
  std::optional<std::vector<RustVariant>> variants_of(Dwarf_Die part, unsigned depth) {
    std::vector<RustVariant> all;
    bool known = true;
    for_each_child(part, steps_, [&](Dwarf_Die child) {
      if (dwarf_tag(&child) != DW_TAG_variant) return known;
      RustVariant& variant = all.emplace_back();
      variant.is_told = own_attribute(child, DW_AT_discr_value) || own_attribute(child, DW_AT_discr_list);
      unsigned members = 0;
      for_each_child(child, steps_, [&](Dwarf_Die member) {
        if (dwarf_tag(&member) != DW_TAG_member) return true;
        const auto body = resolved(type_of(member));
        const bool is_whole = own_number(member, DW_AT_data_member_location) == std::uint64_t{0};
        auto fields = body && is_whole && ++members == 1 ? fields_of(*body, depth + 1) : std::nullopt;
        known = fields.has_value();
        if (known) variant.fields = std::move(*fields);
        return known;
      });
      known &= members == 1;
      std::erase_if(variant.fields, [](const RustField& each) { return each.abi.kind == AbiKind::nothing; });
      return known;
    });
    return known && steps_ != 0 ? std::optional(std::move(all)) : std::nullopt;
  }

  static bool has_floats(const std::vector<RustVariant>& variants) {
    return std::ranges::any_of(variants, [](const RustVariant& variant) {
      return std::ranges::any_of(
          variant.fields, [](const RustField& each) { return each.abi.floats || each.abi.kind == AbiKind::unknown; });
    });
  }

  RustAbi enumeration(Dwarf_Die die, Dwarf_Die part, unsigned depth) {
    const auto variants = variants_of(part, depth);
    const auto discriminant = reference(own_attribute(part, DW_AT_discr));
    if (!variants || variants->empty()) return {};
    if (!discriminant) return variants->size() == 1 ? struct_of(die, variants->front().fields) : RustAbi();
    const auto dataful = std::ranges::count(*variants, false, &RustVariant::is_told);
    if (dataful == 0) return tagged(die, *discriminant, *variants, depth);
    if (dataful != 1) return {};
    // A niche: the discriminant is in a member of the variant that is there for all other values.
    const auto keeper = std::ranges::find(*variants, false, &RustVariant::is_told);
    const bool others_are_empty = std::ranges::all_of(
        *variants, [&](const RustVariant& each) { return &each == &*keeper || each.fields.empty(); });
    if (!others_are_empty) return aggregate(has_floats(*variants));
    return struct_of(die, keeper->fields);
  }

  /// A discriminant of its own, and behind it in each variant at most one scalar: both are scalars then.
  RustAbi tagged(Dwarf_Die die, Dwarf_Die discriminant, const std::vector<RustVariant>& variants, unsigned depth) {
    const auto at = own_number(discriminant, DW_AT_data_member_location);
    const auto alignment = own_number(discriminant, DW_AT_alignment);
    RustAbi tag = of(type_of(discriminant), depth + 1);
    tag.first.flag = tag.size == 1 && variants.size() <= 2;
    const std::uint64_t size = own_number(die, DW_AT_byte_size).value_or(0);
    if (at != std::uint64_t{0} || !alignment || tag.kind != AbiKind::scalar) return {};
    if (tag.size == size) return tag;
    std::vector<RustField> all{{0, *alignment, tag}};
    for (const RustVariant& each : variants) all.insert(all.end(), each.fields.begin(), each.fields.end());
    if (!is_plain(die, all)) return {};
    const RustField* common = nullptr;
    bool differs = false;  // by what only newer versions of rustc take for the same
    for (const RustVariant& each : variants) {
      if (each.fields.empty()) continue;
      const RustField& field = each.fields.front();
      if (each.fields.size() > 1) return aggregate(has_floats(variants));
      if (field.abi.kind == AbiKind::unknown) return {};
      if (field.abi.kind != AbiKind::scalar) return aggregate(has_floats(variants));
      if (common == nullptr) common = &field;
      const Primitive &one = common->abi.first, &other = field.abi.first;
      if (field.offset != common->offset || one.size != other.size || one.floating != other.floating)
        return aggregate(has_floats(variants));
      differs |= one.is_signed != other.is_signed || one.pointer != other.pointer;
    }
    if (common == nullptr) return {};
    const RustAbi pair = pair_or_aggregate(all.front(), *common, size);
    if (!differs || pair.kind != AbiKind::pair) return pair;
    constexpr unsigned last_strict = 63, first_lenient = 80;  // as these were found to do; in between is not known
    if (minor_ && *minor_ >= first_lenient) return pair;
    return minor_ && *minor_ <= last_strict ? aggregate(false) : RustAbi();
  }

  const Types& types_;
  std::optional<unsigned> minor_;
  std::uint64_t steps_ = kMostOfType;
};

UserPlace in_general(const arch::Arch& arch, std::uint32_t size) {
  UserPlace place{.where = UserPlace::Where::registers, .stack = 0, .parts = {}};
  const std::array registers{arch.user_calls.result, arch.user_calls.result_high};
  for (std::uint32_t at = 0; at < size; at += 8)
    place.parts.push_back({at, std::min(8U, size - at), registers[at / 8]});
  return place;
}

/// Each in the next register of its class.
UserPlace in_pair(const arch::Arch& arch, const RustAbi& abi) {
  UserPlace place{.where = UserPlace::Where::registers, .stack = 0, .parts = {}};
  const std::array general{arch.user_calls.result, arch.user_calls.result_high};
  std::size_t whole = 0;
  std::size_t floating = 0;
  for (const auto& [number, at] : {std::pair(abi.first, 0U), std::pair(abi.second, abi.second_at)})
    place.parts.push_back({at, number.size, number.floating ? arch.user_calls.vectors[floating++] : general[whole++]});
  return place;
}

bool has(const UserPlace& place, RegisterId reg) {
  return std::ranges::find(place.parts, reg, &arch::UserPart::reg) != place.parts.end();
}

}  // namespace

RustResult rust_result(const Types& types, const arch::Arch& arch, Dwarf_Die function) {
  constexpr std::uint32_t in_registers = 16;
  const auto declared = type_of(function);
  const RustAbi abi = RustLayouts(types, rustc_minor(function)).of(declared);
  const std::uint32_t size = types.type(declared).size;
  RustResult result;
  if (abi.kind == AbiKind::nothing) {
    result.place.where = UserPlace::Where::nowhere;
  } else if ((abi.kind == AbiKind::aggregate && size > in_registers) || size > 2 * in_registers) {
    result.place = {
        .where = UserPlace::Where::address_in_register, .stack = 0, .parts = {{0, 8, arch.user_calls.result}}};
    result.only_of_c = result.in_low = true;
    return result;
  } else if (abi.kind == AbiKind::scalar && !abi.floats) {
    result.place = in_general(arch, size);
  } else if (abi.kind == AbiKind::scalar) {
    result.place = {.where = UserPlace::Where::registers, .stack = 0, .parts = {{0, size, arch.user_calls.vectors[0]}}};
  } else if (abi.kind == AbiKind::pair && abi.first.size <= 8 && abi.second.size <= 8) {
    result.place = in_pair(arch, abi);
    result.only_rust_has = size <= 8;
    result.has_flag = abi.first.flag || abi.second.flag;
  } else if (abi.kind == AbiKind::aggregate && !abi.floats) {
    result.place = in_general(arch, size);
    result.only_of_c = size > 8;
  } else {
    result.reason = "of a type of which debug information does not tell where Rust leaves it";
  }
  result.in_low = has(result.place, arch.user_calls.result);
  result.in_high = has(result.place, arch.user_calls.result_high);
  return result;
}

}  // namespace usdt::locate
