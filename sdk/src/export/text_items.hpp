// SPDX-License-Identifier: BSD-2-Clause
// An event in a line: its arguments, and the items of print lists, each by its form or by a directive of
// --format-string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "export/output.hpp"
#include "export/text_values.hpp"
#include "export/words.hpp"

namespace usdt::exports {

/// Prints arguments and items of print lists, and knows what they are at each site of a plan.
class ItemWriter {
 public:
  /// All live as long. look_up() comes before anything is shown.
  ItemWriter(const AnswerStart& start, io::Stream& out, ValueWriter& values)
      : out_(out), values_(values), printed_(start.printed), began_(start.question.began), around_(start.around) {}

  /// Looks up what items are in `plan`, which lives as long, and the names of its first `probes` probes.
  void look_up(const AttachPlan& plan, std::size_t probes);
  /// There are more probes.
  void know(std::size_t probes) { names_.know(probes); }
  [[nodiscard]] const ShortNames& names() const noexcept { return names_; }
  [[nodiscard]] const std::string& name_of(const Event& event) const { return names_[event.site().probe.value]; }
  /// The list that says what is shown of `event`; empty: every argument.
  [[nodiscard]] const PrintList& list_of(const Event& event) const { return printed_.of(event.site()); }

  /// " name=value" of argument `n`, and what it points to; `likely_texts`: also where that is plainly a text.
  void show_argument(const Event& event, std::size_t n, bool likely_texts);
  /// " label=value" of `item`, number `i` of its list.
  void show_item(const Event& event, const PrintItem& item, std::size_t i);
  /// A value by a directive: a text without the quotes it has among others, a number as it says.
  void show_as(const FormatPiece& piece, const Event& event, const PrintItem& item, std::size_t i);

 private:
  void show_value_of(const Event& event, const PrintItem& item, std::size_t i);
  [[nodiscard]] WordValue value_of(const Event& event, const PrintItem& item);
  /// What is known of every hit, among values.
  void show_word(const Event& event, const PrintItem& item);
  void show_word_as(const FormatPiece& piece, const Event& event, const PrintItem& item);
  void show_computed_as(const FormatPiece& piece, const Columns::Computed& made, const PrintItem& item);
  void show_bytes_as(const FormatPiece& piece, const Event& event, std::size_t n);

  io::Stream& out_;
  ValueWriter& values_;
  const Printed& printed_;
  std::uint64_t began_;
  Surroundings& around_;
  const AttachPlan* plan_ = nullptr;
  Columns columns_;
  ShortNames names_;
};

}  // namespace usdt::exports
