// SPDX-License-Identifier: BSD-2-Clause
#include "program/libbpf_specs.hpp"

#include <bpf/btf.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "arch/arch.hpp"
#include "base/try.hpp"

namespace usdt::backends {
namespace {

constexpr const char* kSpecs = "__bpf_usdt_specs";
constexpr const char* kAddresses = "__bpf_usdt_ip_to_spec_id";

/// enum __bpf_usdt_arg_type of libbpf's src/usdt.bpf.h: 0..2 since 0.8, 3 since 1.7.
enum class LibbpfType : std::uint8_t { constant = 0, reg = 1, memory = 2, indexed = 3, unknown = 0x7f };

/// A member of the structure `type`.
LibbpfField field(const btf* types, const btf_type* type, std::string_view name) {
  const btf_member* members = btf_members(type);
  for (std::uint32_t i = 0; i < btf_vlen(type); ++i) {
    if (name != btf__name_by_offset(types, members[i].name_off)) continue;
    std::uint32_t bits = btf_member_bitfield_size(type, i);
    if (bits == 0)
      bits = static_cast<std::uint32_t>(std::max<std::int64_t>(btf__resolve_size(types, members[i].type), 0)) * 8;
    return {btf_member_bit_offset(type, i), bits};
  }
  return {};
}

const btf_type* structure(const btf* types, std::uint32_t id) {
  const int resolved = btf__resolve_type(types, id);
  const btf_type* type = resolved > 0 ? btf__type_by_id(types, static_cast<std::uint32_t>(resolved)) : nullptr;
  return type && btf_is_struct(type) ? type : nullptr;
}

/// The array of arguments, which a spec begins with.
const struct btf_array* argument_array(const btf* types, const btf_type* spec) {
  if (!spec || btf_vlen(spec) == 0) return nullptr;
  const btf_type* first = btf__type_by_id(types, btf_members(spec)->type);
  return first && btf_is_array(first) ? btf_array(first) : nullptr;
}

bool within(const LibbpfField& at, std::uint32_t bytes) {
  return at.bits > 0 && at.bits <= 64 && at.offset + std::uint64_t{at.bits} <= 8 * std::uint64_t{bytes};
}

bool is_usable(const LibbpfLayout& layout) {
  const auto in_arg = [&](const LibbpfField& at) { return within(at, layout.arg_bytes); };
  return within(layout.cookie, layout.spec_bytes) && within(layout.arg_cnt, layout.spec_bytes) &&
         in_arg(layout.value) && in_arg(layout.type) && in_arg(layout.base) && in_arg(layout.is_signed) &&
         in_arg(layout.spare_bits) && (layout.index.bits == 0 || (in_arg(layout.index) && in_arg(layout.scale))) &&
         std::uint64_t{layout.arg_bytes} * layout.max_args <= layout.spec_bytes;
}

/// The lowest bits of `value` into a field; the machine is little-endian, as all are that we read.
void put(std::byte* to, const LibbpfField& at, std::uint64_t value) {
  for (std::uint32_t i = 0; i < at.bits; ++i) {
    const std::uint32_t bit = at.offset + i;
    const auto mask = static_cast<std::byte>(1u << bit % 8);
    to[bit / 8] = (value >> i & 1) != 0 ? to[bit / 8] | mask : to[bit / 8] & ~mask;
  }
}

/// One argument as libbpf's program understands it.
struct Translated {
  LibbpfType type = LibbpfType::unknown;
  std::uint64_t value = 0;
  std::uint32_t base = 0;   ///< bytes into pt_regs
  std::uint32_t index = 0;  ///< bytes into pt_regs
  std::uint32_t scale = 0;
};

Translated translate_register(const usdt_arg_spec& arg) {
  // The program reads 8 bytes at any offset: %ah is one byte further. What is above the register is the next one's.
  constexpr unsigned kKnown = USDT_ARG_SIGNED | USDT_ARG_FLOAT;
  if ((arg.flags & ~kKnown) != 0 || arg.shift % 8 != 0 || arg.shift / 8 + arg.size > 8) return {};
  return {.type = LibbpfType::reg, .base = 8u * arg.reg + arg.shift / 8u};
}

/// The program adds up a register, perhaps a second one times a scale, and a number, all of 64 bits.
Translated translate_memory(const usdt_arg_spec& arg, const LibbpfSites& sites) {
  constexpr unsigned kKnown = USDT_ARG_SIGNED | USDT_ARG_FLOAT | USDT_ARG_ADDR32 | USDT_ARG_IP;
  if ((arg.flags & ~kKnown) != 0) return {};
  const bool narrow = (arg.flags & USDT_ARG_ADDR32) != 0;
  if (narrow && !sites.narrow_addresses) return {};
  std::vector<std::uint32_t> addends;
  if ((arg.flags & USDT_ARG_IP) != 0) addends.push_back(sites.ip_word);
  if (arg.reg != USDT_REG_NONE) addends.push_back(arg.reg);
  std::uint32_t scale = 0;
  if (arg.index != USDT_REG_NONE) {
    if (addends.empty() && arg.shift > 0) return {};
    addends.push_back(arg.index);
    scale = arg.shift;
  }
  if (addends.empty() || addends.size() > 2) return {};
  // Addresses that ought to wrap at 4 GiB are beyond it then, where such programs have no memory: an error, no value.
  const auto value = narrow ? static_cast<std::uint64_t>(static_cast<std::int32_t>(arg.value)) : arg.value;
  if (addends.size() == 1) return {.type = LibbpfType::memory, .value = value, .base = 8 * addends[0]};
  return {LibbpfType::indexed, value, 8 * addends[0], 8 * addends[1], scale};
}

Translated translate(const usdt_arg_spec& arg, const LibbpfSites& sites) {
  if (arg.kind == USDT_ARG_CONST) return {.type = LibbpfType::constant, .value = arg.value};
  if (arg.kind == USDT_ARG_REG) return translate_register(arg);
  if (arg.kind == USDT_ARG_MEM) return translate_memory(arg, sites);
  if (arg.kind == USDT_ARG_ADDR) {
    const Translated address = translate_memory(arg, sites);
    // Nothing is added to the register: its value is the address.
    if (address.type == LibbpfType::memory && address.value == 0)
      return {.type = LibbpfType::reg, .base = address.base};
  }
  return {};
}

bool holds(const LibbpfField& at, std::uint64_t value) { return at.bits >= 64 || value >> at.bits == 0; }

void write_arg(std::byte* to, const LibbpfLayout& layout, const usdt_arg_spec& arg, const LibbpfSites& sites) {
  Translated made = translate(arg, sites);
  if (!holds(layout.base, made.base) || !holds(layout.index, made.index) || !holds(layout.scale, made.scale)) made = {};
  if (made.type == LibbpfType::indexed && layout.index.bits == 0) made = {};
  put(to, layout.value, made.value);
  put(to, layout.type, static_cast<std::uint64_t>(made.type));
  put(to, layout.base, made.base);
  put(to, layout.index, made.index);
  put(to, layout.scale, made.scale);
  put(to, layout.is_signed, (arg.flags & USDT_ARG_SIGNED) != 0 ? 1 : 0);
  put(to, layout.spare_bits, 64u - 8u * arg.size);
}

/// Returns what the sites of each spec have in common.
std::vector<LibbpfSites> sites_of_specs(const AttachPlan& plan) {
  std::vector<LibbpfSites> all(plan.specs.size(), {.narrow_addresses = true});
  for (const PlannedSite& site : plan.sites) {
    const arch::Arch& arch = arch::for_machine(machine_of(plan, site));
    LibbpfSites& sites = all[site.spec.value];
    sites.ip_word = static_cast<std::uint8_t>(arch.ip_word);
    if (!arch.wraps_at_32_bits) sites.narrow_addresses = false;
  }
  return all;
}

}  // namespace

Result<LibbpfLayout> libbpf_layout(const ObjectCopy& object) {
  const btf* types = bpf_object__btf(object.get());
  const bpf_map* map = object.map(kSpecs);
  const btf_type* spec = types && map ? structure(types, bpf_map__btf_value_type_id(map)) : nullptr;
  const struct btf_array* args = argument_array(types, spec);
  const btf_type* arg = args ? structure(types, args->type) : nullptr;
  LibbpfLayout layout;
  if (arg) {
    layout = {.spec_bytes = spec->size,
              .arg_bytes = arg->size,
              .max_args = args->nelems,
              .cookie = field(types, spec, "usdt_cookie"),
              .arg_cnt = field(types, spec, "arg_cnt"),
              .value = field(types, arg, "val_off"),
              .type = field(types, arg, "arg_type"),
              .base = field(types, arg, "reg_off"),
              .index = field(types, arg, "idx_reg_off"),
              .scale = field(types, arg, "scale_bitshift"),
              .is_signed = field(types, arg, "arg_signed"),
              .spare_bits = field(types, arg, "arg_bitshift")};
  }
  if (is_usable(layout)) return layout;
  return fail(
      ErrorKind::malformed,
      fmt::format("the BPF object's map '{}' holds no struct __bpf_usdt_spec as libbpf 0.8 to 1.8 have it: compile "
                  "the program again with usdt/bpf/compat before libbpf in the include path",
                  kSpecs));
}

void write_libbpf_spec(std::span<std::byte> to, const LibbpfLayout& layout, const EncodedSpec& spec,
                       const LibbpfSites& sites) {
  std::fill(to.begin(), to.end(), std::byte{0});
  const std::size_t count = std::min<std::size_t>(spec.args.size(), layout.max_args);
  for (std::size_t i = 0; i < count; ++i) write_arg(&to[i * layout.arg_bytes], layout, spec.args[i], sites);
  put(to.data(), layout.cookie, spec.user_cookie);
  put(to.data(), layout.arg_cnt, count);
}

bool has_libbpf_specs(const ObjectCopy& object) { return object.map(kSpecs) != nullptr; }

Result<void> size_libbpf_specs(const ObjectCopy& object, const AttachPlan& plan) {
  TRY(libbpf_layout(object));
  bpf_map* specs = object.map(kSpecs);
  int error = bpf_map__set_max_entries(specs, static_cast<std::uint32_t>(std::max<std::size_t>(plan.specs.size(), 1)));
  if (!error) error = bpf_map__set_map_flags(specs, bpf_map__map_flags(specs) | BPF_F_MMAPABLE);
  // Only kernels without attach cookies need it.
  if (bpf_map* addresses = object.map(kAddresses); addresses && !error) error = bpf_map__set_max_entries(addresses, 1);
  if (error) return fail(os_failure(ErrorKind::io, fmt::format("size the map '{}'", kSpecs), -error));
  return {};
}

Result<void> fill_libbpf_specs(const ObjectCopy& object, const AttachPlan& plan) {
  const auto layout = TRY(libbpf_layout(object));
  // The kernel rounds the entries of an array up to 8 bytes.
  const std::size_t size = (std::size_t{layout.spec_bytes} + 7) / 8 * 8;
  return object.write_map(kSpecs, size * plan.specs.size(), [&](std::byte* to) {
    const auto sites = sites_of_specs(plan);
    for (const Index<EncodedSpec> i : plan.specs.indices())
      write_libbpf_spec({to + i.value * size, layout.spec_bytes}, layout, plan.specs[i], sites[i.value]);
  });
}

}  // namespace usdt::backends
