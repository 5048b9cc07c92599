// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <string_view>

namespace demo {

/// Hands order `id` to the carrier; `micros` is what the order took so far, in microseconds.
void ship(std::uint64_t id, std::string_view city, std::uint32_t micros);

}  // namespace demo
