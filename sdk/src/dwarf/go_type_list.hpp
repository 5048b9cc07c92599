// SPDX-License-Identifier: BSD-2-Clause
// The types of a Go program that values of its interfaces may have. Private to dwarf/.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace usdt::dwarf {

struct GoType {
  std::string_view name;  ///< libdw's
  Dwarf_Die die;
  std::uint64_t address = 0;  ///< the address of the run-time type that stands for it
};

struct GoTypes {
  std::vector<GoType> all;     ///< those that interfaces have most often first
  std::vector<GoType> errors;  ///< those with a method Error
};

}  // namespace usdt::dwarf
