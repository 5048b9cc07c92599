// SPDX-License-Identifier: BSD-2-Clause
#include "common/conditions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string_view>

namespace usdt::tools {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

/// The texts of a file of /proc, each of which ends with a NUL.
std::vector<std::string> texts_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string bytes(kMostBytes, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\0', at), bytes.size());
    texts.push_back(bytes.substr(at, end - at));
    at = end + 1;
  }
  return texts;
}

bool matches_one(const std::vector<std::string>& texts, std::string_view glob) {
  return std::ranges::any_of(texts, [&](const std::string& text) { return glob_match(glob, text); });
}

Fires judge(const Condition& condition, const Subject& subject) {
  const auto in = [&](const std::vector<std::string>& texts, const std::string& glob) {
    return matches_one(texts, glob) ? Fires::yes : Fires::no;
  };
  switch (condition.kind) {
    case Condition::Kind::environment:
      // Nobody is started without a variable: what is empty could not be read.
      if (subject.environment.empty()) return Fires::unknown;
      return in(subject.environment,
                condition.text.find('=') == std::string::npos ? condition.text + "=*" : condition.text);
    case Condition::Kind::argument:
      return subject.words.empty() ? Fires::unknown : in(subject.words, condition.text);
    case Condition::Kind::unseen:
      break;
  }
  return Fires::unknown;
}

}  // namespace

Subject subject_of(pid_t pid) {
  return {.words = texts_of(fmt::format("/proc/{}/cmdline", pid)),
          .environment = texts_of(fmt::format("/proc/{}/environ", pid))};
}

Subject subject_of(const std::vector<std::string>& command) {
  Subject subject{.words = command};
  for (char** each = ::environ; each != nullptr && *each != nullptr; ++each) subject.environment.emplace_back(*each);
  return subject;
}

Fires judge(const std::vector<Condition>& conditions, const Subject& subject) {
  Fires all = conditions.empty() ? Fires::yes : Fires::no;
  for (const Condition& condition : conditions) {
    const Fires one = judge(condition, subject);
    if (one == Fires::yes) return one;
    if (one == Fires::unknown) all = one;
  }
  return all;
}

std::string describe(const std::vector<Condition>& conditions) {
  std::vector<std::string> words, variables, all;
  for (const Condition& condition : conditions) {
    if (condition.kind == Condition::Kind::argument) words.push_back(condition.text);
    if (condition.kind == Condition::Kind::environment) variables.push_back(condition.text);
  }
  if (!words.empty()) all.push_back(fmt::format("it was started with {}", fmt::join(words, " or ")));
  if (!variables.empty())
    all.push_back(fmt::format("{}with {} in its environment", all.empty() ? "it was started " : "",
                              fmt::join(variables, " or ")));
  for (const Condition& condition : conditions)
    if (condition.kind == Condition::Kind::unseen) all.push_back(condition.text);
  return fmt::format("{}", fmt::join(all, ", or "));
}

}  // namespace usdt::tools
