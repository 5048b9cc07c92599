// SPDX-License-Identifier: BSD-2-Clause
// What the kernel says of one function that is asked for by name. Its lists say more, and take a second or two to
// write; a question takes milliseconds. For globs there is ask_lists.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace usdt::kernel {

/// True if this kernel refuses to probe a name that several functions have (b022f0c7e404, Linux 6.7 and stable
/// kernels), so that what it does not refuse is the only one.
[[nodiscard]] bool tells_functions_apart();

/// The address of the first symbol of this name, function or not; 0: none, or not to be had.
[[nodiscard]] std::uint64_t ask_address(const std::string& name);

/// The address of the function called `name`, if it is the only one among those of the kernel and its modules, ftrace
/// can trace it, and kprobes may be put there. Nothing: it is otherwise, or this kernel, machine or user cannot tell;
/// the lists know. Nothing is attached to find out.
[[nodiscard]] std::optional<std::uint64_t> ask_function(const std::string& name);

}  // namespace usdt::kernel
