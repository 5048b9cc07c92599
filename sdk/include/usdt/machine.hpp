// SPDX-License-Identifier: BSD-2-Clause
// The machines whose files this library reads and traces, on whatever machine it runs itself (host_machine()):
// runs_here() tells which of them can be attached here. Threads: plain values and pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace usdt {
inline namespace v1 {

/// Names the machine an ELF file was built for, whatever machine this code runs on.
enum class Machine : std::uint8_t { x86_64, i386, aarch64, riscv64 };

/// Returns the name that JSON has for it: "x86_64", "i386", "aarch64", "riscv64".
[[nodiscard]] std::string_view to_string(Machine machine) noexcept;

/// Returns the machine that this code was compiled for.
[[nodiscard]] Machine host_machine() noexcept;

/// Returns whether programs of `machine` run on the machine this code runs on: its own, and i386 on x86-64.
[[nodiscard]] bool runs_here(Machine machine) noexcept;

/// Returns the bytes of an address in files of `machine`: 4 or 8.
[[nodiscard]] unsigned address_size(Machine machine) noexcept;

/// Returns whether the kernel lets the processor step the return instruction of a function that has a uprobe on it, as
/// on x86, at about ten times the cost of a nop. On other machines it simulates the instruction.
[[nodiscard]] bool steps_returns(Machine machine) noexcept;

}  // namespace v1
}  // namespace usdt
