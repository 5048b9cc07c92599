// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "print_list.hpp"
#include "usdt/usdt.hpp"

namespace usdt_trace {

/// A list for the probes that a name means: "PROBE=LIST".
struct ProbePrint {
  std::string probe;  ///< as written
  usdt::PointPattern pattern;
  PrintList list;
};

/// All that --print asks for.
struct Prints {
  PrintList rest;                      ///< of probes without a list of their own; empty: every argument
  std::vector<ProbePrint> for_probes;  ///< the first that means a probe has its list

  [[nodiscard]] bool empty() const noexcept { return rest.empty() && for_probes.empty(); }
  /// Some list has this word.
  [[nodiscard]] bool name(usdt::HitField word) const;
};

/// Parses what --print was given, a word each: "LIST" or "PROBE=LIST". Errors: syntax; invalid_argument (two lists for
/// the rest).
[[nodiscard]] usdt::Result<Prints> parse_prints(const std::vector<std::string>& words);

/// Number of a list: 0 is that of the rest, the others are those of Prints::for_probes.
using ListNumber = std::uint32_t;

/// Which list a probe has. Names mean here what they mean as probes to trace.
class PrintChoice {
 public:
  /// Looks up the files that targets of names mean. `prints` must live as long.
  PrintChoice(const Prints& prints, const usdt::SearchScope& scope);
  /// Of what was recorded, perhaps elsewhere: files are known by their names.
  explicit PrintChoice(const Prints& prints) : prints_(prints) {}

  [[nodiscard]] ListNumber of(const usdt::PointName& point) const;
  [[nodiscard]] ListNumber of(const usdt::AttachPlan& plan, const usdt::PlannedProbe& probe) const;
  [[nodiscard]] const PrintList& list(ListNumber number) const {
    return number == 0 ? prints_.rest : prints_.for_probes[number - 1].list;
  }
  [[nodiscard]] ListNumber count() const { return static_cast<ListNumber>(prints_.for_probes.size() + 1); }

 private:
  [[nodiscard]] bool means(std::size_t list, const usdt::PointName& point) const;

  using Inode = std::pair<std::uint64_t, std::uint64_t>;
  const Prints& prints_;
  std::vector<std::set<Inode>> files_;  ///< by list: those its target means; empty: names tell
};

/// The lists of a plan's probes.
struct Printed {
  std::vector<PrintList> lists;
  std::vector<ListNumber> of_probe;  ///< by AttachPlan::probes

  [[nodiscard]] const PrintList& of(const usdt::PlannedSite& site) const { return lists[of_probe[site.probe.value]]; }
};

}  // namespace usdt_trace
