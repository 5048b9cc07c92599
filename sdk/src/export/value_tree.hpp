// SPDX-License-Identifier: BSD-2-Clause
// The walk over the values that are shown of an event, with their members and elements, for all forms in which values
// lie within each other.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "export/meaning.hpp"
#include "export/output.hpp"
#include "export/value_text.hpp"
#include "export/words.hpp"
#include "usdt/utf8.hpp"

namespace usdt::exports {

/// Writes values as they come: numbers, texts, and lists and objects of them. An object's value comes behind member().
template <class Writer>
concept TreeWriter = requires(Writer& writer, std::string_view text, const Stack& stack) {
  writer.begin_object();
  writer.member(text);
  writer.end_object();
  writer.begin_list();
  writer.end_list();
  writer.whole(std::int64_t{});
  writer.natural(std::uint64_t{});
  writer.real(double{});
  writer.text(text);
  writer.cut_text(text);  ///< the beginning of one that was longer
  writer.error(text);     ///< in place of a value: why it could not be read
  writer.frames(stack);
};

/// Gives the values of events to a writer.
template <TreeWriter Writer>
class ValueTree {
 public:
  /// All of it lives as long. `unreadable` counts what could not be read.
  ValueTree(Writer& writer, const AnswerStart& start, std::uint64_t& unreadable)
      : writer_(writer),
        printed_(start.printed),
        began_(start.question.began),
        around_(start.around),
        unreadable_(unreadable) {}

  /// Events are of `plan` from now on.
  void look_up(const AttachPlan& plan) {
    plan_ = &plan;
    names_ = full_names(plan);
    columns_ = Columns(plan, printed_);
    labels_.assign(plan.args.size(), {});
  }

  /// Returns the full names of the plan's probes.
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }

  /// Writes all that is shown of an event. `begin` begins each value, whose name it is given.
  template <class Begin>
  void each(const Event& event, const Question& question, const Begin& begin) {
    const PrintList& list = printed_.of(event.site());
    for (std::size_t i = 0; i < list.size(); ++i) {
      begin(list[i].name());
      item(event, list[i], i);
    }
    for (std::size_t n = 0; list.empty() && n < event.arg_count(); ++n) {
      const Arg& arg = event.arg_info(n);
      if (arg.derived || is_to_come(*plan_, question.view, arg)) continue;
      begin(label(event, n));
      const auto text = unasked_text(*plan_, event, n, question.values.likely_texts.value_or(false));
      text ? this->text(*text) : unasked(event, n);
    }
  }

  /// Returns how argument `n` is called among the others of its event.
  [[nodiscard]] const std::string& label(const Event& event, std::size_t n) {
    std::vector<std::string>& labels = labels_[event.site().args.value];
    while (labels.size() < event.arg_count())
      labels.push_back(name_among_ends(event.arg_info(labels.size()), labels.size()));
    return labels[n];
  }

  /// Returns what the items of the event's list are.
  [[nodiscard]] const Columns& columns() const noexcept { return columns_; }

  /// Writes item `i` of the list by which the event is shown.
  void item(const Event& event, const PrintItem& item, std::size_t i) {
    if (const auto made = columns_.computed(event, i)) {
      const unsigned size = made->arg.type.size;
      return item.form == PrintItem::Form::hex ? hex(made->value, size) : value(made->value);
    }
    const auto position = columns_.position(event, i);
    if (!position) return item.is_of_hit() ? word(event, item) : error("no such argument");
    switch (item.form) {
      case PrintItem::Form::text:
        return text(event, *position);
      case PrintItem::Form::address:
        return address(event, *position);
      case PrintItem::Form::bytes:
        return bytes(event, *position);
      case PrintItem::Form::hex:
        return hex(event.value(*position), event.arg_info(*position).type.size);
      case PrintItem::Form::value:
        break;
    }
    described_text(*plan_, event, *position) ? text(event, *position) : whole(event, *position);
  }

  /// Writes an argument nobody asked for by name: pointers to characters as their text, if that could be had.
  void unasked(const Event& event, std::size_t n) {
    event.arg_info(n).type.kind == TypeKind::text&& event.text(n) ? text(event, n) : whole(event, n);
  }

  void text(const Text& text) {
    text.truncated ? writer_.cut_text(without_partial_utf8(text.bytes)) : writer_.text(text.bytes);
  }

  void error(std::string_view reason) {
    ++unreadable_;
    writer_.error(reason);
  }

 private:
  /// What is known of every hit.
  void word(const Event& event, const PrintItem& item) {
    if (item.word && info_of(*item.word).type == ExpressionType::stack) return frames(event, *item.word);
    const WordValue value = value_of_hit(item, event, {began_, names_[event.site().probe.value], around_});
    if (const auto* unread = std::get_if<NoWord>(&value)) return error(unread->reason);
    if (const auto* text = std::get_if<std::string>(&value)) return writer_.text(*text);
    const std::uint64_t number = std::get<std::uint64_t>(value);
    item.form == PrintItem::Form::hex ? writer_.text(fmt::format("{:#x}", number)) : writer_.natural(number);
  }

  /// A stack that is shown among the values.
  void frames(const Event& event, HitField word) {
    const auto stack = stack_value(word, event, around_);
    stack ? writer_.frames(**stack) : error(stack.error().message);
  }

  /// "ntop(x)"
  void address(const Event& event, std::size_t n) {
    const auto text = address_in(event, n);
    text ? writer_.text(*text) : error(text.error().message);
  }

  /// "buf(p, 16)"
  void bytes(const Event& event, std::size_t n) {
    const auto read = event.text(n);
    if (!read) return error(read.error().message);
    const std::string digits = hex_digits(read->bytes);
    read->truncated ? writer_.cut_text(digits) : writer_.text(digits);
  }

  void text(const Event& event, std::size_t n) {
    const auto text = event.text(n);
    text ? this->text(*text) : error(text.error().message);
  }

  /// A value with its members: an object, or a list.
  void whole(const Event& event, std::size_t n) {
    const Arg& arg = event.arg_info(n);
    if (const auto why = why_undecided(event, n); !why.empty()) return error(why);
    if (arg.is_list()) return list(event, n);
    if (arg.length) return text(event, n);
    if (const auto wide = wide_number(event, n, false))
      return wide->is_error ? error(wide->text) : writer_.text(wide->text);
    if (const auto characters = text_of_elements(event, n)) return writer_.text(*characters);
    if (const auto name = type_of_interface(event, n); !name.empty()) return writer_.text(name);
    if (!has_members(arg) || !members(event, n)) value(event.value(n));
  }

  /// The name of the type that an interface of Go has: the number is an address that says nothing to anybody.
  static std::string_view type_of_interface(const Event& event, std::size_t n) {
    const Arg& arg = event.arg_info(n);
    if (!arg.declaration || arg.declaration->meaning != kTypeMeaning) return {};
    return name_of_number(arg, event.value(n));
  }

  /// Writes the members of a value; returns false where none are known.
  bool members(const Event& event, std::size_t whole) {
    if (is_no_alternative(event, whole)) return error(kNoAlternative), true;
    const bool array = event.arg_info(whole).type.kind == TypeKind::array;
    bool any = false;
    for (std::size_t n = 0; n < event.arg_count(); ++n) {
      if (event.arg_info(n).part_of != whole) continue;
      if (!std::exchange(any, true)) array ? writer_.begin_list() : writer_.begin_object();
      if (event.arg_info(n).hidden || !is_there(event, n)) continue;
      if (!array) writer_.member(event.label(n));
      this->whole(event, n);
    }
    if (any) array ? writer_.end_list() : writer_.end_object();
    return any;
  }

  /// The elements that there are, and how many more.
  void list(const Event& event, std::size_t whole) {
    const auto count = length_of(event, whole);
    if (!count) return error(count.error().message);
    writer_.begin_list();
    std::uint64_t shown = 0;
    for (std::size_t n = 0; n < event.arg_count(); ++n) {
      if (event.arg_info(n).part_of != whole || !is_there(event, n)) continue;
      ++shown;
      this->whole(event, n);
    }
    if (*count > shown) writer_.error(more_text(*count - shown));
    writer_.end_list();
  }

  void value(const Value& value) {
    if (const auto* none = std::get_if<ArgError>(&value)) return error(none->reason);
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return writer_.whole(*whole);
    if (const auto* natural = std::get_if<std::uint64_t>(&value)) return writer_.natural(*natural);
    writer_.real(std::get<double>(value));
  }

  void hex(const Value& value, unsigned size) {
    if (const auto* none = std::get_if<ArgError>(&value)) return error(none->reason);
    if (const auto* number = std::get_if<double>(&value)) return writer_.real(*number);
    const unsigned spare = 64 - 8 * size;
    const auto* whole = std::get_if<std::int64_t>(&value);
    const std::uint64_t bits = whole ? static_cast<std::uint64_t>(*whole) : std::get<std::uint64_t>(value);
    writer_.text(fmt::format("{:#x}", bits << spare >> spare));
  }

  Writer& writer_;
  const Printed& printed_;
  std::uint64_t began_;
  Surroundings& around_;
  std::uint64_t& unreadable_;
  const AttachPlan* plan_ = nullptr;
  std::vector<std::string> names_;                ///< full_names()
  std::vector<std::vector<std::string>> labels_;  ///< of arguments, by PlannedSite::args; as far as they were asked for
  Columns columns_;
};

}  // namespace usdt::exports
