// SPDX-License-Identifier: BSD-2-Clause
// What values are: classes, sizes and signs.
#include <fmt/format.h>
#include <linux/btf.h>

#include <algorithm>

#include "btf/info.hpp"
#include "btf/types.hpp"

namespace usdt::btf {
namespace {

/// Typedefs of typedefs, qualified, come to a handful; the bound, which is the kernel's own (MAX_RESOLVE_DEPTH), keeps
/// a chain that leads to itself from looping.
constexpr unsigned kLongestChain = 32;

/// Members a struct passed by value may have, nested ones counted, before layout() stops looking.
constexpr unsigned kMostMembers = 4096;
/// Members that a nested struct counts as besides its own, which bounds how deep structs nest.
constexpr unsigned kDeeper = 16;

bool is_qualifier(std::uint32_t kind) {
  return kind == BTF_KIND_CONST || kind == BTF_KIND_VOLATILE || kind == BTF_KIND_RESTRICT || kind == BTF_KIND_TYPE_TAG;
}

/// Whether GCC has no machine mode of this size for a struct or array.
bool is_block(std::uint64_t size) { return size != 0 && size != 1 && size != 2 && size != 4 && size != 8; }

/// `bits` cut to the `size` bytes of an enum.
std::uint64_t cut(std::uint64_t bits, std::uint32_t size) {
  return size == 0 || size >= 8 ? bits : bits & ((std::uint64_t{1} << 8 * size) - 1);
}

}  // namespace

std::optional<std::uint32_t> Types::resolve(std::uint32_t id) const noexcept {
  for (unsigned step = 0; step < kLongestChain; ++step) {
    if (id == 0) return id;
    const btf_type* at = type(id);
    if (!at) return std::nullopt;
    const auto kind = kind_of(at->info);
    if (kind != BTF_KIND_TYPEDEF && !is_qualifier(kind)) return id;
    id = at->type;
  }
  return std::nullopt;
}

const btf_type* Types::unqualified(std::uint32_t id) const noexcept {
  const btf_type* at = type(id);
  for (unsigned step = 0; at && is_qualifier(kind_of(at->info)); ++step)
    at = step < kLongestChain ? type(at->type) : nullptr;
  return at;
}

/// By its name: what pahole writes as the encoding of char depends on its version and on -funsigned-char (6.2).
bool Types::is_char(std::uint32_t id) const noexcept {
  const btf_type* at = type(resolve(id).value_or(0));
  return at && kind_of(at->info) == BTF_KIND_INT && at->size == 1 && name(at->name_off) == "char";
}

ValueType Types::value_type(std::uint32_t id) const noexcept {
  ValueType value{.value_class = ValueClass::other, .type_id = id};
  const auto resolved = resolve(id);
  if (resolved == 0U) value.value_class = ValueClass::none;
  const btf_type* at = type(resolved.value_or(0));
  if (!at) return value;
  switch (kind_of(at->info)) {
    case BTF_KIND_INT: {
      const auto encoding = BTF_INT_ENCODING(*reinterpret_cast<const std::uint32_t*>(at + 1));
      value.value_class = (encoding & BTF_INT_BOOL) != 0 ? ValueClass::boolean
                          : is_char(id)                  ? ValueClass::character
                                                         : ValueClass::integer;
      value.is_signed = (encoding & BTF_INT_SIGNED) != 0;
      value.size = at->size;
      break;
    }
    case BTF_KIND_ENUM:
    case BTF_KIND_ENUM64:
      value.value_class = ValueClass::enumeration;
      value.is_signed = BTF_INFO_KFLAG(at->info);  // set since 6.0 only (6089fb325cf7); before, enums look unsigned
      value.size = at->size;
      break;
    case BTF_KIND_PTR:
      value.value_class = ValueClass::pointer;
      value.text = is_char(at->type);
      value.size = 8;
      break;
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
      value.value_class = ValueClass::structure;
      value.size = at->size;
      break;
    case BTF_KIND_FLOAT:
      value.size = at->size;
      break;
    default:
      break;
  }
  return value;
}

/// Each of the calling conventions passes a struct of one integer or pointer as it passes that: kuid_t, pte_t.
ValueType Types::passed_type(std::uint32_t id) const noexcept {
  const ValueType outer = value_type(id);
  ValueType value = outer;
  for (unsigned step = 0; value.value_class == ValueClass::structure && step < kLongestChain; ++step) {
    const btf_type* at = type(resolve(value.type_id).value_or(0));
    if (!at || kind_of(at->info) != BTF_KIND_STRUCT || vlen_of(at->info) != 1 || at->size > 8) return outer;
    const auto* member = reinterpret_cast<const btf_member*>(at + 1);
    if (member->offset != 0) return outer;  // 0: no bit-field either
    value = value_type(member->type);
    if (value.size != outer.size) return outer;
  }
  const bool whole = value.value_class != ValueClass::structure && value.value_class != ValueClass::other &&
                     value.value_class != ValueClass::none;
  if (!whole) return outer;
  value.type_id = id;  // what people see
  return value;
}

Result<Prototype> Types::prototype(std::uint32_t proto) const {
  const btf_type* at = type(proto);
  if (!at || kind_of(at->info) != BTF_KIND_FUNC_PROTO)
    return fail(ErrorKind::malformed, fmt::format("BTF: type {} is no function prototype", proto));
  Prototype found;
  found.result = value_type(at->type);
  const std::span parameters(reinterpret_cast<const btf_param*>(at + 1), vlen_of(at->info));
  found.parameters.reserve(parameters.size());
  for (const btf_param& parameter : parameters) {
    if (&parameter == &parameters.back() && parameter.type == 0 && parameter.name_off == 0) {
      found.varargs = true;
      break;
    }
    found.parameters.push_back({.name = name(parameter.name_off), .type = passed_type(parameter.type)});
    if (found.parameters.back().type.value_class == ValueClass::none)
      return fail(ErrorKind::malformed, fmt::format("BTF: prototype {} has a parameter of type void", proto));
  }
  return found;
}

Layout Types::layout(std::uint32_t id) const {
  Layout layout;
  unsigned steps = kMostMembers;
  add_to(layout, id, 0, steps);
  return layout;
}

std::uint64_t Types::array_size(const btf_type* array) const noexcept {
  std::uint64_t count = 1;
  for (unsigned step = 0; step < kLongestChain; ++step) {
    if (!array) return 0;
    const auto kind = kind_of(array->info);
    if (kind != BTF_KIND_ARRAY) return count * (kind == BTF_KIND_PTR ? 8 : array->size);
    const auto* one = reinterpret_cast<const btf_array*>(array + 1);
    count *= one->nelems;
    array = type(resolve(one->type).value_or(0));
  }
  return 0;
}

/// Adds the scalars of type `id`, whose first bit is at `bit_offset`.
void Types::add_to(Layout& layout, std::uint32_t id, std::uint32_t bit_offset, unsigned& steps) const {
  const btf_type* at = type(resolve(id).value_or(0));
  if (!at) return;
  if (steps == 0) {
    layout.floats = true;  // not known: nothing is guessed behind it
    return;
  }
  --steps;
  std::uint32_t size = at->size;
  switch (kind_of(at->info)) {
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION: {
      layout.blocks = layout.blocks || is_block(at->size);
      steps -= std::min(steps, kDeeper);
      const bool has_bit_fields = BTF_INFO_KFLAG(at->info);
      for (const btf_member& member : std::span(reinterpret_cast<const btf_member*>(at + 1), vlen_of(at->info))) {
        if (has_bit_fields && BTF_MEMBER_BITFIELD_SIZE(member.offset) != 0) continue;
        add_to(layout, member.type,
               bit_offset + (has_bit_fields ? BTF_MEMBER_BIT_OFFSET(member.offset) : member.offset), steps);
      }
      return;
    }
    case BTF_KIND_ARRAY:
      layout.blocks = layout.blocks || is_block(array_size(at));
      return add_to(layout, reinterpret_cast<const btf_array*>(at + 1)->type, bit_offset, steps);
    case BTF_KIND_PTR:
      size = 8;
      break;
    case BTF_KIND_FLOAT:
      layout.floats = true;
      break;
    case BTF_KIND_INT:
    case BTF_KIND_ENUM:
    case BTF_KIND_ENUM64:
      break;
    default:
      return;
  }
  if (size == 0 || size > 16) return;
  layout.alignment = std::max(layout.alignment, size);
  layout.packed = layout.packed || bit_offset % (8 * size) != 0;
}

std::vector<std::pair<std::string_view, std::uint64_t>> Types::enumerators(std::uint32_t id) const {
  std::vector<std::pair<std::string_view, std::uint64_t>> all;
  const btf_type* at = type(resolve(id).value_or(0));
  const auto kind = at ? kind_of(at->info) : 0U;
  if (kind == BTF_KIND_ENUM) {
    const bool is_signed = BTF_INFO_KFLAG(at->info);
    for (const btf_enum& one : std::span(reinterpret_cast<const btf_enum*>(at + 1), vlen_of(at->info)))
      all.emplace_back(name(one.name_off),
                       is_signed ? static_cast<std::uint64_t>(one.val) : static_cast<std::uint32_t>(one.val));
  } else if (kind == BTF_KIND_ENUM64) {
    for (const btf_enum64& one : std::span(reinterpret_cast<const btf_enum64*>(at + 1), vlen_of(at->info)))
      all.emplace_back(name(one.name_off), std::uint64_t{one.val_hi32} << 32 | one.val_lo32);
  }
  return all;
}

std::string_view Types::enumerator(std::uint32_t id, std::uint64_t value) const {
  const btf_type* at = type(resolve(id).value_or(0));
  for (const auto& [called, bits] : enumerators(id))
    if (cut(bits, at->size) == cut(value, at->size)) return called;
  return {};
}

}  // namespace usdt::btf
