// SPDX-License-Identifier: BSD-2-Clause
#include "btf/type_graph.hpp"

#include <fmt/format.h>
#include <linux/btf.h>

#include <algorithm>
#include <span>

#include "base/bit_field.hpp"
#include "base/near_text.hpp"
#include "base/try.hpp"
#include "base/type_names.hpp"
#include "btf/info.hpp"
#include "btf/names.hpp"

namespace usdt::btf {
namespace {

std::uint32_t number_of(TypeId type) { return type == TypeId::none ? 0 : static_cast<std::uint32_t>(type); }

bool is_structure(const btf_type& type) {
  return kind_of(type.info) == BTF_KIND_STRUCT || kind_of(type.info) == BTF_KIND_UNION;
}
bool is_enumeration(const btf_type& type) {
  return kind_of(type.info) == BTF_KIND_ENUM || kind_of(type.info) == BTF_KIND_ENUM64;
}

std::span<const btf_member> members_of(const btf_type& structure) {
  return {reinterpret_cast<const btf_member*>(&structure + 1), vlen_of(structure.info)};
}

/// Whether its name is one that find() may be asked for.
bool is_named_type(const btf_type& type) {
  switch (kind_of(type.info)) {
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
    case BTF_KIND_TYPEDEF:
    case BTF_KIND_INT:
    case BTF_KIND_FLOAT:
    case BTF_KIND_ENUM64:
      return true;
    case BTF_KIND_ENUM:
      return vlen_of(type.info) != 0;  // else it is only declared
    default:
      return false;
  }
}

bool fits(const btf_type& type, TypeKeyword keyword) {
  switch (keyword) {
    case TypeKeyword::none:
      return true;
    case TypeKeyword::structure:
      return kind_of(type.info) == BTF_KIND_STRUCT;
    case TypeKeyword::union_type:
      return kind_of(type.info) == BTF_KIND_UNION;
    case TypeKeyword::enumeration:
      return is_enumeration(type);
  }
  return false;
}

}  // namespace

template <class Visit>
void Graph::for_each_type(Visit&& visit) const {
  for (std::uint32_t id = 1; id < types_.end_id(); ++id)
    if (const btf_type* each = types_.type(id); each != nullptr && is_named_type(*each)) visit(id, *each);
}

/// A struct that is only declared is the one of that name that is not, if there is just one.
Result<std::uint32_t> Graph::resolved(std::uint32_t id) const {
  const auto behind = types_.resolve(id);
  if (!behind) return fail(malformed(fmt::format("type {} leads nowhere", id)));
  const btf_type* at = types_.type(*behind);
  if (at == nullptr || kind_of(at->info) != BTF_KIND_FWD) return *behind;
  const auto kind = BTF_INFO_KFLAG(at->info) ? BTF_KIND_UNION : BTF_KIND_STRUCT;
  const std::string_view name = types_.name(at->name_off);
  std::vector<std::uint32_t> found;
  for_each_type([&](std::uint32_t each, const btf_type& type) {
    if (kind_of(type.info) == kind && types_.is_called(type, name) && !is_copy(found, each)) found.push_back(each);
  });
  return found.size() == 1 ? found.front() : *behind;
}

std::uint64_t Graph::size_of(std::uint32_t id) const {
  const btf_type* at = types_.type(types_.resolve(id).value_or(0));
  if (at == nullptr) return 0;
  switch (kind_of(at->info)) {
    case BTF_KIND_PTR:
      return 8;
    case BTF_KIND_ARRAY:
      return types_.array_size(at);
    case BTF_KIND_FWD:
    case BTF_KIND_FUNC_PROTO:
      return 0;
    default:
      return at->size;
  }
}

Result<TypeInfo> Graph::info(TypeId type) const {
  const std::uint32_t id = number_of(type);
  TypeInfo info;
  info.text = type_name(types_, id);
  const auto behind = TRY(resolved(id));
  const btf_type* at = types_.type(behind);
  if (at == nullptr) return info;
  const std::uint64_t size = size_of(behind);
  info.type.size = size <= UINT32_MAX ? static_cast<std::uint32_t>(size) : 0;
  const ValueType value = types_.value_type(behind);
  info.type.is_signed = value.is_signed;
  info.is_char = types_.is_char(behind);
  switch (kind_of(at->info)) {
    case BTF_KIND_INT:
      if (value.value_class == ValueClass::boolean) info.type.kind = TypeKind::boolean;
      break;
    case BTF_KIND_FLOAT:
      info.type.kind = TypeKind::floating;
      break;
    case BTF_KIND_ENUM:
    case BTF_KIND_ENUM64:
      info.type.kind = TypeKind::enumeration;
      break;
    case BTF_KIND_PTR:
      info.type.kind = value.text ? TypeKind::text : TypeKind::pointer;
      info.target = id_of(at->type);
      break;
    case BTF_KIND_ARRAY: {
      const auto* array = reinterpret_cast<const btf_array*>(at + 1);
      info.type.kind = TypeKind::array;
      info.target = id_of(array->type);
      if (array->nelems != 0) info.count = array->nelems;
      break;
    }
    default:
      info.type.kind = TypeKind::structure;
      info.is_union = kind_of(at->info) == BTF_KIND_UNION;
      break;
  }
  return info;
}

/// Bit-fields by the struct's kind_flag, or (before 2018) as integers of fewer bits than their bytes have.
Result<MemberInfo> Graph::member(const btf_type& outer, std::size_t index) const {
  const btf_member& from = members_of(outer)[index];
  MemberInfo member;
  member.name = types_.name(from.name_off);
  member.type = id_of(from.type);
  std::uint64_t first = from.offset;
  std::uint64_t width = 0;
  if (BTF_INFO_KFLAG(outer.info)) {
    first = BTF_MEMBER_BIT_OFFSET(from.offset);
    width = BTF_MEMBER_BITFIELD_SIZE(from.offset);
  } else if (const btf_type* at = types_.type(types_.resolve(from.type).value_or(0));
             at != nullptr && kind_of(at->info) == BTF_KIND_INT) {
    const auto encoding = *reinterpret_cast<const std::uint32_t*>(at + 1);
    first += BTF_INT_OFFSET(encoding);
    if (BTF_INT_BITS(encoding) != 8 * at->size || first % 8 != 0) width = BTF_INT_BITS(encoding);
  }
  const std::uint64_t size = size_of(from.type);
  if (width == 0 && first % 8 != 0)
    return fail(malformed(fmt::format("member '{}' begins within a byte", member.name)));
  if (width > 8 * std::min<std::uint64_t>(size, 16))
    return fail(malformed(fmt::format("bit-field '{}' is wider than its type", member.name)));
  const BitPlace place = width == 0 ? BitPlace{first / 8, 0} : bit_place(first, width, size, outer.size);
  member.offset = place.offset;
  member.shift = place.shift;
  member.bits = static_cast<std::uint8_t>(width);
  return member;
}

Result<std::vector<MemberInfo>> Graph::members(TypeId type) const {
  const auto behind = TRY(resolved(number_of(type)));
  const btf_type* outer = types_.type(behind);
  std::vector<MemberInfo> all;
  if (outer == nullptr || !is_structure(*outer)) return all;
  for (std::size_t i = 0; i < members_of(*outer).size(); ++i) {
    auto one = TRY(member(*outer, i));
    all.push_back(std::move(one));
  }
  return all;
}

std::vector<Enumerator> Graph::enumerators(TypeId type) const {
  std::vector<Enumerator> all;
  for (const auto& [name, bits] : types_.enumerators(number_of(type))) all.push_back({std::string(name), bits});
  return all;
}

/// Whether one of `found` has the name, kind, size and members of `id`: modules repeat types of the kernel, and the
/// kernel repeats types whose pointers lead to different ones.
bool Graph::is_copy(const std::vector<std::uint32_t>& found, std::uint32_t id) const {
  const btf_type& one = *types_.type(id);
  return std::ranges::any_of(found, [&](std::uint32_t each) {
    const btf_type& other = *types_.type(each);
    const bool is_like = one.info == other.info && one.size == other.size;
    if (!is_like || types_.name(one.name_off) != types_.name(other.name_off)) return false;
    if (!is_structure(one)) return true;
    const auto first = members_of(one);
    const auto second = members_of(other);
    return std::equal(first.begin(), first.end(), second.begin(), second.end(),
                      [this](const btf_member& a, const btf_member& b) {
                        return a.offset == b.offset && types_.name(a.name_off) == types_.name(b.name_off);
                      });
  });
}

Result<std::vector<TypeId>> Graph::find_all(std::string_view name) const {
  const TypeName asked = split_type_name(name);
  const std::string sought = normal_type_name(asked.name);
  std::vector<std::uint32_t> tagged;
  std::vector<std::uint32_t> typedefs;
  for_each_type([&](std::uint32_t id, const btf_type& type) {
    const bool is_number = kind_of(type.info) == BTF_KIND_INT;  // whose name may have several words
    const bool is_it =
        is_number ? normal_type_name(types_.name(type.name_off)) == sought : types_.is_called(type, sought);
    if (!is_it || sought.empty() || !fits(type, asked.keyword)) return;
    auto& all = kind_of(type.info) == BTF_KIND_TYPEDEF ? typedefs : tagged;
    if (!is_copy(all, id)) all.push_back(id);
  });
  std::vector<TypeId> found;
  for (const std::uint32_t id : typedefs) {
    const auto behind = types_.resolve(id);
    if (behind && *behind != 0 && types_.type(*behind) != nullptr && is_copy(tagged, *behind)) continue;
    found.push_back(id_of(id));
  }
  for (const std::uint32_t id : tagged) found.push_back(id_of(id));
  if (!found.empty()) return found;
  NearTexts nearest(sought);
  for_each_type([&](std::uint32_t, const btf_type& type) { nearest.offer(types_.name(type.name_off)); });
  return fail(ErrorKind::not_found, fmt::format("kernel BTF has no type '{}'{}", name, std::move(nearest).question()));
}

}  // namespace usdt::btf
