// SPDX-License-Identifier: BSD-2-Clause
// Of the kernel's long lists only what patterns mean, by BPF programs that the kernel runs: a glob of a thousand
// functions waits a third of a second where writing and reading the lists as text takes two.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "btf/types.hpp"
#include "kernel/symbol_lists.hpp"

namespace usdt::kernel {

/// The symbols of code whose names begin with one of `beginnings` (of which eight letters are looked at), as lines for
/// parse_asked(), in the order of /proc/kallsyms. Nothing: this kernel (before 6.0) or user cannot do it.
[[nodiscard]] std::optional<Text> ask_symbols(const btf::Types& types, std::span<const std::string_view> beginnings);

/// The instructions that ftrace can turn into calls, by address: what available_filter_functions_addrs is written from
/// (kernel/trace/ftrace.c: ftrace_pages_start), laid out as `types` say. Nothing: they cannot be read.
[[nodiscard]] std::optional<std::vector<std::uint64_t>> ask_ftrace_places(const btf::Types& types);

}  // namespace usdt::kernel
