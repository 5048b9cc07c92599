// SPDX-License-Identifier: BSD-2-Clause
#include "locate/operation.hpp"

#include <dwarf.h>

namespace usdt::locate {

Operation operation_of(const Dwarf_Op& op, unsigned word_size) noexcept {
  using Kind = Operation::Kind;
  if (op.atom >= DW_OP_lit0 && op.atom <= DW_OP_lit31) return {Kind::constant, 0, std::uint64_t{op.atom} - DW_OP_lit0};
  if (op.atom >= DW_OP_reg0 && op.atom <= DW_OP_reg31) return {Kind::reg, std::uint64_t{op.atom} - DW_OP_reg0, 0};
  if (op.atom >= DW_OP_breg0 && op.atom <= DW_OP_breg31)
    return {Kind::sum, std::uint64_t{op.atom} - DW_OP_breg0, op.number};
  switch (op.atom) {
    case DW_OP_const1u:
    case DW_OP_const1s:
    case DW_OP_const2u:
    case DW_OP_const2s:
    case DW_OP_const4u:
    case DW_OP_const4s:
    case DW_OP_const8u:
    case DW_OP_const8s:
    case DW_OP_constu:
    case DW_OP_consts:
      return {Kind::constant, 0, op.number};
    case DW_OP_regx:
      return {Kind::reg, op.number, 0};
    case DW_OP_bregx:
      return {Kind::sum, op.number, op.number2};
    case DW_OP_deref:
      return {Kind::load, 0, word_size};
    case DW_OP_deref_size:
      return {Kind::load, 0, op.number};
    default:
      return {};
  }
}

}  // namespace usdt::locate
