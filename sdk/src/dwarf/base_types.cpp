// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/base_types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>

#include "dwarf/compiler.hpp"
#include "dwarf/die.hpp"

namespace usdt::dwarf {
namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

/// By the names that compilers give them: of 2 bytes there are bfloat16 besides, of 16 also IBM's pairs.
FloatFormat format_of(std::string_view name, std::uint64_t size, const arch::Arch& arch) {
  const bool x86 = arch.numbers.x87_size != 0;
  switch (size) {
    case 2:
      return is_one_of(name, {"_Float16", "__fp16", "f16", "half"}) ? FloatFormat::binary16 : FloatFormat::unknown;
    case 4:
      return FloatFormat::binary32;
    case 8:
      return FloatFormat::binary64;
    case 10:
    case 12:
    case 16:
      // GCC and Clang; Fortran, D and Pascal.
      if (x86 &&
          is_one_of(name, {"long double", "_Float64x", "__float80", "real(kind=10)", "real", "Extended", "EXTENDED"}))
        return FloatFormat::x87;
      if (size == 16 && (is_one_of(name, {"_Float128", "__float128", "real(kind=16)", "f128"}) ||
                         (!x86 && is_one_of(name, {"long double", "_Float64x"}))))
        return FloatFormat::binary128;
      return FloatFormat::unknown;
    default:
      return FloatFormat::unknown;
  }
}

/// -mlong-double-128 makes a long double of x86 one of 128 bits. GCC says so; where no options are told it is possible
/// in a file that computes with such numbers.
FloatFormat format_of_long_double(Dwarf_Die die, std::uint64_t size, const arch::Arch& arch,
                                  const std::function<bool()>& has_quads) {
  constexpr std::uint64_t words_of_128_bits = 16;
  if (size != words_of_128_bits) return FloatFormat::x87;
  const std::string_view told = producer_of(die);
  const auto last = told.rfind(" -mlong-double-");
  if (last != told.npos && told.substr(last).starts_with(" -mlong-double-128")) return FloatFormat::binary128;
  const bool names_options = told.starts_with("GNU ") && told.find(" -m") != told.npos;
  if (last != told.npos || names_options) return FloatFormat::x87;
  if (size != arch.numbers.x87_size && is_clang(die)) return FloatFormat::binary128;
  return has_quads() ? FloatFormat::unknown : FloatFormat::x87;
}

/// "complex double" and "_Complex double"; Fortran's "complex(kind=8)", whose parts are of that kind.
std::string component_of(std::string_view name) {
  for (const std::string_view word : {"complex ", "_Complex "})
    if (name.starts_with(word)) return std::string(name.substr(word.size()));
  if (name.starts_with("complex(")) return fmt::format("real{}", name.substr(std::string_view("complex").size()));
  return std::string(name);
}

/// Two halves of a number of more than 8 bytes, in the order of memory.
std::vector<NumberPart> halves(std::uint32_t high_size, bool is_signed, bool swapped) {
  const std::uint64_t low = swapped ? high_size : 0;
  const std::uint64_t high = swapped ? 0 : 8;
  return {{"low", low, {.size = 8}}, {"high", high, {.size = high_size, .is_signed = is_signed}}};
}

void make_floating(BaseType& base, Dwarf_Die die, const arch::Arch& arch, const std::function<bool()>& has_quads) {
  base.type.kind = TypeKind::floating;
  const std::string_view name = own_name(die);
  base.format = format_of(name, base.type.size, arch);
  if (base.format == FloatFormat::x87 && name == "long double")
    base.format = format_of_long_double(die, base.type.size, arch, has_quads);
  switch (base.format) {
    case FloatFormat::binary16:
    case FloatFormat::binary32:
    case FloatFormat::binary64:
      return;
    case FloatFormat::binary128:
      base.parts = halves(8, false, base.swapped);
      return;
    case FloatFormat::x87:
      if (!base.swapped) base.parts = halves(2, false, false);
      break;
    case FloatFormat::unknown:
      break;
  }
  if (base.parts.empty())
    base.no_number = fmt::format("a floating-point number of {} bytes in a format that is not known", base.type.size);
}

void make_complex(BaseType& base, std::string_view name, const arch::Arch& arch) {
  const std::uint32_t size = base.type.size / 2;
  const FloatFormat format = format_of(component_of(name), size, arch);
  base.type.kind = TypeKind::structure;
  const bool known =
      format == FloatFormat::binary16 || format == FloatFormat::binary32 || format == FloatFormat::binary64;
  if (!known) {
    base.no_number = fmt::format("a complex number of {} bytes", base.type.size);
    return;
  }
  const Type part{.size = size, .is_signed = false, .kind = TypeKind::floating};
  base.parts = {{"real", 0, part}, {"imaginary", size, part}};
}

/// C23's _BitInt(N) fills its bytes with bits of no meaning (x86-64) or of its sign; DWARF tells of N by the name
/// alone, or as of Ada's types by DW_AT_bit_size, or not at all (Clang 14 to 16 call each "_BitInt").
void make_integer(BaseType& base, Dwarf_Die die) {
  const std::uint64_t all = 8ULL * base.type.size;
  const auto bits = own_number(die, DW_AT_bit_size);
  const bool bit_int = own_name(die).find("_BitInt") != std::string_view::npos;
  const bool whole = own_name(die).find(fmt::format("_BitInt({})", all)) != std::string_view::npos || bits == all;
  if (bit_int && !whole && !bits && own_name(die).find('(') == std::string_view::npos)
    base.no_number = fmt::format("an integer that may not fill its {} bytes", base.type.size);
  else if ((bit_int && !whole) || bits.value_or(all) != all)
    base.no_number = fmt::format("an integer that does not fill its {} bytes", base.type.size);
  if (base.type.size == 16) base.parts = halves(8, base.type.is_signed, base.swapped);
}

std::optional<std::uint64_t> endianity(Dwarf_Die die) { return own_number(die, DW_AT_endianity); }

}  // namespace

bool is_swapped(Dwarf_Die die) { return endianity(die) == std::uint64_t{DW_END_big}; }

BaseType base_type(Dwarf_Die die, std::uint32_t size, const arch::Arch& arch, const std::function<bool()>& has_quads) {
  BaseType base{.type = {.size = size}, .swapped = size > 1 && is_swapped(die)};
  const std::string_view name = own_name(die);
  const auto encoding = own_number(die, DW_AT_encoding);
  switch (encoding.value_or(0)) {
    case DW_ATE_boolean:
      if (size == 1) base.type.kind = TypeKind::boolean;
      break;
    case DW_ATE_float:
      make_floating(base, die, arch, has_quads);
      break;
    case DW_ATE_complex_float:
      make_complex(base, name, arch);
      break;
    case DW_ATE_signed:
    case DW_ATE_signed_char:
      base.type.is_signed = true;
      make_integer(base, die);
      break;
    case DW_ATE_unsigned:
    case DW_ATE_unsigned_char:
    case DW_ATE_address:
    case DW_ATE_UTF:
    case DW_ATE_UCS:
    case DW_ATE_ASCII:
      make_integer(base, die);
      break;
    case DW_ATE_decimal_float:
    case DW_ATE_packed_decimal:
    case DW_ATE_numeric_string:
    case DW_ATE_edited:
      base.no_number = "a decimal number";
      break;
    case DW_ATE_signed_fixed:
    case DW_ATE_unsigned_fixed:
      base.no_number = "a fixed-point number";
      break;
    case DW_ATE_imaginary_float:
      base.no_number = "an imaginary number";
      break;
    case 0:
      base.no_number = "a number whose encoding is not told";
      break;
    default:  // GCC's complex integers, DW_ATE_lo_user, among them
      base.no_number = fmt::format("a number in an encoding that is not known ({:#x})", *encoding);
  }
  const auto order = endianity(die).value_or(DW_END_default);
  if (size > 1 && order > DW_END_little) base.no_number = "a number in a byte order that is not known";
  if (!base.no_number.empty()) {
    base.type.kind = TypeKind::structure;
    base.parts.clear();
  }
  return base;
}

}  // namespace usdt::dwarf
