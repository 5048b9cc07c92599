// SPDX-License-Identifier: BSD-2-Clause
// Holds what examples 06 to 10 share: a question of text, and the loop that answers it.
#pragma once

#include <chrono>
#include <cstdio>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <usdt/usdt.hpp>
#include <utility>
#include <vector>

namespace example {

/// An option of question_options() and its value; of a flag that is empty.
using Setting = std::pair<std::string_view, std::string_view>;

/// Makes a question about `points`, or about all that a recording has.
inline usdt::Result<usdt::Question> ask(std::vector<std::string> points, std::initializer_list<Setting> settings) {
  usdt::QuestionText text("--");
  text.points = std::move(points);
  for (const auto& [name, value] : settings)
    if (auto set = text.set(name, value); !set) return usdt::fail(set.error());
  return usdt::parse_question(text);
}

/// Answers what a session was asked, until it is over.
inline usdt::Result<void> run(usdt::Session& session) {
  if (auto begun = session.begin(); !begun) return begun;
  for (bool more = true; more;) {
    const auto stepped = session.step(std::chrono::milliseconds(50));
    if (!stepped) return usdt::fail(stepped.error());
    more = *stepped;
  }
  return session.finish();
}

/// Answers `question` on standard output, as text, and to `others`.
inline usdt::Result<void> answer(usdt::Question question, std::vector<usdt::AnswerConsumer*> others = {}) {
  auto text = usdt::Sink::open("text", {});
  if (!text) return usdt::fail(text.error());
  others.push_back(text->get());
  usdt::Session session;
  session.add(std::move(question), std::move(others));
  return run(session);
}

/// Prints why it failed, and returns what main() does.
inline int exit_code(const usdt::Result<void>& result) {
  if (!result) std::fprintf(stderr, "%s\n", result.error().message.c_str());
  return result ? 0 : 1;
}

/// Prints how an example is called, and returns what main() does.
inline int show_usage(const char* program, const char* words) {
  std::fprintf(stderr, "usage: %s %s\n", program, words);
  return 2;
}

}  // namespace example
