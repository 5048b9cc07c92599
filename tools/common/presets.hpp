// SPDX-License-Identifier: BSD-2-Clause
// Presets: files of questions about programs that many people have, found by name (docs/presets.md). Some are built in;
// those in a directory of the system's or of the user's come beside them, or take their place.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/script.hpp"

namespace usdt::tools {

struct Preset {
  std::string name;   ///< "python"
  std::string place;  ///< the whole path of its file; empty: it is built in
  Script script;
};

/// A file that would be the preset `name`, and what is wrong with it.
struct WrongPreset {
  std::string name;
  Error error;
};

/// All presets by name, and files that are none.
struct Presets {
  std::vector<Preset> all;
  std::vector<WrongPreset> wrong;
};

/// Finds the presets that are built in, and those of the directories in $USDT_PRESETS (with colons between them), else
/// of /etc/usdt/presets and ~/.config/usdt/presets ($XDG_CONFIG_HOME). A later one of a name takes the place of an
/// earlier one. Passed over, with an error, are files that are not the user's or root's, and those that others may
/// write to.
[[nodiscard]] Presets find_presets();

/// Whether a preset is about one of the files that a process has mapped.
[[nodiscard]] bool is_about(const Preset& preset, const std::vector<TargetFile>& files);

/// A preset, and which of its questions are asked.
struct ChosenPreset {
  Preset preset;
  std::vector<std::string> questions;
};

/// Finds the preset of "NAME" or "NAME.QUESTION[,QUESTION]": those questions, else all but those that are asked on
/// request alone. Where no preset has the name, it may be what other tracers call questions of one ("gethostlatency");
/// of several that one which is about `files`, what is asked about. Errors: not_found (no such preset or question; the
/// message proposes others), invalid_argument (its file is no script; a name of other tracers that several presets
/// have, which the message lists).
[[nodiscard]] Result<ChosenPreset> choose_preset(std::string_view text,
                                                 const std::function<std::vector<TargetFile>()>& files);

/// A word that "NAME.QUESTION,QUESTION" may be, and what it means.
struct PresetWord {
  std::string word;
  std::string title;
};

/// Returns words that begin so, for shells: names of presets, and once one alone is meant its questions; behind a comma
/// those that are not named yet. Names of other tracers' tools are among them where something is written already.
[[nodiscard]] std::vector<PresetWord> complete_preset(std::string_view beginning);

}  // namespace usdt::tools
