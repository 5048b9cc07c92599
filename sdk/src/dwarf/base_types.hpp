// SPDX-License-Identifier: BSD-2-Clause
// What the numbers are that languages have of themselves (DW_TAG_base_type): DWARF tells an encoding and a size, from
// which alone it does not follow what the bits mean. Private to dwarf/.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <string>
#include <vector>

#include "arch/arch.hpp"
#include "usdt/type_graph.hpp"

namespace usdt::dwarf {

struct BaseType {
  Type type;                           ///< of kind structure: no number that can be read as one
  bool swapped = false;                ///< as TypeInfo has it
  std::vector<NumberPart> parts = {};  ///< likewise
  std::string no_number = {};          ///< likewise
};

/// `die` is a DW_TAG_base_type of `size` bytes.
[[nodiscard]] BaseType base_type(Dwarf_Die die, std::uint32_t size, const arch::Arch& arch);

/// Whether numbers of this type are in memory in another byte order than the machine's.
[[nodiscard]] bool is_swapped(Dwarf_Die die);

}  // namespace usdt::dwarf
