// SPDX-License-Identifier: BSD-2-Clause
#include "event/stock_objects.hpp"

#include "ends.bpf.hpp"
#include "follow.bpf.hpp"
#include "trace.bpf.hpp"

namespace usdt::event {

std::span<const std::byte> stock_programs() noexcept { return trace_object(); }

std::span<const std::byte> follow_programs() noexcept { return follow_object(); }

std::span<const std::byte> ends_programs() noexcept { return ends_object(); }

}  // namespace usdt::event
