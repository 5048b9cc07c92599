// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <string_view>

namespace usdt {
inline namespace v1 {

/// The machine an ELF file was built for, whatever machine this code runs on.
enum class Machine : std::uint8_t { x86_64, i386, aarch64 };

/// "x86_64", "i386", "aarch64": the names of the JSON contract.
[[nodiscard]] std::string_view to_string(Machine machine) noexcept;

/// True where programs of `machine` run on the machine this code runs on: its own, and i386 on x86-64.
[[nodiscard]] bool runs_here(Machine machine) noexcept;

}  // namespace v1
}  // namespace usdt
