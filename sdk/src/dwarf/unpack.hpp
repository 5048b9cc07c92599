// SPDX-License-Identifier: BSD-2-Clause
// Sections that are compressed with zstd, which libelf before 0.189 cannot read. Private to dwarf/.
#pragma once

#include "dwarf/dwarf_file.hpp"

namespace usdt::dwarf {

/// Puts what such sections of debug information come to in their places. To be called before anything of them is asked
/// for. Their claims were checked (check_claims()). Errors: malformed, limit.
[[nodiscard]] Result<void> unpack_sections(DwarfFile& file);

}  // namespace usdt::dwarf
