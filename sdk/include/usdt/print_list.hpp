// SPDX-License-Identifier: BSD-2-Clause
// Lists of the values to show of events, and the choice of a list for each probe. parse_print_list() reads "arg0,
// str(arg1), req->peer.port", parse_prints() several lists of which some are for some probes alone. A PrintChoice knows
// which list a probe has; Printed is what it chose for the probes of one plan. All are plain values but PrintChoice,
// which refers to its lists.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "usdt/decode.hpp"
#include "usdt/expression.hpp"
#include "usdt/pattern.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"
#include "usdt/select.hpp"
#include "usdt/value_path.hpp"

namespace usdt {
inline namespace v1 {

/// One thing to show of an event.
struct PrintItem {
  /// How its value is shown.
  enum class Form : std::uint8_t { value, text, hex, address, bytes };
  Form form = Form::value;
  /// An argument, kReturnValue, or what they lead to; of addresses and bytes with that as the last step.
  ValuePath value;
  std::optional<ArgName> length = {};  ///< text: the value that says how long it is
  std::optional<ValuePath> size = {};  ///< of bytes, and of texts that no argument says this of: how many there are
  std::string label;                   ///< as written: "str(arg1)"
  /// It is one of the words of questions: at every site, or, of those that give way to arguments (gives_way()), where
  /// there is none of that name.
  std::optional<HitField> word = {};
  std::optional<std::string> attribute = {};  ///< it is this attribute of the thread's context, at every site
  /// What is computed of values, as questions are ("arg1 - arg0", "flags & 0xff"): a whole number. `value` has but its
  /// text. Null: nothing is.
  std::shared_ptr<const Expression> computed = {};
  /// What is behind "as": the name it has in answers, and what its number means. Null: it is called as it was written.
  std::shared_ptr<const Declaration> called = {};

  /// Returns the name that it has in answers.
  [[nodiscard]] const std::string& name() const noexcept { return called ? called->name : label; }

  /// Whether it is known of every hit.
  [[nodiscard]] bool is_of_hit() const noexcept { return word || attribute; }
  /// Whether an argument of that name comes before the word.
  [[nodiscard]] bool gives_way() const {
    return (!is_of_hit() && !computed) || (word && TypedExpression::is_word(value));
  }
};
/// The values to show of an event, in order.
using PrintList = std::vector<PrintItem>;

/// Returns the word of questions that a path is; nothing: it names a value.
[[nodiscard]] std::optional<HitField> hit_field_of(const ValuePath& path);
/// Whether a word is a text, or shown as one.
[[nodiscard]] bool is_text(HitField word) noexcept;
/// Whether a word tells whose the process is: "uid", "gid", "ppid", "cgroup".
[[nodiscard]] bool is_of_owner(HitField word) noexcept;

/// Whether one of a list's items is this word, or is computed of it.
[[nodiscard]] bool has_word(const PrintList& list, HitField word) noexcept;
/// Whether one of them is an attribute of the thread's context.
[[nodiscard]] bool has_attribute(const PrintList& list) noexcept;

/// The name of the return value.
inline constexpr std::string_view kReturnValue = "retval";

/// Returns the name of a value in its site's list.
[[nodiscard]] ArgName arg_name_of(const ValuePath& value);

/// Parses "arg0, str(arg1), hex(count), ntop(addr), buf(p, 16), req->peer.port, retval, pid, args.pid,
/// trace_attribute("http.route"), arg1 - arg0", each with or without what it is called ("str(arg1) as file, arg0 as
/// took[us]"). A text's length is a value, or the distance to its end ("str(p, end - p)"). Messages put `prefix` before
/// the names of options. Errors: syntax with the column;
/// invalid_argument (a size that bytes cannot have, a word in a form that cannot show it).
[[nodiscard]] Result<PrintList> parse_print_list(std::string_view text, std::string_view prefix = {});

/// Returns the position of the argument that `item` means; nothing: the site has no such argument.
[[nodiscard]] std::optional<std::size_t> position_of(const PrintItem& item, const std::vector<Arg>& args);

/// A list for the probes that a name means: "PROBE=LIST".
struct ProbePrint {
  std::string probe;  ///< as written
  PointPattern pattern;
  PrintList list;
};

/// All lists of a question.
struct Prints {
  PrintList rest;                      ///< of probes without a list of their own; empty: every argument
  std::vector<ProbePrint> for_probes;  ///< the first that means a probe has its list

  /// Whether every argument of every probe is shown.
  [[nodiscard]] bool empty() const noexcept { return rest.empty() && for_probes.empty(); }
  /// Returns whether some list has this word.
  [[nodiscard]] bool has_word(HitField word) const;
  /// Returns whether some list has an attribute of the thread's context.
  [[nodiscard]] bool has_attribute() const;
};

/// Parses lists, a word each: "LIST" or "PROBE=LIST". Errors: syntax; invalid_argument (two lists for
/// the rest).
[[nodiscard]] Result<Prints> parse_prints(const std::vector<std::string>& words, std::string_view prefix = {});

/// Number of a list: 0 is that of the rest, the others are those of Prints::for_probes.
using ListNumber = std::uint32_t;

/// Which list a probe has. Names mean here what they mean as probes to trace.
class PrintChoice {
 public:
  /// Looks up the files that targets of names mean. `prints` must live as long.
  PrintChoice(const Prints& prints, const SearchScope& scope);
  /// Knows files by their names alone, as for a recording, perhaps of another machine. `prints` must live as long.
  explicit PrintChoice(const Prints& prints) : prints_(prints) {}

  /// Returns the number of the list that a point has.
  [[nodiscard]] ListNumber of(const PointName& point) const;
  /// Returns the number of the list that a probe of a plan has.
  [[nodiscard]] ListNumber of(const AttachPlan& plan, const PlannedProbe& probe) const;
  /// Returns the list with this number, which is below count().
  [[nodiscard]] const PrintList& list(ListNumber number) const {
    return number == 0 ? prints_.rest : prints_.for_probes[number - 1].list;
  }
  /// Returns how many lists there are, that of the rest included.
  [[nodiscard]] ListNumber count() const { return static_cast<ListNumber>(prints_.for_probes.size() + 1); }

 private:
  [[nodiscard]] bool means(std::size_t list, const PointName& point) const;

  using Inode = std::pair<std::uint64_t, std::uint64_t>;
  const Prints& prints_;
  std::vector<std::set<Inode>> files_;  ///< by list: those its target means; empty: names tell
};

/// The lists of a plan's probes.
struct Printed {
  std::vector<PrintList> lists;
  std::vector<ListNumber> of_probe;  ///< by AttachPlan::probes

  /// Returns the list of a site's probe.
  [[nodiscard]] const PrintList& of(const PlannedSite& site) const { return lists[of_probe[site.probe.value]]; }
};

}  // namespace v1
}  // namespace usdt
