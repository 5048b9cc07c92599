// SPDX-License-Identifier: BSD-2-Clause
// Which code callers of an indirect function (STT_GNU_IFUNC) reach. Private to find/.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "usdt/function.hpp"
#include "usdt/probe_file.hpp"
#include "usdt/stop.hpp"

namespace usdt::find {

/// A function that was chosen, and how many of the processes that were looked at chose it.
struct Chosen {
  Function function;  ///< named as the indirect one; `symbol` is its own, where the file has one
  std::size_t processes = 0;
};

struct Choices {
  std::vector<Chosen> chosen;
  std::string why_none;  ///< where `chosen` is empty
};

/// Reads what the dynamic linker left in the global offset table (R_*_IRELATIVE) of processes that have the file
/// mapped: this one, and others. Each chooses by its processor and environment, so that they agree nearly always.
[[nodiscard]] Choices choices_of(const ProbeFile& file, const Function& indirect, const StopToken& stop);

}  // namespace usdt::find
