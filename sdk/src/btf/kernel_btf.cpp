// SPDX-License-Identifier: BSD-2-Clause
#include "btf/kernel_btf.hpp"

#include <bpf/btf.h>
#include <fmt/format.h>

#include <cerrno>
#include <optional>
#include <string>

namespace usdt::kernel_btf {
namespace {

std::optional<std::uint32_t> offset_in(const btf* types, const btf_type* structure, std::string_view wanted) {
  const btf_member* members = btf_members(structure);
  for (unsigned i = 0; i < btf_vlen(structure); ++i) {
    const std::string_view name = btf__name_by_offset(types, members[i].name_off);
    const std::uint32_t at = btf_member_bit_offset(structure, i) / 8;
    if (name == wanted) return btf_member_bitfield_size(structure, i) ? std::nullopt : std::optional(at);
    if (!name.empty()) continue;
    const btf_type* inner = btf__type_by_id(types, members[i].type);
    if (!inner || !btf_is_composite(inner)) continue;
    if (const auto found = offset_in(types, inner, wanted)) return at + *found;
  }
  return std::nullopt;
}

}  // namespace

void KernelBtf::Free::operator()(btf* types) const noexcept { btf__free(types); }

Result<KernelBtf> KernelBtf::load() {
  btf* types = btf__load_vmlinux_btf();
  if (!types) return fail(os_failure(ErrorKind::not_supported, "kernel BTF (/sys/kernel/btf/vmlinux)", errno));
  return KernelBtf(types);
}

Result<std::uint32_t> KernelBtf::member_offset(std::string_view structure, std::string_view member) const {
  const int id = btf__find_by_name_kind(types_.get(), std::string(structure).c_str(), BTF_KIND_STRUCT);
  const btf_type* type = id < 0 ? nullptr : btf__type_by_id(types_.get(), static_cast<std::uint32_t>(id));
  const auto offset = type ? offset_in(types_.get(), type, member) : std::nullopt;
  if (!offset) return fail(ErrorKind::not_found, fmt::format("kernel BTF has no {}.{}", structure, member));
  return *offset;
}

}  // namespace usdt::kernel_btf
