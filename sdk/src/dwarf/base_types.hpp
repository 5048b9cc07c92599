// SPDX-License-Identifier: BSD-2-Clause
// What the numbers are that languages have of themselves (DW_TAG_base_type): DWARF tells an encoding and a size, from
// which alone it does not follow what the bits mean. Private to dwarf/.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "arch/arch.hpp"
#include "usdt/type_graph.hpp"

namespace usdt::dwarf {

/// Formats of floating-point numbers that DW_ATE_float does not tell apart.
enum class FloatFormat : std::uint8_t { unknown, binary16, binary32, binary64, binary128, x87 };

struct BaseType {
  Type type;                           ///< of kind structure: no number that can be read as one
  bool swapped = false;                ///< as TypeInfo has it
  std::vector<NumberPart> parts = {};  ///< likewise
  std::string no_number = {};          ///< likewise
  FloatFormat format = FloatFormat::unknown;
};

/// `die` is a DW_TAG_base_type of `size` bytes. `has_quads`: whether some code of the file computes with numbers of 128
/// bits, which no processor of x86 does itself; it is asked only where the answer counts.
[[nodiscard]] BaseType base_type(Dwarf_Die die, std::uint32_t size, const arch::Arch& arch,
                                 const std::function<bool()>& has_quads);

/// Whether numbers of this type are in memory in another byte order than the machine's.
[[nodiscard]] bool is_swapped(Dwarf_Die die);

}  // namespace usdt::dwarf
