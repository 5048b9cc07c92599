// SPDX-License-Identifier: BSD-2-Clause
// What usdt-broker hands out of an object that it has loaded. Private to the library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "usdt/bpf_object.hpp"

namespace usdt::broker {

struct LoadedHere {
  struct Map {
    std::string name;
    int fd = -1;  ///< the object's
  };
  /// All maps but the constants.
  [[nodiscard]] static std::vector<Map> maps(const LoadedObject& object);
  /// About how much the maps of an object take that is not loaded, without the table of specs, and those that it
  /// shares.
  [[nodiscard]] static std::uint64_t map_bytes(const BpfObject& object, const std::vector<std::string>& without);
};

}  // namespace usdt::broker
