// SPDX-License-Identifier: BSD-2-Clause
// The probes that own_programs_test.cpp passes in its own process.
#pragma once

#include <cstdint>

namespace probed {

/// own:mixed, 6 arguments: pointer in a register, int and u16 in memory, a constant, s8 in a register, a vector
/// register.
void mixed(const void* pointer, int number, std::uint16_t word, std::int8_t byte);
/// own:typed, 3 arguments: pointer, int, u16; all readable.
void typed(const char* pointer, int number, std::uint16_t word);
/// own:partly: as typed, but the second argument is in a vector register.
void partly(const char* pointer, std::uint16_t word);
/// own:memory: a u64 at `number`, and `text` as a pointer.
void memory(const std::uint64_t* number, const char* text);

/// own:floats, a float and a double in general registers (on i386 the double in memory).
void floats(float narrow, double wide);
/// own:twelve: twelve neighbouring numbers in memory.
void twelve(const int* numbers);

}  // namespace probed
