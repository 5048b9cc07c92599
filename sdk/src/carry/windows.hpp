// SPDX-License-Identifier: BSD-2-Clause
// Specs as the table and programs hold them. Private to the library.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "usdt/plan.hpp"

namespace usdt::carry {

/// Arguments of a spec with neighbouring memory operands gathered into windows (bpf/spec.h).
struct Windowed {
  std::vector<usdt_arg_spec> args;
  std::array<std::uint8_t, 1 + USDT_WINDOWS> sizes{};  ///< bytes of windows 1..3
};
[[nodiscard]] Windowed gather_windows(std::vector<usdt_arg_spec> args);

/// Writes `spec` as a struct usdt_spec with its arguments and their steps behind it, all together
/// sizeof(usdt_spec) + (args + steps) * sizeof(usdt_arg_spec) bytes.
void write_spec(std::byte* to, const EncodedSpec& spec);

}  // namespace usdt::carry
