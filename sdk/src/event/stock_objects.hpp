// SPDX-License-Identifier: BSD-2-Clause
// The BPF objects that the library has inside, as bytes. Each build embeds them in a directory of its own, which
// one source alone is told: all others are the same in each build, and the compiler's cache knows them.
#pragma once

#include <cstddef>
#include <span>

namespace usdt::event {

[[nodiscard]] std::span<const std::byte> stock_programs() noexcept;   ///< bpf/trace.bpf.c
[[nodiscard]] std::span<const std::byte> follow_programs() noexcept;  ///< bpf/follow.bpf.c
[[nodiscard]] std::span<const std::byte> ends_programs() noexcept;    ///< bpf/ends.bpf.c

}  // namespace usdt::event
