// SPDX-License-Identifier: BSD-2-Clause
// Questions as text.
#include "question.hpp"

#include <utility>

namespace usdtc {
namespace {

/// An option with texts that end in a NUL.
struct OptionTexts {
  std::string name, value_name, group, description;
  std::uint32_t flags;
};

const std::vector<OptionTexts>& option_texts() {
  static const std::vector<OptionTexts> all = [] {
    std::vector<OptionTexts> texts;
    for (const usdt::QuestionOption& option : usdt::question_options()) {
      const std::uint32_t flags =
          (option.repeats ? std::uint32_t{USDTC_OPTION_REPEATS} : 0) |
          (option.of_replay ? std::uint32_t{USDTC_OPTION_REPLAY} : 0) |
          (option.value_name.empty() || !option.bare_value.empty() ? std::uint32_t{USDTC_OPTION_BARE} : 0);
      texts.push_back({std::string(option.name), std::string(option.value_name), std::string(option.group),
                       std::string(option.description), flags});
    }
    return texts;
  }();
  return all;
}

}  // namespace
}  // namespace usdtc

extern "C" {

int usdtc_option_describe(size_t n, usdtc_option* option, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    const auto& all = usdtc::option_texts();
    if (n >= all.size()) return usdtc::no_more("option", n, all.size());
    const usdtc::OptionTexts& texts = all[n];
    return usdtc::write_struct({0, texts.name.c_str(), usdtc::or_null(texts.value_name), texts.group.c_str(),
                                texts.description.c_str(), texts.flags, 0},
                               option, usdtc::kOption, "usdtc_option");
  });
}

usdtc_question* usdtc_question_new(void) {
  try {
    return new usdtc_question;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

int usdtc_question_add(usdtc_question* question, const char* point, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!question || !point) return usdtc::invalid("the question, or the name of the point, is NULL");
    question->text.points.emplace_back(point);
    return {};
  });
}

int usdtc_question_set(usdtc_question* question, const char* option, const char* value, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!question || !option) return usdtc::invalid("the question, or the name of the option, is NULL");
    return question->text.set(option, value ? value : "");
  });
}

int usdtc_question_check(const usdtc_question* question, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!question) return usdtc::invalid("the question is NULL");
    const auto made = usdt::parse_question(question->text);
    return made ? usdt::Result<void>() : usdt::fail(made.error());
  });
}

void usdtc_question_free(usdtc_question* question) { delete question; }
}
