// SPDX-License-Identifier: BSD-2-Clause
// The functions of one file that patterns mean. Private to find/.
#pragma once

#include <vector>

#include "find/joined_types.hpp"
#include "usdt/probe_file.hpp"

namespace usdt::find {

/// Adds to `file`, which has its `elf`, the functions that `patterns` mean: by symbol tables, and those inlined by
/// debug information, each with its signature; and the code of the lines that they mean, with the variables there.
/// Nothing found is no error. Errors: stopped; not_supported (files whose code has no addresses yet); invalid_argument
/// (an offset within an instruction).
[[nodiscard]] Result<void> add_functions(const std::vector<FunctionPattern>& patterns, const StopToken& stop,
                                         const FilesBeside& beside, ProbeFile& file);

/// usdt::find_probes() where it is known what else the processes have.
[[nodiscard]] Result<ProbeFile> find_probes(const TargetFile& target, const std::vector<PointPattern>& patterns,
                                            const FilesBeside& beside, const OpenOptions& options);

/// Returns what may help where add_functions() found nothing for a pattern of a line. Empty: it finds something.
[[nodiscard]] std::string why_no_line(const ElfFile& file, const FunctionPattern& pattern, const StopToken& stop);

}  // namespace usdt::find
