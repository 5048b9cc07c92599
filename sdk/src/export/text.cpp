// SPDX-License-Identifier: BSD-2-Clause
#include "export/text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "export/formats.hpp"
#include "export/frames.hpp"
#include "export/words.hpp"
#include "io/number_text.hpp"
#include "io/width.hpp"

namespace usdt::exports {
namespace {

constexpr std::size_t kBeforeProbe = 15 + 1 + 15 + 1 + 7 + 1;  ///< time, command and process
constexpr std::size_t kWidestProbe = 40;                       ///< longer ones push their own line
constexpr std::size_t kSomeArguments = 15;                     ///< that a terminal shall have room for behind it

/// Stands before the lines of a question that has a name.
std::string label_of(const Question& question, std::size_t width) {
  return question.name.empty() ? std::string() : io::padded(io::printable(question.name), width) + "  ";
}

}  // namespace

TextOutput::TextOutput(const AnswerStart& start, const OutputPlace& place)
    : Output(start, place),
      likely_texts_(start.question.values.likely_texts.value_or(true)),
      kernel_stacks_below_(!start.question.stacks.kernel_in_lists),
      user_stacks_below_(!start.question.stacks.user_in_lists),
      question_(start.question),
      format_(start.question.values.format),
      view_(start.question.view),
      label_(label_of(start.question, place.shared.options.label_width)),
      values_(out_, unreadable_),
      items_(start, out_, values_),
      tables_(start.question, out_, label_) {
  trace(start.plan, start.plan.probes.size());
}

/// Says what the columns are, once, whatever questions are answered there.
void TextOutput::show_header(Destination& shared) {
  if (!view_.each_event() || std::exchange(shared.has_header, true)) return;
  if (!out_.terminal().interactive || !format_.empty()) return;
  out_.print("{:<{}}{}\n", "", io::width_of(label_),
             out_.styled(fmt::format("{:<15} {:<15} {:<7} {:<{}} ARGUMENTS", "TIME", "COMMAND", "PID/TID", "PROBE",
                                     probe_width_),
                         io::Style::bold));
}

void TextOutput::look_up(const AttachPlan& plan, std::size_t probes) {
  items_.look_up(plan, probes);
  measured_ = 0;
  make_room();
}

void TextOutput::make_room() {
  const std::size_t widest = std::min(kWidestProbe, out_.room(kBeforeProbe + 1 + kSomeArguments, 0));
  for (; measured_ < items_.names().size(); ++measured_)
    probe_width_ = std::max(probe_width_, std::min(io::shown_width(items_.names()[measured_]), widest));
}

void TextOutput::slowest(const SlowestEvents& events, bool last) {
  const std::uint64_t begin = tables_.begin_list();
  if (format_.empty())
    out_.print("{:>10} {:<15} {:<15} {:<7} {:<7} {:<{}} ARGUMENTS\n", view_.in_flight ? "OPEN" : "TOOK", "TIME",
               "COMMAND", "PID", "TID", "PROBE", out_.terminal().interactive ? probe_width_ : 0);
  for (const KeptEvent& kept : events.events()) {
    around_.begin(kept);
    show_event(*kept.event);
  }
  tables_.end_list(begin, last);
}

void TextOutput::show_event(const Event& event) {
  format_.empty() ? show_line(event) : show_formatted(event);
  const PrintList& list = items_.list_of(event);
  if (kernel_stacks_below_ && !has_word(list, HitField::kstack)) show_frames(around_.kernel_stack());
  if (user_stacks_below_ && !has_word(list, HitField::ustack)) show_frames(around_.user_stack());
}

/// Nothing of a thread that works for no trace.
void TextOutput::show_context(const Event& event) {
  const auto context = event.thread_context();
  if (context && !*context) return;
  for (const HitField field : {HitField::trace_id, HitField::span_id}) {
    const auto digits = context_text(event, field);
    const std::string shown = digits ? *digits : fmt::format("<{}>", digits.error().message);
    show_piece([&] { out_.print(" {}={}", to_string(field), shown); });
  }
}

void TextOutput::show_attributes(const Event& event) {
  const auto attributes = event.thread_attributes();
  if (!attributes) return show_piece([&] { out_.print(" trace_attributes=<{}>", attributes.error().message); });
  for (const ThreadAttribute& each : attributes->known)
    show_piece([&] { out_.print(" trace_attribute({})={}", io::quoted(each.key), io::quoted(each.text)); });
  if (!attributes->others.empty()) show_piece([&] { out_.print(" trace_attribute(...)=<{}>", attributes->others); });
}

void TextOutput::show_line(const Event& event) {
  const bool ranked = view_.slowest > 0;
  const auto took = [&] { return io::duration_text(static_cast<double>(event.duration())); };
  line_ = out_.printed();
  if (ranked)
    out_.print("{:>10} ", took());
  else
    out_.print("{}", label_);
  clock_.show(out_, wall_time(event));
  if (event.tid() == event.pid() || ranked)  // which have a column for threads
    out_.print(" {:<15} {:<7}", io::unambiguous(event.comm()), event.pid());
  else
    out_.print(" {:<15} {}/{}", io::unambiguous(event.comm()), event.pid(), event.tid());
  const auto show_probe = [&] {
    out_.print(" {:<{}}", items_.name_of(event), out_.terminal().interactive ? probe_width_ : 0);
  };
  if (ranked) out_.print(" {:<7}", event.tid());
  ranked ? show_piece(show_probe) : show_probe();  // which leave less room for it
  const PrintList& list = items_.list_of(event);
  if (list.empty()) {
    for (std::size_t n = 0; n < event.arg_count(); ++n)
      if (!event.arg_info(n).derived && !is_to_come(plan(), view_, event.arg_info(n)))
        show_piece([&] { items_.show_argument(event, n, likely_texts_); });
  }
  for (std::size_t i = 0; i < list.size(); ++i) show_piece([&] { items_.show_item(event, list[i], i); });
  if (shows_trace_context(question_, event, list)) show_context(event);
  if (shows_attributes(question_, event, list)) show_attributes(event);
  if (event.duration() > 0 && !ranked) show_piece([&] { out_.print(" took={}", took()); });
  if (ends_elsewhere(event)) show_piece([&] { show_ender(*event.ended_by()); });
  out_.print("\n");
}

void TextOutput::show_ender(const SpanEnder& thread) {
  out_.print(" ended_by={}/{} {}", thread.pid, thread.tid, io::quoted(thread.comm));
}

void TextOutput::show_formatted(const Event& event) {
  const PrintList& list = items_.list_of(event);
  out_.print("{}", label_);
  std::size_t next = 0;
  for (const FormatPiece& piece : format_.pieces) {
    if (piece.kind == FormatPiece::Kind::text) {
      show_own(piece.text);
      continue;
    }
    const std::uint64_t at = out_.printed();
    if (piece.kind == FormatPiece::Kind::field)
      show_field(event, piece.field);
    else if (next < list.size())
      items_.show_as(piece, event, list[next], next);
    next += piece.kind == FormatPiece::Kind::value ? 1 : 0;
    const bool cuts = piece.precision && piece.conversion == 's';
    out_.fit(at, piece.width, cuts ? *piece.precision : SIZE_MAX, piece.left);
  }
  out_.print("\n");
}

void TextOutput::show_own(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\n\t"), text.size());
    out_.print("{}", text.substr(0, end));
    if (end == text.size()) return;
    text[end] == '\n' ? out_.print("\n") : out_.print("\t");
    text.remove_prefix(end + 1);
  }
}

void TextOutput::show_field(const Event& event, EventField field) {
  switch (field) {
    case EventField::time:
      return clock_.show(out_, wall_time(event));
    case EventField::nsecs:
      return out_.print("{}", event.timestamp() + event.duration());
    case EventField::pid:
      return out_.print("{}", event.pid());
    case EventField::tid:
      return out_.print("{}", event.tid());
    case EventField::cpu:
      return out_.print("{}", event.cpu());
    case EventField::comm:
      return out_.print("{}", io::unambiguous(event.comm()));
    case EventField::probe:
      return out_.print("{}", items_.name_of(event));
    case EventField::duration:
      return event.duration() > 0 ? out_.print("{}", io::duration_text(static_cast<double>(event.duration())))
                                  : out_.print("-");
  }
}

void TextOutput::show_frames(const Result<Stack>& stack) {
  if (!stack) {
    out_.print("    ");
    values_.show_error(stack.error().message);
    out_.print("\n");
    return;
  }
  for (const std::string& line : frame_texts(*stack)) out_.print("    {}\n", io::unambiguous(line));
}

std::unique_ptr<Output> make_text_output(const AnswerStart& start, const OutputPlace& place) {
  auto output = std::make_unique<TextOutput>(start, place);
  output->show_header(place.shared);
  return output;
}

}  // namespace usdt::exports
