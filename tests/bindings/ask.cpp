// SPDX-License-Identifier: BSD-2-Clause
// Asks a question in C++: ask-cpp FILE POINT... -- NAME=VALUE... NAME...      answers go to FILE, as JSON
#include <iostream>
#include <string_view>
#include <usdt/usdt.hpp>

#include "answer.hpp"  // of examples/

namespace {

usdt::Result<usdt::QuestionText> read_words(std::span<char*> words) {
  usdt::QuestionText text;
  std::size_t n = 2;
  for (; n < words.size() && std::string_view(words[n]) != "--"; ++n) text.points.emplace_back(words[n]);
  for (++n; n < words.size(); ++n) {
    const std::string_view word = words[n];
    const std::size_t equals = std::min(word.find('='), word.size());
    auto set = text.set(word.substr(0, equals), word.substr(std::min(equals + 1, word.size())));
    if (!set) return usdt::fail(set.error());
  }
  return text;
}

usdt::Result<void> answer(std::span<char*> words) {
  const auto text = read_words(words);
  if (!text) return usdt::fail(text.error());
  auto question = usdt::parse_question(*text);
  if (!question) return usdt::fail(question.error());
  auto sink = usdt::Sink::open("json", {.file = words[1]});
  if (!sink) return usdt::fail(sink.error());
  usdt::Session session;
  session.add(std::move(*question), {sink->get()});
  return example::run(session);
}

}  // namespace

int main(int count, char** words) {
  const auto answered = answer({words, static_cast<std::size_t>(count)});
  if (!answered) std::cerr << "ask-cpp: " << answered.error().message << '\n';
  return answered ? 0 : 1;
}
