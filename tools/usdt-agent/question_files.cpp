// SPDX-License-Identifier: BSD-2-Clause
#include "question_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/script_file.hpp"
#include "exports.hpp"
#include "script_flags.hpp"

namespace usdt_agent {
namespace {

namespace fs = std::filesystem;

/// Options that hold where a file says nothing else: rings stay in memory, and an agent looks often.
const usdt_trace::OptionValues& usual_options() {
  static const usdt_trace::OptionValues usual{{"ring-size", "2"}};
  return usual;
}

auto wrong(std::string why) { return usdt::fail(usdt::ErrorKind::invalid_argument, std::move(why)); }

/// Returns the files of a place in the order of their names; a file that is named is taken whatever its name.
usdt::Result<std::vector<std::string>> files_of(const std::string& place) {
  std::error_code error;
  if (!fs::is_directory(place, error)) return std::vector{place};
  std::vector<std::string> files;
  for (auto each = fs::directory_iterator(place, error); !error && each != decltype(each)(); each.increment(error))
    if (each->path().extension() == ".toml") files.push_back(each->path().native());
  if (error) return usdt::fail(usdt::os_failure(usdt::ErrorKind::io, "read " + place, error.value()));
  if (files.empty()) return usdt::fail(usdt::ErrorKind::not_found, place + ": no files *.toml");
  std::ranges::sort(files);
  return files;
}

/// Refuses what has an end, holds programs, or writes files that grow.
usdt::Result<void> check_for_agent(const usdt_trace::Flags& flags) {
  const usdt::Question& question = flags.question;
  const std::array<std::pair<bool, std::string_view>, 8> refused{{
      {question.limits.seconds.has_value(), "duration: an agent asks for ever"},
      {question.limits.max_events != UINT64_MAX, "max-events: an agent asks for ever"},
      {!question.recording.file.empty() || question.recording.last || question.recording.dump_on != nullptr,
       "record, last, dump-on: an agent sends its answers"},
      {!flags.output.shown.file.empty(), "output: an agent has none; export has places"},
      {flags.output.shown.format != usdt_trace::kTextFormat, "format: an agent prints nothing; export has places"},
      {question.following.hold_exec, "hold-exec: an agent does not stop programs"},
      {!question.following.follow, "no-follow: an agent would lose what it traces as programs come and go"},
      {!question.processes.pids.empty(),
       "pid: processes end, and an agent goes on; cgroup and container name what stays"},
  }};
  for (const auto& [is_asked, why] : refused)
    if (is_asked) return wrong(std::string(why));
  return {};
}

/// The agent may be started anywhere, as a service in "/".
usdt::Result<void> check_paths(const usdt::Question& question) {
  for (const usdt::PointPattern& pattern : usdt::all_patterns(question)) {
    const std::string* const target = usdt::target_of(pattern);
    if (target == nullptr || target->find('/') == target->npos) continue;
    const bool is_quoted = target->starts_with('"') || target->starts_with('\\');
    if (target->find('/') == (is_quoted ? 1 : 0)) continue;
    return wrong(fmt::format("{}: a path is needed that begins with \"/\": an agent may be started anywhere", *target));
  }
  return {};
}

/// Reads a file, and adds what is wrong with it to `errors`, of each question the first.
std::optional<QuestionFile> read_file(const std::string& path, const Options& options, bool without_privilege,
                                      std::vector<usdt::Error>& errors) {
  auto text = usdt::tools::read_script_file(path);
  if (!text) return errors.push_back(text.error()), std::nullopt;
  QuestionFile file{.path = path, .text = std::move(*text), .questions = {}};
  auto questions = usdt_trace::parse_questions(path, file.text, usual_options(), without_privilege);
  if (!questions) return errors.push_back(questions.error()), std::nullopt;
  for (usdt_trace::Flags& flags : *questions) {
    auto sense = check_for_agent(flags);
    if (sense) sense = check_paths(flags.question);
    auto exports = sense ? exports_of(flags, options) : usdt::fail(sense.error());
    if (!exports) {
      errors.push_back(exports.error().within(flags.script.place));
      continue;
    }
    flags.question.following.wait = true;
    flags.question.values.containers |= !flags.question.view.no_events();
    flags.output.verbose = options.verbose;
    file.questions.push_back({std::move(flags), std::move(*exports)});
  }
  return file;
}

/// The letters and digits of a name: names of metrics have one character for all others.
std::string alike(std::string_view name) {
  std::string words;
  bool is_gap = false;
  for (const char c : name) {
    const bool goes = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (goes && std::exchange(is_gap, false) && !words.empty()) words += '-';
    if (goes) words += c;
    is_gap |= !goes;
  }
  return words.empty() ? "key" : words;  // as metrics call it
}

/// No two questions may have a metric of the same name, nor one that the agent has.
usdt::Result<void> check_names(const std::vector<QuestionFile>& files) {
  constexpr std::string_view own = "agent", rows = "-row";  // usdt_agent_*; usdt_NAME_row_hits
  std::map<std::string, const AskedQuestion*> known;
  for (const QuestionFile& file : files)
    for (const AskedQuestion& asked : file.questions) {
      const std::string &name = asked.flags.question.name, &place = asked.flags.script.place;
      const std::string words = alike(name);
      if (words == own || words.starts_with("agent-"))
        return wrong(fmt::format("{}: {}: the metrics of the agent itself are called so", place, name));
      const auto [first, is_new] = known.emplace(words, &asked);
      const usdt_trace::Flags& other = first->second->flags;
      if (!is_new && other.question.name == name)
        return wrong(fmt::format("{}: {} has a question of this name, too", place, other.script.place));
      if (!is_new)
        return wrong(fmt::format("{}: metrics of {} would be called as those of {} at {}", place, name,
                                 other.question.name, other.script.place));
    }
  for (const auto& [words, asked] : known)
    if (words.ends_with(rows) && known.contains(words.substr(0, words.size() - rows.size())))
      return wrong(fmt::format("{}: {}: metrics of rows of another question are called so", asked->flags.script.place,
                               asked->flags.question.name));
  return {};
}

}  // namespace

ReadFiles read_files(const Options& options, bool without_privilege) {
  ReadFiles read;
  for (const std::string& place : options.places) {
    auto paths = files_of(place);
    if (!paths) {
      read.wrong.push_back(paths.error());
      continue;
    }
    for (const std::string& path : *paths) {
      const bool again = std::ranges::find(read.files, path, &QuestionFile::path) != read.files.end();
      if (again) continue;
      auto file = read_file(path, options, without_privilege, read.wrong);
      if (file) read.files.push_back(std::move(*file));
    }
  }
  if (auto differ = check_names(read.files); !differ) read.wrong.push_back(differ.error());
  return read;
}

usdt::Result<Found> find_now(const usdt::Question& question) {
  const auto subjects = usdt::find_subjects(question.processes);
  if (!subjects) return Found::nothing_there;
  std::vector<usdt::SessionNotice> notices;
  const auto explained = usdt::explain_question(question, *subjects, notices);
  if (explained) return Found::right;
  switch (explained.error().kind) {
    case usdt::ErrorKind::invalid_argument:
    case usdt::ErrorKind::syntax:
      return usdt::fail(explained.error());
    case usdt::ErrorKind::not_found:
      return Found::nothing_there;
    default:
      return Found::unknown;
  }
}

}  // namespace usdt_agent
