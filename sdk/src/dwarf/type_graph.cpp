// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/type_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/bit_field.hpp"
#include "base/try.hpp"
#include "dwarf/die.hpp"
#include "dwarf/go_types.hpp"
#include "dwarf/type_names.hpp"

namespace usdt::dwarf {
namespace {

/// Members of one struct that are listed; generated ones have some thousand.
constexpr std::uint64_t kMostMembers = 65536;
/// DIEs looked at in one struct: C++ classes have functions and types besides.
constexpr std::uint64_t kMostChildren = 1U << 20;
/// Bytes that are believed to be before a member: the largest object that machines of ours can have.
constexpr std::uint64_t kLargestOffset = std::uint64_t{1} << 47;

/// The offset by DW_AT_data_member_location: a number, or in DWARF 2 an expression that adds one to the struct's
/// address. Nothing: the expression depends on something at run time.
std::optional<std::uint64_t> constant_offset(Dwarf_Attribute at) {
  if (const auto offset = constant(at)) return offset;
  Dwarf_Op* expression = nullptr;
  std::size_t count = 0;
  if (dwarf_getlocation(&at, &expression, &count) != 0 || count != 1 || expression->atom != DW_OP_plus_uconst)
    return std::nullopt;
  return expression->number;
}

/// In C++ before DWARF 5 a member too, which has no place in the struct.
bool is_static(Dwarf_Die member) {
  return flag(own_attribute(member, DW_AT_external)) || flag(own_attribute(member, DW_AT_declaration));
}

/// The first bit of a bit-field, from the start of the struct, by the attributes of DWARF 4, or of those before, which
/// count from the most significant bit of what it is stored in.
std::optional<std::uint64_t> first_bit(Dwarf_Die member, std::uint64_t offset, std::uint64_t width,
                                       std::uint64_t type_size) {
  if (const auto first = own_number(member, DW_AT_data_bit_offset)) return 8 * offset + *first;
  const auto above = own_attribute(member, DW_AT_bit_offset);
  const auto bits_above = above ? constant(*above) : std::nullopt;
  if (!bits_above) return 8 * offset;
  const std::uint64_t stored_in = own_number(member, DW_AT_byte_size).value_or(type_size);
  return 8 * offset + 8 * stored_in - *bits_above - width;
}

/// The innermost element type of an array; any other type itself.
std::optional<Dwarf_Die> element_type(std::optional<Dwarf_Die> type) {
  auto found = resolved(std::move(type));
  for (unsigned step = 0; found && dwarf_tag(&*found) == DW_TAG_array_type && step < kLongestChain; ++step)
    found = resolved(type_of(*found));
  return found;
}

bool is_enums(std::optional<Dwarf_Die> type) {
  auto element = element_type(std::move(type));
  return element && dwarf_tag(&*element) == DW_TAG_enumeration_type;
}

/// Whether a struct has numbers in the other byte order: GCC's scalar_storage_order is of all numbers of a struct, but
/// of pointers.
bool has_swapped_numbers(Dwarf_Die structure) {
  bool found = false;
  std::uint64_t steps = kMostMembers;
  for_each_child(structure, steps, [&found](Dwarf_Die child) {
    auto type = dwarf_tag(&child) == DW_TAG_member ? element_type(type_of(child)) : std::nullopt;
    found = type && !is_structure(dwarf_tag(&*type)) && is_swapped(*type);
    return !found;
  });
  return found;
}

/// Ranges of one DW_AT_discr_list that are believed.
constexpr std::size_t kMostRanges = 1024;

/// Reads the numbers of a DW_AT_discr_list: LEB128, with a sign where the discriminant has one (DWARF 5, 7.19).
class DiscriminantList {
 public:
  DiscriminantList(std::span<const std::uint8_t> bytes, const Type& type) : bytes_(bytes), type_(type) {}

  /// Nothing: the list is broken, or a range of it is of no values that the discriminant has.
  std::optional<AlternativeValues> read() && {
    AlternativeValues values;
    while (!bytes_.empty()) {
      const std::uint8_t kind = bytes_.front();
      bytes_ = bytes_.subspan(1);
      const auto first = next();
      const auto last = kind == DW_DSC_range ? next() : first;
      if (kind > DW_DSC_range || !first || !last || values.ranges.size() == kMostRanges) return std::nullopt;
      if (!add(*first, *last, values)) return std::nullopt;
    }
    return values.ranges.empty() ? std::nullopt : std::optional(std::move(values));
  }

 private:
  std::optional<std::uint64_t> next() {
    std::uint64_t number = 0;
    for (unsigned shift = 0; !bytes_.empty() && shift < 64; shift += 7) {
      const std::uint8_t byte = bytes_.front();
      bytes_ = bytes_.subspan(1);
      number |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80U) != 0) continue;
      if (type_.is_signed && (byte & 0x40U) != 0 && shift + 7 < 64) number |= UINT64_MAX << (shift + 7);
      return number;
    }
    return std::nullopt;
  }

  /// As the discriminant is read, extended by zeros: a range from below 0 to above it is two.
  bool add(std::uint64_t first, std::uint64_t last, AlternativeValues& values) const {
    const std::uint64_t mask = UINT64_MAX >> (64 - 8 * type_.size);
    const auto fits = [&](std::uint64_t number) {
      const auto top = static_cast<std::int64_t>(number) >> (8 * type_.size - 1);
      return type_.is_signed ? top == 0 || top == -1 : (number & ~mask) == 0;
    };
    const bool ordered =
        type_.is_signed ? static_cast<std::int64_t>(first) <= static_cast<std::int64_t>(last) : first <= last;
    if (!ordered || !fits(first) || !fits(last)) return false;
    const bool crosses = (first & mask) > (last & mask);
    if (crosses) values.ranges.emplace_back(first & mask, mask);
    values.ranges.emplace_back(crosses ? 0 : first & mask, last & mask);
    return true;
  }

  std::span<const std::uint8_t> bytes_;
  Type type_;
};

/// The values of a discriminant of that type that stand for a variant; without ranges: those of no other one.
/// Nothing: it cannot be told.
std::optional<AlternativeValues> discriminant_values(Dwarf_Die variant, const Type& type) {
  const std::uint64_t mask = UINT64_MAX >> (64 - 8 * type.size);
  AlternativeValues values;
  if (const auto at = own_attribute(variant, DW_AT_discr_value)) {
    const auto value = constant(*at);
    if (!value) return std::nullopt;  // of 128 bits
    values.ranges.emplace_back(*value & mask, *value & mask);
    return values;
  }
  auto list = own_attribute(variant, DW_AT_discr_list);
  if (!list) return values;
  Dwarf_Block block;
  if (dwarf_formblock(&*list, &block) != 0) return std::nullopt;
  return DiscriminantList({block.data, static_cast<std::size_t>(block.length)}, type).read();
}

bool is_child(Dwarf_Die parent, const Dwarf_Die& wanted) {
  bool found = false;
  std::uint64_t steps = kMostChildren;
  for_each_child(parent, steps, [&](Dwarf_Die child) { return !(found = child.addr == wanted.addr); });
  return found;
}

/// Typedefs and qualifiers of nothing.
bool is_void(std::optional<Dwarf_Die> type) {
  for (unsigned step = 0; type && step < kLongestChain; ++step) type = type_of(*type);
  return !type;
}

}  // namespace

Error DwarfTypes::broken(std::string_view what) const {
  return {ErrorKind::malformed, fmt::format("{}: debug information: {}", state_->files.main.path.string(), what)};
}

Result<const TypeNames*> DwarfTypes::names() const {
  if (state_->types.names) return &*state_->types.names;
  TypeNames found;
  const auto stopped = [this] {
    return state_->stop.stop_requested() || state_->files.opened->options.stop.stop_requested();
  };
  bool whole = true;
  for (Dwarf* dwarf : {state_->files.main.dwarf.get(), state_->files.shared.dwarf.get()}) {
    if (dwarf == nullptr || !whole) continue;
    for_each_unit_and_type(dwarf, state_->files.split,
                           [&](Dwarf_Die unit) { return whole = !stopped() && found.add_unit(unit, state_->stop); });
  }
  if (stopped())
    return fail(ErrorKind::stopped, fmt::format("stopped while reading types of {}", state_->files.main.path.string()));
  if (!whole) return fail(broken("types without end"));
  found.finish();
  return &state_->types.names.emplace(std::move(found));
}

/// A definition that cannot be looked for leaves what is known: a declaration.
Dwarf_Die DwarfTypes::defined(Dwarf_Die die) const {
  if (!flag(own_attribute(die, DW_AT_declaration))) return die;
  const auto all = names();
  const auto found = all ? (*all)->definition(die, state_->names) : std::nullopt;
  return found.value_or(die);
}

Result<std::optional<KnownType>> DwarfTypes::meant(TypeId type) const {
  if (type == TypeId::none) return std::nullopt;
  const KnownType* known = state_->types.known.find(type);
  if (known == nullptr) return fail(ErrorKind::invalid_argument, "a type of another file");
  if (const auto behind = resolved(known->die)) return KnownType{defined(*behind), known->dimension, known->swapped};
  if (is_void(known->die)) return std::nullopt;
  return fail(broken("typedefs without end"));
}

Result<TypeInfo> DwarfTypes::info(TypeId type) const {
  const std::scoped_lock lock(state_->mutex);
  auto known = TRY(meant(type));
  TypeInfo info;
  if (type == TypeId::none) {
    info.text = "void";
    return info;
  }
  const KnownType declared = *state_->types.known.find(type);
  if (auto function = declared.die; dwarf_tag(&function) == DW_TAG_subprogram) return results_info(function);
  info.text = types_.text(declared.die, declared.dimension);
  if (!known) return info;
  auto [die, dimension, swapped] = *known;
  BaseType number = types_.number_of(die, dimension);
  info.type = number.type;
  info.swapped = number.swapped || (swapped && dwarf_tag(&die) == DW_TAG_enumeration_type && number.type.size > 1);
  info.parts = std::move(number.parts);
  info.no_number = std::move(number.no_number);
  const int tag = dwarf_tag(&die);
  info.is_union = tag == DW_TAG_union_type;
  info.is_char = types_.is_char(die) || tag == DW_TAG_string_type;
  info.reference = tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type;
  if (is_pointer(tag)) info.target = state_->types.known.id_of(type_of(die));
  if (tag == DW_TAG_string_type) info.count = info.type.size;
  if (tag == DW_TAG_array_type) {
    const auto counts = dimensions(die);
    if (dimension < counts.size()) info.count = counts[dimension];
    info.target = dimension + 1 < counts.size() ? state_->types.known.id_of(die, dimension + 1, swapped)
                                                : state_->types.known.id_of(type_of(die), 0, swapped);
  }
  return info;
}

/// The results of a Go function count as one value, a struct of them.
TypeInfo DwarfTypes::results_info(Dwarf_Die function) const {
  TypeInfo info;
  info.type.kind = TypeKind::structure;
  const std::vector<GoResult> results = go_results(function, types_);
  info.text = go_results_text(results, types_);
  for (const GoResult& each : results)
    info.type.size = static_cast<std::uint32_t>(each.offset + types_.type(type_of(each.die)).size);
  return info;
}

Result<void> DwarfTypes::place_bits(MemberInfo& member, Dwarf_Die die, std::uint64_t outer_size) const {
  const auto width = own_number(die, DW_AT_bit_size);
  if (!width) return {};
  const std::uint64_t size = types_.type(type_of(die)).size;
  if (*width == 0 || *width > 8 * std::min<std::uint64_t>(size, 16))
    return fail(broken("a bit-field wider than its type"));
  const auto first = first_bit(die, member.offset, *width, size);
  if (!first || *first > 8 * kLargestOffset) return fail(broken("a bit-field outside of its struct"));
  const BitPlace place = bit_place(*first, *width, size, outer_size);
  member.offset = place.offset;
  member.bits = static_cast<std::uint8_t>(*width);
  member.shift = place.shift;
  return {};
}

Result<MemberInfo> DwarfTypes::member(Dwarf_Die die, std::uint64_t outer_size, bool swapped) const {
  MemberInfo member;
  member.is_base = dwarf_tag(&die) == DW_TAG_inheritance;
  if (!member.is_base) member.name = own_name(die);
  member.type = state_->types.known.id_of(type_of(die), 0, swapped && is_enums(type_of(die)));
  if (member.is_base && own_number(die, DW_AT_virtuality).value_or(DW_VIRTUALITY_none) != DW_VIRTUALITY_none) {
    member.is_virtual = true;
    return member;
  }
  if (const auto at = own_attribute(die, DW_AT_data_member_location)) {
    const auto offset = constant_offset(*at);
    if (!offset || *offset > kLargestOffset)
      return fail(broken(fmt::format("no place is told of member '{}'", member.name)));
    member.offset = *offset;
  }
  TRY(place_bits(member, die, outer_size));
  return member;
}

/// The members of each variant, which are there while the discriminant says so (DWARF 5, 5.7.10): those of Rust's
/// enums, of variant records. The discriminant is a member of the variant part, and of no name or an artificial one in
/// Rust.
Result<void> DwarfTypes::add_variants(Dwarf_Die part, std::uint64_t outer_size, std::vector<MemberInfo>& all) const {
  const auto discriminant = reference(own_attribute(part, DW_AT_discr));
  std::optional<MemberVariant> told;
  Type type;
  if (discriminant) {
    const auto place = TRY(member(*discriminant, outer_size, false));
    type = types_.type(type_of(*discriminant));
    if (type.size == 0 || type.size > 8 || place.bits != 0) return fail(broken("a discriminant that is no number"));
    told = MemberVariant{.type = place.type, .offset = place.offset, .values = {}};
    // GNAT has it before the variant part, where it is a member as others are.
    const bool inside = is_child(part, *discriminant);
    if (inside && !flag(own_attribute(*discriminant, DW_AT_artificial))) all.push_back(place);
  }
  AlternativeValues of_all;
  std::vector<std::size_t> of_others;
  std::optional<Error> error;
  std::uint64_t steps = kMostChildren;
  for_each_child(part, steps, [&](Dwarf_Die variant) {
    if (dwarf_tag(&variant) != DW_TAG_variant) return true;
    const auto values = told ? discriminant_values(variant, type) : AlternativeValues();
    if (!values) {
      error = broken("a variant of which it is not told when it is there");
      return false;
    }
    of_all.ranges.insert(of_all.ranges.end(), values->ranges.begin(), values->ranges.end());
    for_each_child(variant, steps, [&](Dwarf_Die child) {
      if (dwarf_tag(&child) != DW_TAG_member || is_static(child)) return true;
      auto one = member(child, outer_size, false);
      if (!one) {
        error = std::move(one.error());
        return false;
      }
      one->variant = told;
      if (told) one->variant->values = *values;
      if (told && values->ranges.empty()) of_others.push_back(all.size());
      all.push_back(*std::move(one));
      return all.size() < kMostMembers;
    });
    return !error && all.size() < kMostMembers;
  });
  if (error) return fail(*std::move(error));
  of_all.others = true;
  for (const std::size_t each : of_others) all[each].variant->values = of_all;
  return {};
}

Result<std::vector<MemberInfo>> DwarfTypes::members(TypeId type) const {
  const std::scoped_lock lock(state_->mutex);
  auto known = TRY(meant(type));
  std::vector<MemberInfo> all;
  if (known && dwarf_tag(&known->die) == DW_TAG_subprogram) {
    for (GoResult& each : go_results(known->die, types_))
      all.push_back(
          {.name = std::move(each.name), .type = state_->types.known.id_of(type_of(each.die)), .offset = each.offset});
    return all;
  }
  if (!known || !is_structure(dwarf_tag(&known->die))) return all;
  const std::uint64_t size = types_.type(known->die).size;
  std::optional<Error> error;
  const bool swapped = has_swapped_numbers(known->die);
  std::uint64_t steps = kMostChildren;
  for_each_child(known->die, steps, [&](Dwarf_Die child) {
    const int tag = dwarf_tag(&child);
    if (tag == DW_TAG_variant_part) {
      auto added = add_variants(child, size, all);
      if (!added) error = std::move(added.error());
      return !error && all.size() < kMostMembers;
    }
    if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) || is_static(child)) return true;
    auto one = member(child, size, swapped);
    if (!one)
      error = std::move(one.error());
    else
      all.push_back(*std::move(one));
    return !error && all.size() < kMostMembers;
  });
  if (error) return fail(*std::move(error));
  if (steps == 0 || all.size() == kMostMembers)
    return fail(ErrorKind::limit, fmt::format("'{}' has too many members", types_.text(known->die)));
  return all;
}

std::vector<Enumerator> DwarfTypes::enumerators(TypeId type) const {
  const std::scoped_lock lock(state_->mutex);
  const auto known = meant(type);
  return known && *known ? types_.enumerators((*known)->die) : std::vector<Enumerator>();
}

std::vector<TypeId> DwarfTypes::template_types(TypeId type) const {
  const std::scoped_lock lock(state_->mutex);
  const auto known = meant(type);
  std::vector<TypeId> all;
  if (!known || !*known) return all;
  constexpr std::size_t most = 256;
  std::uint64_t steps = kMostChildren;
  const auto add = [&](Dwarf_Die child) {
    if (dwarf_tag(&child) == DW_TAG_template_type_parameter) all.push_back(state_->types.known.id_of(type_of(child)));
    return all.size() < most;
  };
  for_each_child((*known)->die, steps, [&](Dwarf_Die child) {
    if (dwarf_tag(&child) == DW_TAG_GNU_template_parameter_pack) for_each_child(child, steps, add);
    return add(child);
  });
  return all;
}

Result<std::vector<DynamicType>> DwarfTypes::dynamic_types(bool errors) const {
  const std::scoped_lock lock(state_->mutex);
  if (!state_->types.go_types) {
    auto read = TRY(read_go_types(*state_));
    state_->types.go_types = std::move(read);
  }
  std::vector<DynamicType> all;
  for (const GoType& each : errors ? state_->types.go_types->errors : state_->types.go_types->all)
    all.push_back({std::string(each.name), state_->types.known.id_of(each.die), each.address});
  return all;
}

Result<std::vector<TypeId>> DwarfTypes::find_all(std::string_view name) const {
  const std::scoped_lock lock(state_->mutex);
  const auto all = TRY(names());
  std::vector<TypeId> found;
  for (const Dwarf_Die& die : all->named(name, state_->names)) found.push_back(state_->types.known.id_of(die));
  if (state_->names.spent()) return fail(state_->names_spent());
  if (!found.empty()) return found;
  return fail(ErrorKind::not_found, fmt::format("the debug information in {} has no type '{}'{}",
                                                state_->files.main.path.string(), name, all->near(name)));
}

Result<TypeId> DwarfTypes::find_beside(std::string_view name, TypeId beside) const {
  {
    const std::scoped_lock lock(state_->mutex);
    const TypeNames* own = names_beside(beside);
    const std::vector<Dwarf_Die> found = own != nullptr ? own->named(name, state_->names) : std::vector<Dwarf_Die>();
    if (!found.empty()) return state_->types.known.id_of(found.front());
  }
  auto all = TRY(find_all(name));
  const auto is_other = [&](TypeId each) { return !is_meant_alike(all.front(), each); };
  if (std::ranges::none_of(all, is_other)) return all.front();
  return fail(
      ErrorKind::not_supported,
      fmt::format("'{}' is one thing in some source files of {} and another in others: which is meant nobody tells",
                  name, state_->files.main.path.string()));
}

const TypeNames* DwarfTypes::names_beside(TypeId type) const {
  const KnownType* known = state_->types.known.find(type);
  if (known == nullptr) return nullptr;
  Dwarf_Die die = known->die;
  Dwarf_Die unit;
  if (dwarf_diecu(&die, &unit, nullptr, nullptr) == nullptr) return nullptr;
  const auto& names = state_->types.unit_names.of(unit, [&]() -> std::optional<TypeNames> {
    TypeNames found;
    if (!found.add_unit(unit, state_->stop)) return std::nullopt;
    found.finish();
    return found;
  });
  return names ? &*names : nullptr;
}

/// Whether two types of one name are the same where they are used. What a bare name means in C, a typedef, comes before
/// structs of that name, and is another thing.
bool DwarfTypes::is_meant_alike(TypeId one, TypeId other) const {
  const auto tag_of = [this](TypeId type) {
    Dwarf_Die die = state_->types.known.find(type)->die;
    return dwarf_tag(&die);
  };
  {
    const std::scoped_lock lock(state_->mutex);
    if (is_structure(tag_of(one)) != is_structure(tag_of(other))) return true;
  }
  const auto are_alike = [this](TypeId a, TypeId b) {
    const auto info_of_a = info(a), info_of_b = info(b);
    return info_of_a && info_of_b && info_of_a->type == info_of_b->type;
  };
  const auto of_one = members(one), of_other = members(other);
  return are_alike(one, other) && enumerators(one) == enumerators(other) && of_one && of_other &&
         std::ranges::equal(*of_one, *of_other, [&](const MemberInfo& a, const MemberInfo& b) {
           return a.name == b.name && a.offset == b.offset && a.shift == b.shift && are_alike(a.type, b.type);
         });
}

}  // namespace usdt::dwarf
