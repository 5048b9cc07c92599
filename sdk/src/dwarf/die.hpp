// SPDX-License-Identifier: BSD-2-Clause
// Entries of debug information (DIEs), read so that no chain of references and no tree, however it was made, takes more
// than its own size in time. Private to dwarf/.
#pragma once

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dwarf/budget.hpp"
#include "dwarf/function_info.hpp"
#include "usdt/stop.hpp"

namespace usdt::dwarf {

/// References that lead from one DIE to what is meant (abstract_origin, specification, type) before they are taken for
/// a loop. Real chains of qualifiers and typedefs have a handful.
constexpr unsigned kLongestChain = 64;
/// How deep trees of DIEs are followed; namespaces, classes and blocks of real programs nest some dozens deep.
constexpr unsigned kDeepestTree = 256;
/// Bytes of a name or of a path that are believed.
constexpr std::size_t kLongestName = 64 * 1024;

/// The attribute of `die` itself.
[[nodiscard]] std::optional<Dwarf_Attribute> own_attribute(Dwarf_Die die, unsigned name);
/// The attribute of `die`, or of what it is an instance or the definition of.
[[nodiscard]] std::optional<Dwarf_Attribute> attribute(Dwarf_Die die, unsigned name);

/// An unsigned constant; nothing where there is none of that kind.
[[nodiscard]] std::optional<std::uint64_t> number(const std::optional<Dwarf_Attribute>& at);
/// A constant of either sign, extended to 64 bits. Forms of fixed size say no sign; both compilers use them for what is
/// not negative, and DW_FORM_sdata for what is.
[[nodiscard]] std::optional<std::uint64_t> constant(Dwarf_Attribute at);
[[nodiscard]] std::string_view text(const std::optional<Dwarf_Attribute>& at);
[[nodiscard]] bool flag(const std::optional<Dwarf_Attribute>& at);
[[nodiscard]] std::optional<Dwarf_Die> reference(const std::optional<Dwarf_Attribute>& at);

/// A number that is an attribute of `die` itself.
[[nodiscard]] std::optional<std::uint64_t> own_number(Dwarf_Die die, unsigned name);
/// DW_AT_name of `die` itself.
[[nodiscard]] std::string_view own_name(Dwarf_Die die);
/// The linker's name of a function: its linkage name, or its own name where it has none.
[[nodiscard]] std::string_view linkage_name_of(Dwarf_Die die);
/// The name of a scope or type: its own, or that of what it is the definition of, or stands for (a type unit's).
[[nodiscard]] std::string_view name_of(Dwarf_Die die);
/// The declaration that `die` is an instance or the definition of, to the end; itself where it is none.
[[nodiscard]] Dwarf_Die origin_of(Dwarf_Die die);
/// The type that DW_AT_type refers to; nothing: void, or broken.
[[nodiscard]] std::optional<Dwarf_Die> type_of(Dwarf_Die die);

/// The first child, the next sibling; nothing: there is none, or it cannot be read.
[[nodiscard]] std::optional<Dwarf_Die> first_child(Dwarf_Die die);
[[nodiscard]] std::optional<Dwarf_Die> next_sibling(Dwarf_Die die);

/// Calls `visit(child)` for each child until it returns false or `steps`, which it counts down, is 0: for those who
/// look at children, and not at theirs.
template <class Visit>
void for_each_child(Dwarf_Die die, std::uint64_t& steps, Visit&& visit) {
  for (auto child = first_child(die); child && steps != 0; child = next_sibling(*child)) {
    --steps;
    if (!visit(*child)) return;
  }
}

/// A walk through a tree of DIEs, which meets each of them once, in the order of the file: an entry may claim that its
/// next sibling is what is in itself, and so lead to what is there as often as others claim the same.
class TreeWalk {
 public:
  /// Budget that each DIE costs.
  static constexpr std::uint64_t cost_of_step = 4;

  /// `stop` ends it, and so does the end of `budget`.
  explicit TreeWalk(StopToken stop = {}, Budget* budget = nullptr) : stop_(std::move(stop)), budget_(budget) {}

  /// Calls `visit(child)` for each child until it returns false. To be called for a child's own children by its
  /// `visit`, or not at all.
  template <class Visit>
  void children(Dwarf_Die die, Visit&& visit) {
    for (auto child = first_child(die); child && meets(*child); child = next_sibling(*child))
      if (!visit(*child)) return;
  }
  /// DIEs that it has met.
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  /// It came to a DIE that it had passed, and ended.
  [[nodiscard]] bool in_circles() const noexcept { return in_circles_; }

 private:
  [[nodiscard]] bool meets(const Dwarf_Die& die);

  StopToken stop_;
  Budget* budget_;
  std::uintptr_t last_ = 0;
  std::uint64_t steps_ = 0;
  bool in_circles_ = false;
  bool ended_ = false;
};

/// The same of an attribute that is an expression. Go writes those as blocks, which libdw takes for none since DWARF 4;
/// of less than 128 bytes both forms are alike.
[[nodiscard]] std::optional<Dwarf_Attribute> own_expression(Dwarf_Die die, unsigned name);
/// Whether it is an expression, and not a list of them.
[[nodiscard]] bool is_single_expression(Dwarf_Attribute at);

class CodeNames;

/// The address where the code of `die` begins: DW_AT_entry_pc, else DW_AT_low_pc, else the first of its ranges. A
/// function with several ranges, whose order is the compiler's or the linker's, begins with the range at a function's
/// own symbol (`names`); nothing: no range does.
[[nodiscard]] std::optional<VirtAddr> entry_of(Dwarf_Die die, const CodeNames& names, Budget& budget);
/// The address where code begins that is no function's own: a block, or a copy that was inlined.
[[nodiscard]] std::optional<VirtAddr> entry_of_block(Dwarf_Die die);

/// Budget that one entry of a list of ranges costs; any number of DIEs may share a list.
constexpr std::uint64_t kCostOfRange = 4;
/// Calls `visit(begin, end)` for each range of the code of `die` until it returns false or the budget is spent.
template <class Visit>
void for_each_range(Dwarf_Die die, Budget& budget, Visit&& visit) {
  Dwarf_Addr base = 0;
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  std::ptrdiff_t at = 0;
  while (budget.spend(kCostOfRange) && (at = dwarf_ranges(&die, at, &base, &begin, &end)) > 0)
    if (!visit(begin, end)) return;
}
/// Its ranges without the one that has `entry`: where they begin, and their bytes.
[[nodiscard]] std::vector<std::pair<VirtAddr, std::uint64_t>> code_elsewhere(Dwarf_Die die, VirtAddr entry,
                                                                             Budget& budget);
/// Bytes of its code from `entry` on; 0: it has none there. What is elsewhere does not count.
[[nodiscard]] std::uint64_t code_size(Dwarf_Die die, VirtAddr entry, Budget& budget);
/// Whether one of its ranges has `pc`.
[[nodiscard]] bool has_pc(Dwarf_Die die, VirtAddr pc, Budget& budget);

/// The source line that declares `die`; that of its definition if the definition has one of its own.
[[nodiscard]] SourceLine declared_at(Dwarf_Die die);
/// The source line of the call that an inlined instance stands for.
[[nodiscard]] SourceLine called_at(Dwarf_Die die);

}  // namespace usdt::dwarf
