// SPDX-License-Identifier: BSD-2-Clause
#include "locate/user_shapes.hpp"

#include <algorithm>
#include <span>

#include "dwarf/compiler.hpp"
#include "dwarf/types.hpp"

namespace usdt::locate {

using arch::Scalar;
using arch::UserShape;

namespace {

/// The functions of a class that the C++ ABI asks about.
enum class Special : std::uint8_t { none, destructor, copy, move, move_assignment, unclear };

/// Whether `die` is a reference to `structure`, const or not.
bool refers_to(const std::optional<Dwarf_Die>& die, Dwarf_Die structure, bool only_moved) {
  auto reference = die;
  if (!reference) return false;
  const int tag = dwarf_tag(&*reference);
  if (tag != DW_TAG_rvalue_reference_type && (only_moved || tag != DW_TAG_reference_type)) return false;
  const auto target = resolved(type_of(*reference));
  return target && target->addr == structure.addr;
}

/// A constructor from an object of the same class.
Special copies_by(Dwarf_Die parameter) {
  auto reference = type_of(parameter);
  return reference && dwarf_tag(&*reference) == DW_TAG_rvalue_reference_type ? Special::move : Special::copy;
}

Special special_of(Dwarf_Die function, Dwarf_Die structure) {
  const std::string_view name = own_name(function);
  if (name.starts_with('~')) return Special::destructor;
  const std::string_view own = own_name(structure);
  const bool constructor = name == own.substr(0, own.find('<'));
  if (!constructor && name != "operator=") return Special::none;
  std::vector<Dwarf_Die> parameters;
  bool is_template = false;
  std::uint64_t steps = kMostOfType;
  for_each_child(function, steps, [&](Dwarf_Die child) {
    const int tag = dwarf_tag(&child);
    is_template |= tag == DW_TAG_template_type_parameter || tag == DW_TAG_GNU_template_parameter_pack;
    if (tag == DW_TAG_formal_parameter && !own_attribute(child, DW_AT_artificial)) parameters.push_back(child);
    return true;
  });
  if (is_template || parameters.empty() || !refers_to(type_of(parameters[0]), structure, !constructor))
    return Special::none;
  if (!constructor) return Special::move_assignment;
  return parameters.size() == 1 ? copies_by(parameters[0]) : Special::unclear;  // others may have default arguments
}

/// The functions of one kind that a class declares. Those with a condition ("~T() requires ...", C++20) are listed
/// whether it applies or not, and nothing tells which of several counts.
struct Declared {
  unsigned trivial = 0;  ///< defaulted where they are declared, or not declared at all
  unsigned deleted = 0;
  unsigned others = 0;

  [[nodiscard]] bool is_unclear() const { return (trivial != 0) + (deleted != 0) + (others != 0) > 1; }
};

/// The special member functions that a class declares: they decide how its objects are passed.
class SpecialFunctions {
 public:
  /// GCC says of functions whether they are defaulted or deleted since it writes DWARF 5.
  explicit SpecialFunctions(Dwarf_Die structure) : structure_(structure), tells_(unit_version(structure) >= 5) {}

  void add(Dwarf_Die function) {
    const Special special = special_of(function, structure_);
    if (special == Special::move_assignment) assigned_ = true;
    if (special == Special::unclear) unclear_ = true;
    Declared* of = of_kind(special);
    if (of == nullptr) return;
    // A function that nobody has written, as of lambda expressions and classes within functions, is artificial.
    const bool is_default = own_number(function, DW_AT_defaulted) == std::uint64_t{DW_DEFAULTED_in_class} ||
                            flag(own_attribute(function, DW_AT_artificial));
    ++(own_attribute(function, DW_AT_deleted) ? of->deleted : is_default ? of->trivial : of->others);
  }

  /// Nothing: it is not known. `conditions`: the class may have some.
  [[nodiscard]] std::optional<bool> are_trivial(bool conditions) const {
    if (unclear_ || destructor_.deleted != 0) return std::nullopt;
    for (const Declared& each : {destructor_, copy_, move_})
      if (each.is_unclear()) return std::nullopt;
    // GCC 12 counts a constructor whose condition does not apply, GCC 16 does not.
    const bool mixed = copy_.others + move_.others != 0 && copy_.trivial + move_.trivial != 0;
    if (mixed && conditions) return std::nullopt;
    const bool some_copy = copy_.trivial + copy_.others + move_.trivial + move_.others != 0;
    if (copy_.deleted + move_.deleted != 0 && !some_copy) return false;
    if (destructor_.others + copy_.others + move_.others != 0) return tells_ ? std::optional(false) : std::nullopt;
    if (assigned_ && !some_copy) return std::nullopt;  // its copies are deleted without a word
    return true;
  }

 private:
  Declared* of_kind(Special special) {
    if (special == Special::destructor) return &destructor_;
    if (special == Special::copy) return &copy_;
    return special == Special::move ? &move_ : nullptr;
  }

  Dwarf_Die structure_;
  bool tells_;
  Declared destructor_, copy_, move_;
  bool assigned_ = false;
  bool unclear_ = false;
};

}  // namespace

/// By value as bytes, or by the address of an object that a copy constructor made: "non-trivial for the purposes of
/// calls" in the Itanium C++ ABI. Clang says which since it writes DWARF 5. GCC does not, but lists the functions that
/// decide it, and says of those whether they are defaulted or deleted.
UserShape::Kind UserShapes::passed_as(Dwarf_Die structure, Language language, unsigned depth) const {
  using Kind = UserShape::Kind;
  const auto convention = own_number(structure, DW_AT_calling_convention);
  if (convention == std::uint64_t{DW_CC_pass_by_reference}) return Kind::by_reference;
  if (language == Language::c || language == Language::go || convention == std::uint64_t{DW_CC_pass_by_value})
    return Kind::structure;
  if (depth > kDeepestType) return Kind::unknown;
  bool trivial = true;  // what its members and its base classes make of it
  bool known = true;
  SpecialFunctions special(structure);
  const auto judge_part = [&](std::optional<Dwarf_Die> part) {
    auto inner = resolved(std::move(part));
    if (inner && dwarf_tag(&*inner) == DW_TAG_array_type) inner = resolved(type_of(*inner));
    if (!inner || !is_structure(dwarf_tag(&*inner))) return;
    const Kind kind = passed_as(*inner, language, depth + 1);
    if (kind == Kind::by_reference) trivial = false;
    if (kind == Kind::unknown) known = false;
  };
  std::uint64_t steps = kMostOfType;
  for_each_child(structure, steps, [&](Dwarf_Die child) {
    const int tag = dwarf_tag(&child);
    const bool is_virtual = own_number(child, DW_AT_virtuality).value_or(0) != 0;
    if (is_virtual && (tag == DW_TAG_subprogram || tag == DW_TAG_inheritance)) trivial = false;
    if (tag == DW_TAG_subprogram) special.add(child);
    const bool is_static = own_attribute(child, DW_AT_external) || own_attribute(child, DW_AT_declaration);
    if (tag == DW_TAG_inheritance || (tag == DW_TAG_member && !is_static)) judge_part(type_of(child));
    return trivial;
  });
  const bool conditions = has_conditions(structure) && names_.qualified(structure).find('<') != std::string::npos;
  const auto functions = special.are_trivial(conditions);
  if (!trivial || functions == false) return Kind::by_reference;
  return known && functions && steps != 0 ? Kind::structure : Kind::unknown;
}

void UserShapes::flatten_scalar(UserShape& shape, Dwarf_Die die, std::uint64_t offset) const {
  const Type what = types_.type(die);
  const auto encoding = own_number(die, DW_AT_encoding).value_or(0);
  Scalar scalar{.kind = Scalar::Kind::integer,
                .offset = static_cast<std::uint32_t>(offset),
                .size = what.size,
                .pointer = what.kind == TypeKind::pointer || what.kind == TypeKind::text};
  std::uint32_t alignment = what.size;
  if (encoding == DW_ATE_complex_float) {
    scalar.size /= 2;
    scalar.kind = scalar.size <= 8 ? Scalar::Kind::floating : Scalar::Kind::other;
    alignment = scalar.size;
    if (scalar.size != 4 && scalar.size != 8) scalar.kind = Scalar::Kind::other;
    shape.scalars.push_back(scalar);
    scalar.offset += scalar.size;
  } else if (encoding == DW_ATE_float) {
    const bool half = what.size == 2 && arch_.call_traits.passes_halves;  // whatever its format
    scalar.kind = half || what.size == 4 || what.size == 8 ? Scalar::Kind::floating : Scalar::Kind::other;
    const bool has_parts = what.kind == TypeKind::floating && what.size > 8;
    const bool x87 = has_parts && types_.number_of(die).format == FloatFormat::x87;
    if (has_parts) scalar.kind = x87 ? Scalar::Kind::x87 : arch_.numbers.quad;
  } else if (dwarf_tag(&die) == DW_TAG_ptr_to_member_type && what.kind == TypeKind::structure) {
    scalar.size = alignment = arch_.word_size;  // to a function: two words
    shape.scalars.push_back(scalar);
    scalar.offset += scalar.size;
  } else if (what.kind == TypeKind::structure || what.kind == TypeKind::array || what.size == 0) {
    scalar.kind = Scalar::Kind::other;
  }
  alignment = scalar.kind == Scalar::Kind::other ? arch_.other_alignment(alignment) : arch_.number_alignment(alignment);
  shape.alignment = std::max(shape.alignment, alignment);
  if (alignment != 0 && offset % alignment != 0) shape.misaligned = true;
  shape.scalars.push_back(scalar);
}

/// Compilers differ about those of one element; where larger ones are depends on what the processor has.
void UserShapes::flatten_vector(UserShape& shape, Dwarf_Die die, std::uint64_t offset) const {
  const auto size = static_cast<std::uint32_t>(types_.size_of(die, 0).value_or(0));
  const bool known = arch_.call_traits.passes_vectors && (size == 8 || size == 16) && array_count(die).value_or(1) > 1;
  if (!known) return shape.scalars.push_back({});
  shape.alignment = std::max(shape.alignment, size);
  if (offset % size != 0) shape.misaligned = true;
  shape.scalars.push_back({.kind = Scalar::Kind::vector, .offset = static_cast<std::uint32_t>(offset), .size = size});
}

void UserShapes::flatten_members(UserShape& shape, Dwarf_Die structure, std::uint64_t offset, unsigned depth,
                                 std::uint64_t& steps) const {
  for_each_child(structure, steps, [&](Dwarf_Die child) {
    const int tag = dwarf_tag(&child);
    if (tag == DW_TAG_variant_part) shape.scalars.push_back({});
    if (tag != DW_TAG_member && tag != DW_TAG_inheritance) return true;
    if (flag(own_attribute(child, DW_AT_external)) || flag(own_attribute(child, DW_AT_declaration))) return true;
    shape.empty = false;
    const auto member = resolved(type_of(child));
    auto at = own_number(child, DW_AT_data_member_location);
    if (const auto bits = own_number(child, DW_AT_bit_size); bits) {
      shape.bit_fields = true;
      // A bit-field counts as the bytes it touches, without an alignment; where DWARF before 4 counts its bits from the
      // other end, as all bytes of its type.
      const auto first = own_number(child, DW_AT_data_bit_offset);
      const std::uint64_t width = first ? *bits : 8 * (member ? types_.size_of(*member, 0).value_or(8) : 8);
      const std::uint64_t bit = first.value_or(8 * at.value_or(0));
      shape.scalars.push_back({.kind = Scalar::Kind::integer,
                               .offset = static_cast<std::uint32_t>(offset + bit / 8),
                               .size = static_cast<std::uint32_t>(1 + (bit % 8 + width - 1) / 8)});
      return true;
    }
    if (!at && dwarf_tag(&structure) != DW_TAG_union_type) {
      // A virtual base, whose place is computed.
      if (own_attribute(child, DW_AT_data_member_location)) shape.scalars.push_back({});
      at = 0;
    }
    if (own_attribute(child, DW_AT_alignment)) shape.overaligned = true;
    if (member) flatten(shape, *member, offset + at.value_or(0), depth + 1, steps);
    return true;
  });
}

/// A text or a list of C++'s library is shown by what its pointers lead to.
bool UserShapes::is_of_library(Dwarf_Die structure) const {
  return language_of(structure) == Language::cpp && names_.qualified(structure).starts_with("std::");
}

/// Adds the scalars of `die`, whose first byte is at `offset`.
void UserShapes::flatten(UserShape& shape, Dwarf_Die die, std::uint64_t offset, unsigned depth,
                         std::uint64_t& steps) const {
  if (depth == kDeepestType || steps == 0 || offset > UINT32_MAX) {
    shape.scalars.push_back({});  // not known: nothing is guessed behind it
    return;
  }
  const int tag = dwarf_tag(&die);
  if (is_structure(tag)) {
    if (own_attribute(die, DW_AT_alignment)) shape.overaligned = true;
    shape.unions |= tag == DW_TAG_union_type;
    const std::size_t first = shape.scalars.size();
    flatten_members(shape, die, offset, depth, steps);
    const std::span added = std::span(shape.scalars).subspan(first);
    if (std::ranges::any_of(added, &Scalar::pointer) && is_of_library(die))
      for (Scalar& each : added) each.of_library = each.pointer ? static_cast<std::uint32_t>(offset + 1) : 0;
  } else if (tag == DW_TAG_array_type) {
    if (flag(own_attribute(die, DW_AT_GNU_vector))) return flatten_vector(shape, die, offset);
    const auto element = resolved(type_of(die));
    const auto size = element ? types_.size_of(*element, 0) : std::nullopt;
    const auto told = array_count(die);
    // Clang passes what ends with a flexible array in memory, GCC as if it had none; larger objects are there anyway.
    constexpr std::uint32_t in_registers = 16;
    if (!told && shape.size <= in_registers) shape.scalars.push_back({});
    std::uint64_t count = told.value_or(0);
    shape.arrays |= count > 1;
    // The first element of an array too long for registers is enough: only its alignment is asked.
    if (shape.size > UserShape::flat_size) count = std::min<std::uint64_t>(count, 1);
    for (std::uint64_t i = 0; i < count && element && size && steps != 0; ++i, --steps)
      flatten(shape, *element, offset + i * *size, depth + 1, steps);
  } else {
    flatten_scalar(shape, die, offset);
  }
}

UserShape UserShapes::of(const std::optional<Dwarf_Die>& declared, Language language) const {
  UserShape shape;
  auto die = resolved(declared);
  if (!die) {
    if (!declared) shape.kind = UserShape::Kind::nothing;
    auto last = declared;  // "const void" and its typedefs come to void too; a loop does not
    for (unsigned step = 0; last && step < kLongestChain; ++step) last = type_of(*last);
    if (!last) shape.kind = UserShape::Kind::nothing;
    return shape;
  }
  const auto size = types_.size_of(*die);
  if (!size || *size > UINT32_MAX) return shape;
  shape.size = static_cast<std::uint32_t>(*size);
  std::uint64_t steps = kMostOfType;
  shape.empty = true;
  flatten(shape, *die, 0, 0, steps);
  const int tag = dwarf_tag(&*die);
  if (is_structure(tag)) {
    shape.kind = passed_as(*die, language);
    // GCC writes a transparent union, as glibc's __SOCKADDR_ARG, without what it has. A class of C++ without members
    // has one byte.
    if (shape.empty && shape.size > 1 && !shape.overaligned) shape.kind = UserShape::Kind::unknown;
  } else {
    shape.empty = false;
    shape.kind = shape.scalars.empty() ? UserShape::Kind::unknown : UserShape::Kind::scalar;
  }
  if (shape.scalars.empty() && !shape.empty) shape.kind = UserShape::Kind::unknown;
  return shape;
}

}  // namespace usdt::locate
