// SPDX-License-Identifier: BSD-2-Clause
#include "btf/kernel_btf.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/btf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace usdt::kernel_btf {
namespace {

constexpr const char* kernel_path = "/sys/kernel/btf/vmlinux";
/// Anonymous structs nest a few levels; the bound keeps a type that contains itself from looping.
constexpr unsigned deepest = 16;

/// Bytes behind a type's fixed part, by its kind.
std::optional<std::size_t> tail_size(const btf_type& type) {
  const std::size_t count = BTF_INFO_VLEN(type.info);
  switch (BTF_INFO_KIND(type.info)) {
    case BTF_KIND_PTR:
    case BTF_KIND_FWD:
    case BTF_KIND_TYPEDEF:
    case BTF_KIND_VOLATILE:
    case BTF_KIND_CONST:
    case BTF_KIND_RESTRICT:
    case BTF_KIND_FUNC:
    case BTF_KIND_FLOAT:
    case BTF_KIND_TYPE_TAG:
      return 0;
    case BTF_KIND_INT:
    case BTF_KIND_VAR:
    case BTF_KIND_DECL_TAG:
      return sizeof(std::uint32_t);
    case BTF_KIND_ARRAY:
      return sizeof(btf_array);
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
      return count * sizeof(btf_member);
    case BTF_KIND_ENUM:
      return count * sizeof(btf_enum);
    case BTF_KIND_FUNC_PROTO:
      return count * sizeof(btf_param);
    case BTF_KIND_DATASEC:
      return count * sizeof(btf_var_secinfo);
    case BTF_KIND_ENUM64:
      return count * sizeof(btf_enum64);
    default:
      return std::nullopt;
  }
}

Error malformed(std::string_view what) { return {ErrorKind::malformed, fmt::format("kernel BTF: {}", what)}; }

}  // namespace

Result<KernelBtf> KernelBtf::load() {
  const int fd = ::open(kernel_path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(os_failure(ErrorKind::not_supported, fmt::format("kernel BTF {}", kernel_path), errno));
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::max<off_t>(::lseek(fd, 0, SEEK_END), 0)));
  std::size_t have = 0;
  for (ssize_t n = 1; n > 0 && have < bytes.size(); have += static_cast<std::size_t>(std::max<ssize_t>(n, 0)))
    n = ::pread(fd, bytes.data() + have, bytes.size() - have, static_cast<off_t>(have));
  ::close(fd);
  bytes.resize(have);
  return parse(std::move(bytes));
}

Result<KernelBtf> KernelBtf::parse(std::vector<std::byte> bytes) {
  KernelBtf types(std::move(bytes));
  if (auto indexed = types.index_types(); !indexed) return fail(indexed.error());
  return types;
}

Result<void> KernelBtf::index_types() {
  btf_header header{};
  if (bytes_.size() < sizeof(header)) return fail(malformed("shorter than its header"));
  std::memcpy(&header, bytes_.data(), sizeof(header));
  if (header.magic != BTF_MAGIC) return fail(malformed("another magic number or byte order"));
  const std::uint64_t begin = std::uint64_t{header.hdr_len} + header.type_off;
  const std::uint64_t end = begin + header.type_len;
  const std::uint64_t strings = std::uint64_t{header.hdr_len} + header.str_off;
  if (end > bytes_.size() || strings + header.str_len > bytes_.size() || begin % alignof(btf_type) != 0)
    return fail(malformed("a section lies outside the file"));
  strings_ = std::span(bytes_).subspan(strings, header.str_len);
  types_.reserve(header.type_len / 24);
  for (std::uint64_t at = begin; at < end;) {
    btf_type type{};
    if (end - at < sizeof(type)) return fail(malformed("a type is cut off"));
    std::memcpy(&type, bytes_.data() + at, sizeof(type));
    const auto tail = tail_size(type);
    if (!tail) return fail(malformed(fmt::format("type {} is of unknown kind", types_.size() + 1)));
    if (*tail > end - at - sizeof(type)) return fail(malformed("a type is cut off"));
    types_.push_back(static_cast<std::uint32_t>(at));
    at += sizeof(type) + *tail;
  }
  return {};
}

const btf_type* KernelBtf::type(std::uint32_t id) const noexcept {
  if (id == 0 || id > types_.size()) return nullptr;
  return reinterpret_cast<const btf_type*>(bytes_.data() + types_[id - 1]);
}

std::string_view KernelBtf::name(std::uint32_t offset) const noexcept {
  if (offset >= strings_.size()) return {};
  const auto* start = reinterpret_cast<const char*>(strings_.data()) + offset;
  return {start, ::strnlen(start, strings_.size() - offset)};
}

std::optional<std::uint32_t> KernelBtf::offset_in(const btf_type* structure, std::string_view member,
                                                  unsigned depth) const {
  const auto* members = reinterpret_cast<const btf_member*>(structure + 1);
  const bool has_bit_fields = BTF_INFO_KFLAG(structure->info);
  for (unsigned i = 0; i < BTF_INFO_VLEN(structure->info); ++i) {
    const std::uint32_t bits = has_bit_fields ? BTF_MEMBER_BIT_OFFSET(members[i].offset) : members[i].offset;
    const std::string_view called = name(members[i].name_off);
    if (called == member) {
      const bool is_bit_field = has_bit_fields && BTF_MEMBER_BITFIELD_SIZE(members[i].offset) != 0;
      return is_bit_field || bits % 8 != 0 ? std::nullopt : std::optional(bits / 8);
    }
    const btf_type* inner = called.empty() ? type(members[i].type) : nullptr;
    if (!inner || depth == 0) continue;
    const auto kind = BTF_INFO_KIND(inner->info);
    if (kind != BTF_KIND_STRUCT && kind != BTF_KIND_UNION) continue;
    if (const auto found = offset_in(inner, member, depth - 1)) return bits / 8 + *found;
  }
  return std::nullopt;
}

Result<std::uint32_t> KernelBtf::member_offset(std::string_view structure, std::string_view member) const {
  for (std::uint32_t id = 1; id <= types_.size(); ++id) {
    const btf_type* candidate = type(id);
    if (BTF_INFO_KIND(candidate->info) != BTF_KIND_STRUCT || name(candidate->name_off) != structure) continue;
    if (const auto offset = offset_in(candidate, member, deepest)) return *offset;
  }
  return fail(ErrorKind::not_found, fmt::format("kernel BTF has no {}.{}", structure, member));
}

}  // namespace usdt::kernel_btf
