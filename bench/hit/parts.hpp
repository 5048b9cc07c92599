// SPDX-License-Identifier: BSD-2-Clause
// The parts of `bench_hit`; each prints its tables.
#pragma once

#include "measure.hpp"

namespace usdt::bench {

/// What reading arguments costs inside the BPF program: each carrier, libbpf's helper, hand-written loads.
[[nodiscard]] Result<void> measure_arguments(const Settings& settings);
/// What attaching to and detaching from 1 to 50,000 sites takes: the library, the bare system call, libbpf.
[[nodiscard]] Result<void> measure_attach(const Settings& settings);
/// What a hit costs the traced program, by the instruction at the site.
[[nodiscard]] Result<void> measure_forms(const Settings& settings);

}  // namespace usdt::bench
