// SPDX-License-Identifier: BSD-2-Clause
// usdt-list --presets: which questions are known by name, and which of them processes can be asked.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/presets.hpp"
#include "flags.hpp"

namespace usdt_list {

/// Whether a process can be asked a question.
enum class Readiness : std::uint8_t {
  ready,
  not_firing,  ///< its probes are there, and do not fire
  may_fire,    ///< likewise, and nobody sees from outside whether they fire
  missing,     ///< its probes are not there
};
[[nodiscard]] std::string_view to_string(Readiness readiness);

struct ListedQuestion {
  const usdt::tools::ScriptQuestion* question = nullptr;
  Readiness readiness = Readiness::ready;
  std::string why = {};  ///< it is not ready
};

struct ListedPreset {
  const usdt::tools::Preset* preset = nullptr;
  pid_t pid = 0;  ///< that it is about; 0: none was named
  std::vector<ListedQuestion> questions = {};
};

/// Lists all presets; of processes those that are about one of their files.
[[nodiscard]] std::vector<ListedPreset> list_presets(const usdt::tools::Presets& presets,
                                                     const std::vector<pid_t>& pids);

/// Runs the whole command. Returns kFound, kNothing, or kTrouble.
[[nodiscard]] int run_presets(const Flags& flags);

}  // namespace usdt_list
