// SPDX-License-Identifier: BSD-2-Clause
// The raw tracepoints of the kernel and its modules.
#pragma once

#include <span>
#include <vector>

#include "kernel/module_types.hpp"
#include "kernel/source_texts.hpp"
#include "usdt/kernel.hpp"

namespace usdt::kernel {

/// Returns raw tracepoints by module and name, as far as `patterns` need them (none: all); without types where the
/// kernel has no BTF. What cannot be read is in texts.missing(). Names are views of `texts` and `types`.
[[nodiscard]] std::vector<KernelFunction> read_tracepoints(SourceTexts& texts, const ModuleTypes& types,
                                                           std::span<const KernelPattern> patterns);

}  // namespace usdt::kernel
