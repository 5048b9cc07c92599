// SPDX-License-Identifier: BSD-2-Clause
// Words for people: where an argument's value is, and which instruction is at a site.
#pragma once

#include <string>

#include "usdt/usdt.hpp"

namespace usdt_list {

/// "register rdi, low 32 bits", "memory at rbp-20", "memory at NBuffers+4, pc-relative", "constant -1".
[[nodiscard]] std::string describe_operand(const usdt::Arg& arg, const usdt::ParsedArg& parsed, usdt::Machine machine);

/// "90 0f 1f 44 00 00": the instruction or pair of nops that the class is about; the first 8 bytes of others.
[[nodiscard]] std::string describe_bytes(const usdt::Site& site);

}  // namespace usdt_list
