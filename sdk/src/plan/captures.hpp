// SPDX-License-Identifier: BSD-2-Clause
// Which arguments are also fetched as text. Private to plan/.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "usdt/bpf/spec.h"

namespace usdt::plan {

/// Gives a string slot to each argument that `wanted` names by its number and that can be a pointer. Returns the number
/// of slots.
template <class Wanted>
std::uint32_t assign_captures(std::vector<usdt_arg_spec>& args, unsigned pointer_size, const Wanted& wanted) {
  constexpr std::uint32_t kMostSlots = 254;  // usdt_arg_spec::capture is 1 + slot in a byte
  std::uint32_t slots = 0;
  for (std::size_t i = 0; i < args.size() && slots < kMostSlots; ++i) {
    usdt_arg_spec& arg = args[i];
    const bool pointer =
        arg.kind != USDT_ARG_UNREADABLE && arg.size == pointer_size && (arg.flags & USDT_ARG_FLOAT) == 0;
    if (pointer && wanted(i)) arg.capture = static_cast<std::uint8_t>(++slots);
  }
  return slots;
}

}  // namespace usdt::plan
