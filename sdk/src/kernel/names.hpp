// SPDX-License-Identifier: BSD-2-Clause
// Names of functions and modules, and of the patterns that mean them. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/kernel.hpp"
#include "usdt/pattern.hpp"

namespace usdt::kernel {

[[nodiscard]] inline bool is_tracepoint(const KernelPattern& pattern) noexcept { return is_tracepoint(pattern.kind); }

/// True if a name means itself: it can be looked up.
[[nodiscard]] inline bool is_plain(std::string_view name) noexcept { return name.find_first_of("*?[\\") == name.npos; }

/// Functions of one module in a list sorted by module.
[[nodiscard]] std::vector<std::span<const KernelFunction>> by_module(std::span<const KernelFunction> all);

/// True if `pattern` means functions of the module: an empty pattern means all, "vmlinux" the kernel itself.
[[nodiscard]] bool module_matches(const std::string& pattern, std::string_view module) noexcept;

/// Up to three names that `name` may be a misspelling of, the nearest first.
[[nodiscard]] std::vector<std::string_view> near_names(std::string_view name, std::span<const KernelFunction> all);

}  // namespace usdt::kernel
