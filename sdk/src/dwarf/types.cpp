// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/types.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dwarf/base_types.hpp"

namespace usdt::dwarf {
namespace {

/// Bytes of a spelt type before the rest of it becomes "...".
constexpr std::size_t kLongestType = 4096;
/// Dimensions of an array; the rest is left away.
constexpr std::size_t kMostDimensions = 64;

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

bool is_signed(std::uint64_t encoding) { return encoding == DW_ATE_signed || encoding == DW_ATE_signed_char; }

/// Whether some enumerator is negative: GCC before 8 and DWARF 2 name no underlying type.
bool has_negative(Dwarf_Die enumeration) {
  bool negative = false;
  std::uint64_t steps = kMostOfType;
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

std::string array_bounds(Dwarf_Die array, unsigned dimension) {
  std::string bounds;
  const auto counts = dimensions(array);
  for (std::size_t i = dimension; i < counts.size() && bounds.size() < kLongestType; ++i)
    bounds += counts[i] ? fmt::format("[{}]", *counts[i]) : "[]";
  return bounds.empty() ? "[]" : bounds;
}

/// Whether a C++ pointer to a member leads to a function: it has a second word then, added to the object's address.
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
  std::uint64_t steps = kMostOfType;
  for_each_child(array, steps, [&counts, &rules](Dwarf_Die child) {
    if (dwarf_tag(&child) != DW_TAG_subrange_type) return true;
    counts.push_back(count_of(child, rules.first));
    return counts.size() < kMostDimensions;
  });
  const auto ordering = own_number(array, DW_AT_ordering);
  if (ordering ? *ordering == DW_ORD_col_major : rules.column_major) std::ranges::reverse(counts);
  return counts;
}

std::optional<std::uint64_t> array_count(Dwarf_Die array, unsigned dimension) {
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

std::string why_no_array(Dwarf_Die array) {
  if (own_attribute(array, DW_AT_data_location))
    return "an array that a descriptor leads to, whose bounds are known only at run time";
  const auto has_stride = [](Dwarf_Die die) {
    return own_attribute(die, DW_AT_byte_stride) || own_attribute(die, DW_AT_bit_stride);
  };
  bool apart = has_stride(array);
  bool at_run_time = false;
  // C's int a[n] lacks only the number of elements, as int a[] does. If other dimensions are not known, neither are the
  // places of elements.
  bool may_end_anywhere = array_rules(array).first == 0;
  std::uint64_t steps = kMostOfType;
  for_each_child(array, steps, [&](Dwarf_Die child) {
    if (dwarf_tag(&child) != DW_TAG_subrange_type) return true;
    apart = apart || has_stride(child);
    const auto is_at_run_time = [&](unsigned name) { return own_attribute(child, name) && !bound(child, name); };
    at_run_time = at_run_time || is_at_run_time(DW_AT_lower_bound) ||
                  (!may_end_anywhere && (is_at_run_time(DW_AT_count) || is_at_run_time(DW_AT_upper_bound)));
    may_end_anywhere = false;
    return true;
  });
  if (at_run_time) return "an array whose bounds are known only at run time";
  return apart ? "an array whose elements are not next to each other" : "";
}

namespace {

/// Some of the numbers of another type, stored as all of them are (Ada, Pascal).
bool is_plain_subrange(Dwarf_Die die) {
  if (dwarf_tag(&die) != DW_TAG_subrange_type) return false;
  auto base = type_of(die);
  const auto size = own_number(die, DW_AT_byte_size);
  return base && dwarf_tag(&*base) == DW_TAG_base_type && (!size || size == own_number(*base, DW_AT_byte_size)) &&
         !own_attribute(die, DW_AT_bit_size) && !own_attribute(die, DW_AT_GNU_bias);
}

}  // namespace

std::optional<Dwarf_Die> resolved(std::optional<Dwarf_Die> die) {
  for (unsigned step = 0; die && step < kLongestChain; ++step) {
    const int tag = dwarf_tag(&*die);
    if (tag != DW_TAG_typedef && !is_qualifier(tag) && !is_plain_subrange(*die)) {
      const auto in_type_unit = reference(own_attribute(*die, DW_AT_signature));
      return in_type_unit ? in_type_unit : die;
    }
    die = type_of(*die);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> Types::size_of(Dwarf_Die die, unsigned depth, unsigned dimension) const {
  if (depth == kDeepestType) return std::nullopt;
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
    type = base_type(*die, type.size, arch_, has_quads_).type;
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
  if (tag == DW_TAG_base_type) return base_type(*die, found.type.size, arch_, has_quads_);
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
  std::uint64_t steps = kMostOfType;
  for_each_child(function, steps, [&](Dwarf_Die child) {
    const int tag = dwarf_tag(&child);
    if (tag != DW_TAG_formal_parameter && tag != DW_TAG_unspecified_parameters) return true;
    if (!all.empty()) all += ", ";
    all += tag == DW_TAG_unspecified_parameters ? "..." : spell(type_of(child), {}, depth + 1);
    return all.size() < kLongestType;
  });
  if (all.empty() && language_of(function) == Language::c) return "void";
  return all;
}

/// C declarations are written from the inside out: `inner` is what is spelt already.
std::string Types::spell(const std::optional<Dwarf_Die>& declared, std::string inner, unsigned depth) const {
  if (!declared) return joined("void", inner);
  if (depth == kDeepestType || inner.size() > kLongestType) return joined("...", inner);
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
    // The qualifier of a pointer stands behind the star, that of anything else before the name.
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
  std::uint64_t steps = kMostOfType;
  for_each_child(*die, steps, [&all](Dwarf_Die child) {
    const auto value = own_attribute(child, DW_AT_const_value);
    if (const auto bits = value ? constant(*value) : std::nullopt) all.push_back({std::string(own_name(child)), *bits});
    return true;
  });
  return all;
}

bool is_go_result(Dwarf_Die parameter) { return flag(attribute(parameter, DW_AT_variable_parameter)); }

std::vector<GoResult> go_results(Dwarf_Die function, const Types& types) {
  std::vector<GoResult> all;
  std::uint64_t steps = kMostOfType;
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
