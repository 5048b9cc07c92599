// SPDX-License-Identifier: BSD-2-Clause
#include "export/words.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

#include "export/frames.hpp"
#include "export/meaning.hpp"

namespace usdt::exports {
namespace {

/// Returns a stack as one line, which begins with the reason where callers are missing.
std::string one_line(const Stack& stack) {
  const bool whole = stack.end == FrameIssue::none || stack.end == FrameIssue::depth_reached;
  return (whole ? std::string() : fmt::format("[{}];", to_string(stack.end))) + folded_text(stack);
}

}  // namespace

Result<const Stack*> stack_value(HitField word, const Event& event, Surroundings& around) {
  const bool of_kernel = word == HitField::kstack;
  if (of_kernel && event.probe().file)
    return fail(ErrorKind::not_found, "a process that is not in the kernel has no stack there");
  const Result<Stack>& stack = of_kernel ? around.kernel_stack() : around.user_stack();
  if (!stack) return fail(stack.error());
  if (stack->frames.empty())
    return fail(ErrorKind::not_found,
                of_kernel ? "it was not recorded" : "a thread of the kernel has no stack of a process");
  return &*stack;
}

namespace {

std::string_view why_none(HitField word) {
  if (word == HitField::elapsed) return "it is not known since when";
  if (word == HitField::duration) return "only calls and spans have one";
  return word == HitField::ip ? "a tracepoint has no address" : "it was not recorded";
}

/// Nothing: the event does not have it.
std::optional<std::uint64_t> number_of_word(HitField word, const Event& event, const WordSource& source) {
  if (word == HitField::duration && event.duration() == 0) return std::nullopt;
  if (word != HitField::elapsed) return number_of(event, word);
  const std::uint64_t ended = event.timestamp() + event.duration();
  return source.began != 0 && ended >= source.began ? std::optional(ended - source.began) : std::nullopt;
}

/// Nothing: it is no text.
std::optional<std::string> text_of_word(HitField word, const Event& event, const WordSource& source) {
  if (word == HitField::comm) return std::string(event.comm());
  if (word == HitField::provider) return event.probe().provider;
  if (word == HitField::name) return event.probe().name;
  if (word == HitField::probe) return std::string(source.probe);
  return std::nullopt;
}

}  // namespace

WordValue word_value(HitField word, const Event& event, const WordSource& source) {
  if (info_of(word).type == ExpressionType::stack) {
    const auto stack = stack_value(word, event, source.around);
    return stack ? WordValue(one_line(**stack)) : WordValue(NoWord{stack.error().message});
  }
  if (auto text = text_of_word(word, event, source)) return std::move(*text);
  if (info_of(word).source == HitFieldSource::context) {
    auto text = context_text(event, word);
    return text ? WordValue(*std::move(text)) : WordValue(NoWord{text.error().message});
  }
  const auto number = number_of_word(word, event, source);
  return number ? WordValue(*number) : WordValue(NoWord{std::string(why_none(word))});
}

WordValue value_of_hit(const PrintItem& item, const Event& event, const WordSource& source) {
  if (!item.attribute) return word_value(*item.word, event, source);
  auto text = attribute_text(event, *item.attribute);
  return text ? WordValue(*std::move(text)) : WordValue(NoWord{text.error().message});
}

bool shows_attributes(const Question& question, const Event& event, const PrintList& list) {
  return event.layout().attributes && (question.values.trace_attributes || !question.recording.replay.empty()) &&
         !has_attribute(list);
}

bool shows_trace_context(const Question& question, const Event& event, const PrintList& list) {
  return event.layout().contexts && (question.values.trace_context || !question.recording.replay.empty()) &&
         !has_word(list, HitField::trace_id) && !has_word(list, HitField::span_id);
}

std::string word_text(HitField word, std::uint64_t number) {
  switch (info_of(word).form) {
    case HitFieldForm::duration:
      return io::duration_text(static_cast<double>(number));
    case HitFieldForm::address:
      return fmt::format("{:#x}", number);
    case HitFieldForm::plain:
      break;
  }
  return fmt::format("{}", number);
}

}  // namespace usdt::exports
