// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/bpf/cookie.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "arch/arch.hpp"
#include "usdt/cookie.hpp"

namespace usdt {
inline namespace v1 {
namespace {

constexpr unsigned kX86StackWord = 19, kX86StackCode = 15;

unsigned register_bits(Machine machine) { return arch::for_machine(machine).cookie_bits; }

/// Fields from bit 0 upwards; `used` beyond 64 says that they did not fit.
struct BitWriter {
  std::uint64_t bits = 0;
  unsigned used = 0;

  void put(std::uint64_t value, unsigned width) {
    if (used + width <= 64) bits |= (value & (~std::uint64_t{0} >> (64 - width))) << used;
    used += width;
  }
};

bool is_signed_in(std::uint64_t value, unsigned width) {
  const auto number = static_cast<std::int64_t>(value);
  return number >= -(std::int64_t{1} << (width - 1)) && number < std::int64_t{1} << (width - 1);
}

/// One argument under construction.
class ArgPacker {
 public:
  ArgPacker(unsigned reg_bits, const usdt_arg_spec& arg) : reg_bits_(reg_bits), arg_(arg) {}

  /// False where no form says what the argument is; an unfit one may come out otherwise, which the caller sees.
  bool pack(BitWriter& out) const {
    // Everything but what cannot be read has one of the sizes of the type field.
    if (arg_.kind != USDT_ARG_UNREADABLE && (!std::has_single_bit(arg_.size) || arg_.size > 8)) return false;
    if (arg_.kind == USDT_ARG_UNREADABLE) {
      out.put(USDT_FORM_UNREADABLE, 7);
      out.put(arg_.size, 4);
      return true;
    }
    if (arg_.kind == USDT_ARG_CONST) return constant(out);
    if (arg_.kind == USDT_ARG_REG) return in_register(out);
    return arg_.kind == USDT_ARG_MEM && in_memory(out);
  }

 private:
  void form(BitWriter& out, unsigned bits, unsigned width) const {
    out.put(bits, width);
    out.put(static_cast<unsigned>(std::countr_zero(arg_.size)), 2);
    out.put((arg_.flags & USDT_ARG_SIGNED) != 0 ? 1 : 0, 1);
  }
  void put_register(BitWriter& out, unsigned word) const {
    if (reg_bits_ == USDT_REG_BITS_X86 && word == kX86StackWord) word = kX86StackCode;
    out.put(word, reg_bits_);
  }

  bool constant(BitWriter& out) const {
    // The upper bits follow from size and sign.
    const unsigned spare = 64U - 8U * arg_.size;
    const auto value = static_cast<std::uint64_t>(static_cast<std::int64_t>(arg_.value << spare) >> spare);
    const bool narrow = is_signed_in(value, 10);
    narrow ? form(out, USDT_FORM_CONST, 4) : form(out, USDT_FORM_WIDE_CONST, 7);
    out.put(value, narrow ? 10 : 32);
    return true;
  }

  bool in_register(BitWriter& out) const {
    if ((arg_.flags & USDT_ARG_FLOAT) != 0) {
      form(out, USDT_FORM_FLOAT_REG, 7);
    } else if (arg_.shift == 8) {
      form(out, USDT_FORM_HIGH_BYTE, 7);
    } else {
      form(out, USDT_FORM_REG, 1);
    }
    put_register(out, arg_.reg);
    return true;
  }

  bool in_memory(BitWriter& out) const {
    unsigned width = 18;
    if ((arg_.flags & USDT_ARG_IP) != 0) {
      form(out, USDT_FORM_IP, 7);
      out.put(arg_.value, 32);
      return true;
    }
    if (arg_.index != USDT_REG_NONE) {
      form(out, USDT_FORM_INDEXED, 7);
      width = 12;
    } else if ((arg_.flags & USDT_ARG_FLOAT) != 0) {
      form(out, USDT_FORM_FLOAT_MEM, 7);
    } else if (is_signed_in(arg_.value, 10)) {
      form(out, USDT_FORM_NEAR, 2);
      width = 10;
    } else {
      form(out, USDT_FORM_MEM, 3);
    }
    put_register(out, arg_.reg);
    out.put(arg_.value, width);
    if (arg_.index == USDT_REG_NONE) return true;
    put_register(out, arg_.index);
    out.put(arg_.shift, 2);
    return true;
  }

  unsigned reg_bits_;
  const usdt_arg_spec& arg_;
};

bool same(const usdt_arg_spec& a, const usdt_arg_spec& b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

/// The wrapping of addresses at 2^32 is said once for all memory arguments.
std::optional<bool> common_addr32(std::span<const usdt_arg_spec> args) {
  std::optional<bool> common;
  for (const usdt_arg_spec& arg : args) {
    if (arg.kind != USDT_ARG_MEM) continue;
    const bool addr32 = (arg.flags & USDT_ARG_ADDR32) != 0;
    if (common && *common != addr32) return std::nullopt;
    common = addr32;
  }
  return common.value_or(false);
}

}  // namespace

std::optional<std::uint64_t> pack_cookie(Machine machine, std::span<const usdt_arg_spec> args, std::uint32_t site,
                                         unsigned site_bits) {
  const auto addr32 = common_addr32(args);
  if (args.size() > USDT_PACKED_ARGS || !addr32) return std::nullopt;
  if (site_bits > USDT_PACKED_BITS || std::uint64_t{site} >> site_bits != 0) return std::nullopt;
  const unsigned reg_bits = register_bits(machine);
  BitWriter out;
  for (const usdt_arg_spec& arg : args) {
    // Whatever the format cannot say comes back changed: the reader is the judge, not a second list of its limits.
    usdt_arg_spec plain = arg;
    plain.window = 0;
    BitWriter alone;
    if (!ArgPacker(reg_bits, plain).pack(alone) || alone.used > USDT_PACKED_BITS) return std::nullopt;
    const usdt_arg_spec back = usdt_unpack_arg(alone.bits, reg_bits, *addr32);
    if (!same(plain, back)) return std::nullopt;
    out.put(alone.bits, alone.used);
  }
  if (out.used + site_bits > USDT_PACKED_BITS) return std::nullopt;
  const auto header = std::uint64_t{USDT_CARRIER_COOKIE} << 62 | std::uint64_t{args.size()} << 59 |
                      std::uint64_t{*addr32} << USDT_PACKED_BITS;
  return header | (site_bits == 0 ? 0 : std::uint64_t{site} << (USDT_PACKED_BITS - site_bits)) | out.bits;
}

Result<std::vector<usdt_arg_spec>> unpack_cookie(Machine machine, std::uint64_t cookie) {
  if (USDT_COOKIE_CARRIER(cookie) != USDT_CARRIER_COOKIE)
    return fail(ErrorKind::malformed, fmt::format("cookie {:#x} is no packed spec of version 1", cookie));
  const unsigned reg_bits = register_bits(machine);
  std::vector<usdt_arg_spec> args;
  std::uint64_t rest = cookie;
  unsigned used = 0;
  for (unsigned i = 0; i < USDT_PACKED_COUNT(cookie); ++i) {
    const unsigned width = usdt_packed_width(rest, reg_bits);
    if (width == 0) return fail(ErrorKind::malformed, fmt::format("cookie {:#x}: argument {} has no form", cookie, i));
    used += width;
    if (used > USDT_PACKED_BITS)
      return fail(ErrorKind::malformed,
                  fmt::format("cookie {:#x}: argument {} ends beyond bit {}", cookie, i, USDT_PACKED_BITS - 1));
    args.push_back(usdt_unpack_arg(rest, reg_bits, USDT_PACKED_ADDR32(cookie)));
    rest >>= width;
  }
  return args;
}

}  // namespace v1
}  // namespace usdt
