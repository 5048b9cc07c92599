// SPDX-License-Identifier: BSD-2-Clause
#include "common/presets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "common/built_in_presets.hpp"
#include "common/nearest.hpp"
#include "common/script_file.hpp"

namespace usdt::tools {
namespace {

constexpr std::string_view kEnding = ".toml";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

/// Their paths are whole ones, which mean the same to whoever reads them in an error.
std::vector<std::filesystem::path> directories() {
  std::vector<std::filesystem::path> all;
  if (const std::string told = variable("USDT_PRESETS"); !told.empty()) {
    for (std::size_t at = 0; at <= told.size();) {
      const std::size_t end = std::min(told.find(':', at), told.size());
      if (end > at) all.push_back(std::filesystem::absolute(told.substr(at, end - at)));
      at = end + 1;
    }
    return all;
  }
  all.emplace_back("/etc/usdt/presets");
  const std::string config = variable("XDG_CONFIG_HOME"), home = variable("HOME");
  if (!config.empty())
    all.push_back(std::filesystem::absolute(config) / "usdt/presets");
  else if (!home.empty())
    all.push_back(std::filesystem::absolute(home) / ".config/usdt/presets");
  return all;
}

/// Why a file may not say what this user traces; empty: it may.
std::string why_distrusted(const struct stat& what) {
  if (what.st_uid != 0 && what.st_uid != ::geteuid()) return "it is another user's";
  if ((what.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "others may write to it";
  return {};
}

void add_of_directory(const std::filesystem::path& directory, std::map<std::string, Preset>& all,
                      std::vector<WrongPreset>& wrong) {
  std::error_code none;
  std::set<std::filesystem::path> files;
  for (auto entry = std::filesystem::directory_iterator(directory, none);
       !none && entry != std::filesystem::directory_iterator(); entry.increment(none))
    if (entry->path().extension() == kEnding) files.insert(entry->path());
  for (const auto& file : files) {
    const std::string name = file.stem().string();
    const auto text = read_script_file(file.string(), why_distrusted);
    auto script = text ? parse_script(file.string(), *text) : fail(text.error());
    if (!script) {
      wrong.push_back({name, script.error().within(fmt::format("preset '{}'", name))});
      continue;
    }
    script->preset = name;
    all.insert_or_assign(name, Preset{name, file.string(), std::move(*script)});
  }
}

template <class Named>
std::vector<std::string> names_of(const std::vector<Named>& all) {
  std::vector<std::string> names;
  for (const Named& each : all) names.push_back(each.name);
  return names;
}

/// `others` may be meant, too, and are too many to be listed.
tl::unexpected<Error> there_is_none(std::string_view what, std::string_view name, const std::vector<std::string>& names,
                                    const std::vector<std::string>& others = {}) {
  std::vector<std::string> known = names;
  known.insert(known.end(), others.begin(), others.end());
  const std::string near = nearest(std::string(name), known);
  return fail(ErrorKind::not_found,
              near.empty() ? fmt::format("there is no {} '{}': there are {}", what, name, fmt::join(names, ", "))
                           : fmt::format("there is no {} '{}': '{}'?", what, name, near));
}

Result<std::vector<std::string>> choose_questions(const Preset& preset, std::string_view names) {
  std::vector<std::string> chosen;
  if (names.empty()) {
    for (const ScriptQuestion& question : preset.script.questions)
      if (!question.on_request) chosen.push_back(question.name);
    return chosen;
  }
  const std::vector<std::string> known = names_of(preset.script.questions);
  while (!names.empty()) {
    const std::size_t comma = std::min(names.find(','), names.size());
    const std::string name(names.substr(0, comma));
    names.remove_prefix(std::min(comma + 1, names.size()));
    if (std::ranges::find(known, name) == known.end())
      return there_is_none(fmt::format("question of '{}' called", preset.name), name, known);
    if (std::ranges::find(chosen, name) == chosen.end()) chosen.push_back(name);
  }
  return chosen;
}

/// Returns the preset of "NAME" or "NAME.QUESTION"; null: there is none. Names of both may have dots of their own: the
/// longest beginning that is a preset's counts.
const Preset* find_preset(const std::vector<Preset>& all, std::string_view text) {
  while (true) {
    if (const auto found = std::ranges::find(all, text, &Preset::name); found != all.end()) return &*found;
    const std::size_t dot = text.rfind('.');
    if (dot == text.npos) return nullptr;
    text = text.substr(0, dot);
  }
}

/// The presets that have questions which other tracers call so, and these.
std::vector<ChosenPreset> known_as(const std::vector<Preset>& all, std::string_view name) {
  std::vector<ChosenPreset> found;
  for (const Preset& preset : all) {
    std::vector<std::string> questions;
    for (const ScriptQuestion& question : preset.script.questions)
      if (std::ranges::find(question.known_as, name) != question.known_as.end()) questions.push_back(question.name);
    if (!questions.empty()) found.push_back({preset, std::move(questions)});
  }
  return found;
}

std::vector<std::string> names_of_other_tracers(const std::vector<Preset>& all) {
  std::vector<std::string> names;
  for (const Preset& preset : all)
    for (const ScriptQuestion& question : preset.script.questions)
      names.insert(names.end(), question.known_as.begin(), question.known_as.end());
  return names;
}

/// "gnutls.sent,received, openssl.written,received".
std::string all_names(const std::vector<ChosenPreset>& found) {
  std::vector<std::string> each;
  for (const ChosenPreset& chosen : found)
    each.push_back(fmt::format("{}.{}", chosen.preset.name, fmt::join(chosen.questions, ",")));
  return fmt::format("{}", fmt::join(each, ", "));
}

/// A name may mean questions of several presets, since other tracers are told of which language.
Result<ChosenPreset> choose_known_as(std::vector<ChosenPreset> found, std::string_view name,
                                     const std::function<std::vector<TargetFile>()>& files) {
  if (found.size() > 1) {
    std::vector<ChosenPreset> about;
    std::ranges::copy_if(found, std::back_inserter(about),
                         [of = files()](const ChosenPreset& each) { return is_about(each.preset, of); });
    if (!about.empty()) found = std::move(about);
  }
  if (found.size() == 1) return std::move(found.front());
  return fail(ErrorKind::invalid_argument, fmt::format("'{}' is asked by {}: name one", name, all_names(found)));
}

/// Says which preset is meant by a word for what it is about; nothing: none has it.
std::optional<Error> meant_by(const std::vector<Preset>& all, std::string_view word) {
  const auto found = std::ranges::find_if(all, [&](const Preset& preset) {
    return std::ranges::find(preset.script.known_as, word) != preset.script.known_as.end();
  });
  if (found == all.end()) return std::nullopt;
  return Error{ErrorKind::not_found, fmt::format("there is no preset '{}': '{}' is about it", word, found->name)};
}

/// Whether "NAME,NAME" is meant to be several presets: where what is behind a comma is one, and no question.
bool names_several(const std::vector<Preset>& all, std::string_view text) {
  const Preset* const first = find_preset(all, text.substr(0, text.find(',')));
  for (std::size_t comma = text.find(','); comma != text.npos; comma = text.find(',')) {
    text.remove_prefix(comma + 1);
    const std::string_view next = text.substr(0, text.find(','));
    const bool is_question =
        first != nullptr &&
        std::ranges::find(first->script.questions, next, &ScriptQuestion::name) != first->script.questions.end();
    if (!is_question && (find_preset(all, next) != nullptr || !known_as(all, next).empty())) return true;
  }
  return false;
}

}  // namespace

bool is_about(const Preset& preset, const std::vector<TargetFile>& files) {
  return std::ranges::any_of(files, [&](const TargetFile& file) {
    const std::string name = file.path.filename().string();
    return std::ranges::any_of(preset.script.programs, [&](const std::string& glob) { return glob_match(glob, name); });
  });
}

Presets find_presets() {
  Presets found;
  std::map<std::string, Preset> all;
  for (const auto& [name, text] : built_in_presets()) {
    auto script = parse_script(fmt::format("{}{}", name, kEnding), text);
    if (!script) {
      found.wrong.push_back({std::string(name), script.error().within("built-in preset")});
      continue;
    }
    script->preset = name;
    script->is_built_in = true;
    all.insert_or_assign(std::string(name), Preset{std::string(name), {}, std::move(*script)});
  }
  for (const auto& directory : directories()) add_of_directory(directory, all, found.wrong);
  for (auto& [name, preset] : all) found.all.push_back(std::move(preset));
  return found;
}

Result<ChosenPreset> choose_preset(std::string_view text, const std::function<std::vector<TargetFile>()>& files) {
  Presets presets = find_presets();
  if (names_several(presets.all, text))
    return fail(ErrorKind::invalid_argument,
                fmt::format("'{}': one preset at a time; several questions of one are NAME.QUESTION,QUESTION", text));
  const Preset* const found = find_preset(presets.all, text);
  if (found == nullptr) {
    for (const WrongPreset& wrong : presets.wrong)
      if (text == wrong.name || text.starts_with(wrong.name + '.')) return fail(wrong.error);
    if (auto others = known_as(presets.all, text); !others.empty())
      return choose_known_as(std::move(others), text, files);
    const std::string_view name = text.substr(0, text.find('.'));
    if (const auto others = known_as(presets.all, name); !others.empty())
      return fail(ErrorKind::not_found,
                  fmt::format("'{}' has no questions of its own: it means {}", name, all_names(others)));
    if (auto meant = meant_by(presets.all, name)) return fail(std::move(*meant));
    return there_is_none("preset", name, names_of(presets.all), names_of_other_tracers(presets.all));
  }
  auto questions = choose_questions(*found, text.substr(std::min(found->name.size() + 1, text.size())));
  if (!questions) return fail(questions.error());
  return ChosenPreset{*found, std::move(*questions)};
}

std::vector<PresetWord> complete_preset(std::string_view beginning) {
  const std::vector<Preset> all = find_presets().all;
  std::vector<PresetWord> words;
  const auto add = [&](std::string word, const std::string& title) {
    if (word.starts_with(beginning) && std::ranges::find(words, word, &PresetWord::word) == words.end())
      words.push_back({std::move(word), title});
  };
  // Behind "NAME." or "NAME.QUESTION,": those that are not there yet.
  const auto add_questions = [&](const Preset* preset, const std::string& before) {
    if (preset == nullptr || !before.starts_with(preset->name + '.')) return;
    const std::string named = fmt::format(",{}", before.substr(preset->name.size() + 1));
    for (const ScriptQuestion& question : preset->script.questions)
      if (named.find(fmt::format(",{},", question.name)) == named.npos) add(before + question.name, question.title);
  };
  if (const std::size_t comma = beginning.rfind(','); comma != beginning.npos) {
    const std::string before(beginning.substr(0, comma + 1));
    add_questions(find_preset(all, before), before);
    return words;
  }
  for (const Preset& preset : all) add(preset.name, preset.script.title);
  const Preset* const meant = find_preset(all, words.size() == 1 ? words.front().word : beginning);
  if (meant != nullptr) add_questions(meant, meant->name + '.');
  if (beginning.empty()) return words;
  for (const Preset& preset : all)
    for (const ScriptQuestion& question : preset.script.questions)
      for (const std::string& name : question.known_as)
        add(name, fmt::format("{}.{}: {}", preset.name, question.name, question.title));
  return words;
}

}  // namespace usdt::tools
