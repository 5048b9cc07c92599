// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "dwarf/base_types.hpp"
#include "dwarf/compiler.hpp"

namespace usdt::dwarf {
namespace {

using arch::Scalar;
using arch::UserShape;

/// DIEs looked at to find the scalars of one type, and enumerators believed of one enum.
constexpr std::uint64_t most_members = 16384;
/// How deep a declaration is spelt; hand-written ones have a handful of stars and parentheses.
constexpr unsigned deepest_declaration = 24;
/// Bytes of a spelt type before the rest of it becomes "...".
constexpr std::size_t longest_type = 4096;
/// Dimensions of an array; the rest is left away.
constexpr std::size_t most_dimensions = 64;

bool is_qualifier(int tag) {
  switch (tag) {
    case DW_TAG_const_type:
    case DW_TAG_volatile_type:
    case DW_TAG_restrict_type:
    case DW_TAG_atomic_type:
    case DW_TAG_immutable_type:
    case DW_TAG_packed_type:
    case DW_TAG_shared_type:
      return true;
    default:
      return false;
  }
}

std::string_view qualifier(int tag) {
  switch (tag) {
    case DW_TAG_const_type:
      return "const";
    case DW_TAG_volatile_type:
      return "volatile";
    case DW_TAG_restrict_type:
      return "restrict";
    case DW_TAG_atomic_type:
      return "_Atomic";
    default:
      return {};
  }
}

std::optional<std::uint64_t> own_number(Dwarf_Die die, unsigned name) { return number(own_attribute(die, name)); }

bool is_signed(std::uint64_t encoding) { return encoding == DW_ATE_signed || encoding == DW_ATE_signed_char; }

/// Whether some enumerator is negative: GCC before 8 and DWARF 2 name no underlying type.
bool has_negative(Dwarf_Die enumeration) {
  bool negative = false;
  std::uint64_t steps = most_members;
  for_each_child(enumeration, steps, [&negative](Dwarf_Die child) {
    auto value = own_attribute(child, DW_AT_const_value);
    Dwarf_Sword bits = 0;
    const bool sdata = value && dwarf_whatform(&*value) == DW_FORM_sdata;
    negative = sdata && dwarf_formsdata(&*value, &bits) == 0 && bits < 0;
    return !negative;
  });
  return negative;
}

bool enumeration_is_signed(Dwarf_Die enumeration) {
  if (const auto underlying = resolved(reference(own_attribute(enumeration, DW_AT_type))))
    return is_signed(own_number(*underlying, DW_AT_encoding).value_or(DW_ATE_unsigned));
  if (const auto encoding = own_number(enumeration, DW_AT_encoding)) return is_signed(*encoding);
  return has_negative(enumeration);
}

/// How many elements an array has behind its first dimensions; nothing where one has no bound.
std::optional<std::uint64_t> array_count(Dwarf_Die array, unsigned dimension = 0) {
  const auto counts = dimensions(array);
  if (counts.size() <= dimension) return std::nullopt;
  std::uint64_t product = 1;
  for (const auto& count : counts) {
    if (dimension != 0) {
      --dimension;
    } else if (!count || __builtin_mul_overflow(product, *count, &product)) {
      return std::nullopt;
    }
  }
  return product;
}

std::string array_bounds(Dwarf_Die array, unsigned dimension) {
  std::string bounds;
  const auto counts = dimensions(array);
  for (std::size_t i = dimension; i < counts.size() && bounds.size() < longest_type; ++i)
    bounds += counts[i] ? fmt::format("[{}]", *counts[i]) : "[]";
  return bounds.empty() ? "[]" : bounds;
}

/// Of a pointer to a member of C++: it is two words then, of which the second one is added to the object's address.
bool leads_to_function(Dwarf_Die pointer) {
  auto target = resolved(type_of(pointer));
  return target && dwarf_tag(&*target) == DW_TAG_subroutine_type;
}

/// A space between two words, none after '*', '&' and before '['.
std::string joined(std::string_view base, std::string_view inner) {
  if (inner.empty()) return std::string(base);
  return fmt::format("{} {}", base, inner);
}

std::string_view keyword(int tag) {
  switch (tag) {
    case DW_TAG_structure_type:
      return "struct";
    case DW_TAG_union_type:
      return "union";
    case DW_TAG_class_type:
      return "class";
    case DW_TAG_enumeration_type:
      return "enum";
    default:
      return {};
  }
}

}  // namespace

Language language_of(Dwarf_Die die) {
  Dwarf_Die unit;
  if (dwarf_diecu(&die, &unit, nullptr, nullptr) == nullptr) return Language::other;
  switch (dwarf_srclang(&unit)) {
    case DW_LANG_C:
    case DW_LANG_C89:
    case DW_LANG_C99:
    case DW_LANG_C11:
    case 0x2c:  // DW_LANG_C17
    case DW_LANG_ObjC:
    case DW_LANG_Mips_Assembler:
      return Language::c;
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case 0x2b:  // DW_LANG_C_plus_plus_17
    case 0x2e:  // DW_LANG_C_plus_plus_20
    case DW_LANG_ObjC_plus_plus:
      return Language::cpp;
    case DW_LANG_Go:
      return Language::go;
    default:
      return Language::other;
  }
}

bool is_structure(int tag) {
  return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

bool is_pointer(int tag) {
  return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type;
}

namespace {

std::optional<std::int64_t> bound(Dwarf_Die range, unsigned name) {
  const auto at = own_attribute(range, name);
  const auto bits = at ? constant(*at) : std::nullopt;
  return bits ? std::optional(static_cast<std::int64_t>(*bits)) : std::nullopt;
}

/// Elements of one dimension; nothing: that is not told, or only known at run time.
std::optional<std::uint64_t> count_of(Dwarf_Die range, std::int64_t first) {
  if (const auto count = own_number(range, DW_AT_count)) return count;
  const auto last = bound(range, DW_AT_upper_bound);
  if (!last) return std::nullopt;
  if (own_attribute(range, DW_AT_lower_bound)) {
    const auto lower = bound(range, DW_AT_lower_bound);
    if (!lower) return std::nullopt;
    first = *lower;
  }
  // (No elements: the last is before the first, also as the largest unsigned number of 32 bits.)
  const std::uint64_t count = static_cast<std::uint64_t>(*last) - static_cast<std::uint64_t>(first) + 1;
  return static_cast<std::int64_t>(count) < 0 ? 0 : count;
}

/// Languages whose arrays begin at 1 if nothing is said (DWARF 5, 7.12), and those among them that keep the elements of
/// the first dimension next to each other.
struct ArrayRules {
  std::int64_t first = 0;
  bool column_major = false;
};
ArrayRules array_rules(Dwarf_Die die) {
  Dwarf_Die unit;
  if (dwarf_diecu(&die, &unit, nullptr, nullptr) == nullptr) return {};
  switch (dwarf_srclang(&unit)) {
    case DW_LANG_Fortran77:
    case DW_LANG_Fortran90:
    case DW_LANG_Fortran95:
    case DW_LANG_Fortran03:
    case DW_LANG_Fortran08:
    case 0x2d:  // DW_LANG_Fortran18
      return {1, true};
    case DW_LANG_Ada83:
    case DW_LANG_Ada95:
    case DW_LANG_Cobol74:
    case DW_LANG_Cobol85:
    case DW_LANG_Modula2:
    case DW_LANG_Pascal83:
    case DW_LANG_PLI:
      return {1, false};
    default:
      return {};
  }
}

}  // namespace

std::vector<std::optional<std::uint64_t>> dimensions(Dwarf_Die array) {
  std::vector<std::optional<std::uint64_t>> counts;
  const ArrayRules rules = array_rules(array);
  std::uint64_t steps = most_members;
  for_each_child(array, steps, [&counts, &rules](Dwarf_Die child) {
    if (dwarf_tag(&child) != DW_TAG_subrange_type) return true;
    counts.push_back(count_of(child, rules.first));
    return counts.size() < most_dimensions;
  });
  const auto ordering = own_number(array, DW_AT_ordering);
  if (ordering ? *ordering == DW_ORD_col_major : rules.column_major) std::ranges::reverse(counts);
  return counts;
}

std::string why_no_array(Dwarf_Die array) {
  if (own_attribute(array, DW_AT_data_location))
    return "an array that a descriptor leads to, whose bounds are known only at run time";
  const auto has_stride = [](Dwarf_Die die) {
    return own_attribute(die, DW_AT_byte_stride) || own_attribute(die, DW_AT_bit_stride);
  };
  bool apart = has_stride(array);
  bool at_run_time = false;
  std::uint64_t steps = most_members;
  for_each_child(array, steps, [&](Dwarf_Die child) {
    if (dwarf_tag(&child) != DW_TAG_subrange_type) return true;
    apart = apart || has_stride(child);
    for (const unsigned name : {DW_AT_count, DW_AT_upper_bound, DW_AT_lower_bound})
      at_run_time = at_run_time || (own_attribute(child, name) && !bound(child, name));
    return true;
  });
  if (at_run_time) return "an array whose bounds are known only at run time";
  return apart ? "an array whose elements are not next to each other" : "";
}

std::optional<Dwarf_Die> resolved(std::optional<Dwarf_Die> die) {
  for (unsigned step = 0; die && step < longest_chain; ++step) {
    const int tag = dwarf_tag(&*die);
    if (tag != DW_TAG_typedef && !is_qualifier(tag)) {
      const auto in_type_unit = reference(own_attribute(*die, DW_AT_signature));
      return in_type_unit ? in_type_unit : die;
    }
    die = type_of(*die);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> Types::size_of(Dwarf_Die die, unsigned depth, unsigned dimension) const {
  if (depth == deepest_declaration) return std::nullopt;
  if (const auto size = own_number(die, DW_AT_byte_size); size && dimension == 0) return size;
  const int tag = dwarf_tag(&die);
  if (is_pointer(tag)) return arch_.word_size;
  if (tag == DW_TAG_ptr_to_member_type) return std::uint64_t{arch_.word_size} * (leads_to_function(die) ? 2 : 1);
  if (tag == DW_TAG_enumeration_type) {
    const auto underlying = resolved(reference(own_attribute(die, DW_AT_type)));
    return underlying ? size_of(*underlying, depth + 1) : std::nullopt;
  }
  if (tag != DW_TAG_array_type) return std::nullopt;
  const auto element = resolved(type_of(die));
  const auto one = element ? size_of(*element, depth + 1) : std::nullopt;
  const auto count = array_count(die, dimension);
  std::uint64_t size = 0;
  if (!one || !count || __builtin_mul_overflow(*one, *count, &size)) return std::nullopt;
  return size;
}

bool Types::is_char(const std::optional<Dwarf_Die>& die) const {
  const auto base = resolved(die);
  if (!base || own_number(*base, DW_AT_byte_size) != 1U) return false;
  auto copy = *base;
  if (dwarf_tag(&copy) != DW_TAG_base_type) return false;
  const std::string_view name = own_name(*base);
  return name == "char" || name == "char8_t";
}

Type Types::type(const std::optional<Dwarf_Die>& declared, unsigned dimension) const {
  Type type;
  auto die = resolved(declared);
  if (!die) return type;
  const auto size = size_of(*die, 0, dimension);
  type.size = size && *size <= UINT32_MAX ? static_cast<std::uint32_t>(*size) : 0;
  const int tag = dwarf_tag(&*die);
  if (tag == DW_TAG_base_type) {
    type = base_type(*die, type.size, arch_).type;
  } else if (tag == DW_TAG_enumeration_type) {
    type.kind = TypeKind::enumeration;
    type.is_signed = enumeration_is_signed(*die);
  } else if (is_pointer(tag)) {
    type.kind = tag == DW_TAG_pointer_type && is_char(type_of(*die)) ? TypeKind::text : TypeKind::pointer;
  } else if (tag == DW_TAG_array_type || tag == DW_TAG_string_type) {
    type.kind = TypeKind::array;
  } else if (tag == DW_TAG_subroutine_type && size) {
    type.kind = TypeKind::pointer;  // Go: a value of that type leads to a function
  } else if (tag == DW_TAG_ptr_to_member_type && !leads_to_function(*die)) {
    type.is_signed = true;  // the member's offset, -1 for none
  } else if (tag != DW_TAG_unspecified_type) {
    type.kind = TypeKind::structure;
  } else {
    type = {.size = arch_.word_size, .is_signed = false, .kind = TypeKind::pointer};  // decltype(nullptr)
  }
  return type;
}

BaseType Types::number_of(const std::optional<Dwarf_Die>& declared, unsigned dimension) const {
  BaseType found{.type = type(declared, dimension)};
  auto die = resolved(declared);
  if (!die) return found;
  const int tag = dwarf_tag(&*die);
  if (tag == DW_TAG_base_type) return base_type(*die, found.type.size, arch_);
  if (tag == DW_TAG_array_type) found.no_number = why_no_array(*die);
  if (tag == DW_TAG_string_type && own_number(*die, DW_AT_byte_size).value_or(0) == 0)
    found.no_number = "a text whose length is known only at run time";
  found.swapped = tag == DW_TAG_enumeration_type && found.type.size > 1 && is_swapped(*die);
  return found;
}

std::string Types::spell_named(Dwarf_Die die) const {
  const int tag = dwarf_tag(&die);
  std::string name = names_.qualified(die);
  if (name.empty()) name = std::string(own_name(die));
  if (const auto body = name.empty() ? reference(own_attribute(die, DW_AT_signature)) : std::nullopt)
    name = names_.qualified(*body);
  const bool wants_keyword = language_of(die) == Language::c || name.empty();
  if (const auto word = keyword(tag); !word.empty() && wants_keyword)
    return name.empty() ? fmt::format("{} {{...}}", word) : fmt::format("{} {}", word, name);
  return name.empty() ? "?" : name;
}

std::string Types::spell_parameters(Dwarf_Die function, unsigned depth) const {
  std::string all;
  std::uint64_t steps = most_members;
  for_each_child(function, steps, [&](Dwarf_Die child) {
    const int tag = dwarf_tag(&child);
    if (tag != DW_TAG_formal_parameter && tag != DW_TAG_unspecified_parameters) return true;
    if (!all.empty()) all += ", ";
    all += tag == DW_TAG_unspecified_parameters ? "..." : spell(type_of(child), {}, depth + 1);
    return all.size() < longest_type;
  });
  if (all.empty() && language_of(function) == Language::c) return "void";
  return all;
}

/// C declarations are written from the inside out: `inner` is what is spelt already.
std::string Types::spell(const std::optional<Dwarf_Die>& declared, std::string inner, unsigned depth) const {
  if (!declared) return joined("void", inner);
  if (depth == deepest_declaration || inner.size() > longest_type) return joined("...", inner);
  Dwarf_Die die = *declared;
  const int tag = dwarf_tag(&die);
  const auto target = is_structure(tag) ? std::nullopt : type_of(die);
  auto aim = target;
  const int target_tag = aim ? dwarf_tag(&*aim) : 0;
  const bool wrap = target_tag == DW_TAG_array_type || target_tag == DW_TAG_subroutine_type;
  const auto behind = [&](std::string_view sign) {
    std::string spelt = fmt::format("{}{}", sign, inner);
    return spell(target, wrap ? fmt::format("({})", spelt) : std::move(spelt), depth + 1);
  };
  if (is_qualifier(tag)) {
    const auto word = qualifier(tag);
    if (word.empty()) return spell(target, std::move(inner), depth + 1);
    // Of a pointer it stands behind the star, of anything else before the name.
    if (is_pointer(target_tag) && own_name(*aim).empty())
      return spell(target, inner.empty() ? std::string(word) : fmt::format("{} {}", word, inner), depth + 1);
    if (wrap) return spell(target, std::move(inner), depth + 1);
    return fmt::format("{} {}", word, spell(target, std::move(inner), depth + 1));
  }
  const bool nameless_in_c = is_pointer(tag) || tag == DW_TAG_array_type || tag == DW_TAG_subroutine_type;
  if (nameless_in_c && !own_name(die).empty()) return joined(own_name(die), inner);  // Rust, Go
  switch (tag) {
    case DW_TAG_pointer_type:
      return behind("*");
    case DW_TAG_reference_type:
      return behind("&");
    case DW_TAG_rvalue_reference_type:
      return behind("&&");
    case DW_TAG_ptr_to_member_type: {
      const auto scope = reference(own_attribute(die, DW_AT_containing_type));
      return behind(fmt::format("{}::*", scope ? spell_named(*scope) : "?"));
    }
    case DW_TAG_array_type:
      return spell(target, fmt::format("{}{}", inner, array_bounds(die, 0)), depth + 1);
    case DW_TAG_string_type: {
      const auto size = own_number(die, DW_AT_byte_size).value_or(0);
      return joined(size == 0 ? "character(len=*)" : fmt::format("character(len={})", size), inner);
    }
    case DW_TAG_subroutine_type:
      return spell(target, fmt::format("{}({})", inner, spell_parameters(die, depth)), depth + 1);
    default:
      return joined(spell_named(die), inner);
  }
}

std::string Types::text(const std::optional<Dwarf_Die>& die, unsigned dimension) const {
  if (die && dimension != 0) return spell(type_of(*die), array_bounds(*die, dimension), 0);
  return spell(die, {}, 0);
}

std::vector<Enumerator> Types::enumerators(const std::optional<Dwarf_Die>& declared) const {
  std::vector<Enumerator> all;
  auto die = resolved(declared);
  if (!die || dwarf_tag(&*die) != DW_TAG_enumeration_type) return all;
  std::uint64_t steps = most_members;
  for_each_child(*die, steps, [&all](Dwarf_Die child) {
    const auto value = own_attribute(child, DW_AT_const_value);
    if (const auto bits = value ? constant(*value) : std::nullopt) all.push_back({std::string(own_name(child)), *bits});
    return true;
  });
  return all;
}

namespace {

/// What the C++ ABI asks of a class, of the functions it declares.
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
  std::uint64_t steps = most_members;
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
  unsigned trivial = 0;  ///< defaulted where they are declared
  unsigned deleted = 0;
  unsigned others = 0;

  [[nodiscard]] bool is_unclear() const { return (trivial != 0) + (deleted != 0) + (others != 0) > 1; }
};

/// What a class declares of what decides how its objects are passed.
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
    const bool is_default = own_number(function, DW_AT_defaulted) == std::uint64_t{DW_DEFAULTED_in_class};
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
UserShape::Kind Types::passed_as(Dwarf_Die structure, Language language, unsigned depth) const {
  using Kind = UserShape::Kind;
  const auto convention = own_number(structure, DW_AT_calling_convention);
  if (convention == std::uint64_t{DW_CC_pass_by_reference}) return Kind::by_reference;
  if (language == Language::c || language == Language::go || convention == std::uint64_t{DW_CC_pass_by_value})
    return Kind::structure;
  if (depth > deepest_declaration) return Kind::unknown;
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
  std::uint64_t steps = most_members;
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

namespace {

/// Of a floating-point number of more than 8 bytes of x86: the 80-bit one, and not one of 128 bits.
bool is_x87(Dwarf_Die die) {
  const std::string_view name = own_name(die);
  return name.find("128") == std::string_view::npos && name != "real(kind=16)";
}

}  // namespace

void Types::flatten_scalar(UserShape& shape, Dwarf_Die die, std::uint64_t offset) const {
  const Type what = type(die);
  const auto encoding = own_number(die, DW_AT_encoding).value_or(0);
  Scalar scalar{.kind = Scalar::Kind::integer,
                .offset = static_cast<std::uint32_t>(offset),
                .size = what.size,
                .pointer = what.kind == TypeKind::pointer || what.kind == TypeKind::text};
  const bool x86 = arch_.machine != Machine::aarch64;
  std::uint32_t alignment = what.size;
  if (encoding == DW_ATE_complex_float) {
    scalar.size /= 2;
    scalar.kind = scalar.size <= 8 ? Scalar::Kind::floating : Scalar::Kind::other;
    alignment = scalar.size;
    if (scalar.size != 4 && scalar.size != 8) scalar.kind = Scalar::Kind::other;
    shape.scalars.push_back(scalar);
    scalar.offset += scalar.size;
  } else if (encoding == DW_ATE_float) {
    const bool half = what.size == 2 && arch_.machine != Machine::i386;  // whatever its format
    scalar.kind = half || what.size == 4 || what.size == 8 ? Scalar::Kind::floating : Scalar::Kind::other;
    const bool has_parts = what.kind == TypeKind::floating && what.size > 8;
    if (x86 && has_parts) scalar.kind = is_x87(die) ? Scalar::Kind::x87 : Scalar::Kind::other;
    if (arch_.machine == Machine::x86_64 && has_parts && !is_x87(die)) scalar.kind = Scalar::Kind::vector;
    if (!x86 && what.size == 16) scalar.kind = Scalar::Kind::floating;  // quad precision, in a vector register
  } else if (dwarf_tag(&die) == DW_TAG_ptr_to_member_type && what.kind == TypeKind::structure) {
    scalar.size = alignment = arch_.word_size;  // to a function: two words
    shape.scalars.push_back(scalar);
    scalar.offset += scalar.size;
  } else if (what.kind == TypeKind::structure || what.kind == TypeKind::array || what.size == 0) {
    scalar.kind = Scalar::Kind::other;
  }
  if (arch_.machine == Machine::i386) alignment = std::min(alignment, scalar.kind == Scalar::Kind::other ? 16U : 4U);
  shape.alignment = std::max(shape.alignment, alignment);
  if (alignment != 0 && offset % alignment != 0) shape.misaligned = true;
  shape.scalars.push_back(scalar);
}

/// Compilers differ about those of one element; where larger ones are depends on what the processor has.
void Types::flatten_vector(UserShape& shape, Dwarf_Die die, std::uint64_t offset) const {
  const auto size = static_cast<std::uint32_t>(size_of(die, 0).value_or(0));
  const bool known = arch_.machine == Machine::x86_64 && (size == 8 || size == 16) && array_count(die).value_or(1) > 1;
  if (!known) return shape.scalars.push_back({});
  shape.alignment = std::max(shape.alignment, size);
  if (offset % size != 0) shape.misaligned = true;
  shape.scalars.push_back({.kind = Scalar::Kind::vector, .offset = static_cast<std::uint32_t>(offset), .size = size});
}

void Types::flatten_members(UserShape& shape, Dwarf_Die structure, std::uint64_t offset, unsigned depth,
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
      const std::uint64_t width = first ? *bits : 8 * (member ? size_of(*member, 0).value_or(8) : 8);
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
bool Types::is_of_library(Dwarf_Die structure) const {
  return language_of(structure) == Language::cpp && names_.qualified(structure).starts_with("std::");
}

/// Adds the scalars of `die`, whose first byte is at `offset`.
void Types::flatten(UserShape& shape, Dwarf_Die die, std::uint64_t offset, unsigned depth, std::uint64_t& steps) const {
  if (depth == deepest_declaration || steps == 0 || offset > UINT32_MAX) {
    shape.scalars.push_back({});  // not known: nothing is guessed behind it
    return;
  }
  const int tag = dwarf_tag(&die);
  if (is_structure(tag)) {
    if (own_attribute(die, DW_AT_alignment)) shape.overaligned = true;
    const std::size_t first = shape.scalars.size();
    flatten_members(shape, die, offset, depth, steps);
    const std::span added = std::span(shape.scalars).subspan(first);
    if (std::ranges::any_of(added, &Scalar::pointer) && is_of_library(die))
      for (Scalar& each : added) each.of_library = each.pointer ? static_cast<std::uint32_t>(offset + 1) : 0;
  } else if (tag == DW_TAG_array_type) {
    if (flag(own_attribute(die, DW_AT_GNU_vector))) return flatten_vector(shape, die, offset);
    const auto element = resolved(type_of(die));
    const auto size = element ? size_of(*element, 0) : std::nullopt;
    const auto told = array_count(die);
    // Clang passes what ends with a flexible array in memory, GCC as if it had none; larger objects are there anyway.
    constexpr std::uint32_t in_registers = 16;
    if (!told && shape.size <= in_registers) shape.scalars.push_back({});
    std::uint64_t count = told.value_or(0);
    shape.arrays |= count > 1;
    // Of arrays too long to be passed in registers, the first element says what is asked: its alignment.
    if (shape.size > UserShape::flat_size) count = std::min<std::uint64_t>(count, 1);
    for (std::uint64_t i = 0; i < count && element && size && steps != 0; ++i, --steps)
      flatten(shape, *element, offset + i * *size, depth + 1, steps);
  } else {
    flatten_scalar(shape, die, offset);
  }
}

UserShape Types::shape(const std::optional<Dwarf_Die>& declared, Language language) const {
  UserShape shape;
  auto die = resolved(declared);
  if (!die) {
    if (!declared) shape.kind = UserShape::Kind::nothing;
    auto last = declared;  // "const void" and its typedefs come to void too; a loop does not
    for (unsigned step = 0; last && step < longest_chain; ++step) last = type_of(*last);
    if (!last) shape.kind = UserShape::Kind::nothing;
    return shape;
  }
  const auto size = size_of(*die, 0);
  if (!size || *size > UINT32_MAX) return shape;
  shape.size = static_cast<std::uint32_t>(*size);
  std::uint64_t steps = most_members;
  shape.empty = true;
  flatten(shape, *die, 0, 0, steps);
  const int tag = dwarf_tag(&*die);
  if (is_structure(tag)) {
    shape.kind = passed_as(*die, language);
  } else {
    shape.empty = false;
    shape.kind = shape.scalars.empty() ? UserShape::Kind::unknown : UserShape::Kind::scalar;
  }
  if (shape.scalars.empty() && !shape.empty) shape.kind = UserShape::Kind::unknown;
  return shape;
}

bool is_go_result(Dwarf_Die parameter) { return flag(attribute(parameter, DW_AT_variable_parameter)); }

std::vector<GoResult> go_results(Dwarf_Die function, const Types& types) {
  std::vector<GoResult> all;
  std::uint64_t steps = most_members;
  std::uint64_t offset = 0;
  for_each_child(function, steps, [&](Dwarf_Die child) {
    if (dwarf_tag(&child) != DW_TAG_formal_parameter || !is_go_result(child)) return true;
    std::string_view name = text(attribute(child, DW_AT_name));
    if (name.starts_with('~')) name.remove_prefix(1);
    // Go 1.19 lists some results twice.
    if (std::ranges::find(all, name, &GoResult::name) != all.end()) return true;
    all.push_back({child, std::string(name), offset});
    offset += (std::uint64_t{types.type(type_of(child)).size} + 7) / 8 * 8;
    return true;
  });
  return all;
}

std::string go_results_text(const std::vector<GoResult>& results, const Types& types) {
  std::string text;
  for (const GoResult& each : results)
    text += fmt::format("{}{}", text.empty() ? "(" : ", ", types.text(type_of(each.die)));
  return text + ")";
}

}  // namespace usdt::dwarf
