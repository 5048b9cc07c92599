// SPDX-License-Identifier: BSD-2-Clause
#include "locate/stated_place.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "arch/patch_room.hpp"
#include "dwarf/compiler.hpp"
#include "locate/passed_numbers.hpp"

namespace usdt::locate {
namespace {

/// Entries of a location list that are looked at.
constexpr unsigned kMostEntries = 65536;
/// Budget that each of them costs: libdw takes a sixth of a microsecond.
constexpr std::uint64_t kCostOfEntry = 8;

/// Entries of one parameter that are looked at for where it came from.
constexpr std::size_t kMostListed = 16;

constexpr std::string_view kListsAgain = "told by lists that are read again and again: not read to the end";

/// Goes through the entries of a location list, as far as they are looked at and the budget of all lists goes.
class ListEntries {
 public:
  struct Entry {
    std::uint64_t begin = 0, end = 0;
    std::span<Dwarf_Op> expression;
  };
  ListEntries(Budget& budget, Dwarf_Attribute list) noexcept : budget_(budget), list_(list) {}

  /// Nothing: there are no more, or no more are looked at.
  [[nodiscard]] std::optional<Entry> next() {
    if (left_ == 0 || !budget_.spend(kCostOfEntry)) return std::nullopt;
    --left_;
    Dwarf_Addr begin = 0;
    Dwarf_Addr end = 0;
    Dwarf_Op* expression = nullptr;
    std::size_t count = 0;
    offset_ = dwarf_getlocations(&list_, offset_, &base_, &begin, &end, &expression, &count);
    at_end_ = offset_ <= 0;
    if (at_end_) return std::nullopt;
    return Entry{begin, end, {expression, count}};
  }
  /// The list has no more, as far as it can be read.
  [[nodiscard]] bool at_end() const noexcept { return at_end_; }

 private:
  Budget& budget_;
  Dwarf_Attribute list_;
  Dwarf_Addr base_ = 0;
  std::ptrdiff_t offset_ = 0;
  unsigned left_ = kMostEntries;
  bool at_end_ = false;
};

class Reader {
 public:
  explicit Reader(const Moment& moment) : moment_(moment) {}

  [[nodiscard]] StatedPlace read(const Parameter& parameter) {
    if (!parameter.here) return {};
    if (const auto constant = attribute(*parameter.here, DW_AT_const_value)) {
      const bool told = (!moment_.at_entry && !moment_.instance.inlined) || tells_each_value(moment_.die) ||
                        is_never_assigned(parameter.declared);
      const bool certain = told && !is_another_than_passed(parameter, constant_number(*constant));
      return {{certain ? constant_piece(*constant) : WherePiece{0, Nowhere{std::string(kAssigned)}}}, true};
    }
    auto at = own_expression(*parameter.here, DW_AT_location);
    if (!at) return {};
    const bool single = is_single_expression(*at);
    Dwarf_Op* expression = nullptr;
    std::size_t count = 0;
    const bool arrives = !moment_.instance.inlined && moment_.at_entry;
    if (!find_expression(*at, single, arrives, expression, count)) {
      if (!moment_.state.lists.entries.spent()) return {};
      return {{WherePiece{0, Nowhere{std::string(kListsAgain)}}}, true};
    }
    StatedPlace found{evaluate({expression, count}, context_of(*at)), !single};
    if (may_be_assigned(parameter, *at, single, {expression, count}) ||
        is_another_than_passed(parameter, stated_number({expression, count})))
      found.pieces = {{0, Nowhere{std::string(kAssigned)}}};
    return found;
  }

  [[nodiscard]] std::vector<ListedPlace> listed(const Parameter& parameter) {
    std::vector<ListedPlace> all;
    auto at = parameter.here ? own_expression(*parameter.here, DW_AT_location) : std::nullopt;
    if (!at || is_single_expression(*at)) return all;
    ListEntries entries(moment_.state.lists.entries, *at);
    while (all.size() < kMostListed) {
      const auto entry = entries.next();
      if (!entry) break;
      all.push_back({VirtAddr(entry->begin), evaluate(entry->expression, context_of(*at))});
    }
    return all;
  }

 private:
  [[nodiscard]] ExpressionContext context_of(Dwarf_Attribute& at) {
    return {.arch = moment_.arch, .attribute = &at, .at_entry = moment_.at_entry, .frame_base = [this] {
              return frame_base();
            }};
  }

  /// Whether a value may have been assigned to a parameter after another one was passed. Without an instruction between
  /// them, both values are at one address of a list. GCC's views show it by an empty entry, which at a function's first
  /// instruction has the passed value. Other compilers write the last value alone, and a constant does not show that it
  /// was assigned: the passed value is not in a register or in memory then. In an inlined copy no value shows it: no
  /// convention says where arguments are, and an assigned value may have been worked out before the copy begins
  /// (tests/locate/truth_test.py finds this of Clang and of GCC's link-time optimisation, and that GDB shows the
  /// assigned value). Only a list with views shows it there.
  [[nodiscard]] bool may_be_assigned(const Parameter& parameter, Dwarf_Attribute at, bool single,
                                     std::span<Dwarf_Op> expression) const {
    if (!moment_.at_entry && !moment_.instance.inlined) return false;
    if (tells_each_value(moment_.die))
      return !single && moment_.instance.inlined && has_other_value(parameter, at, expression);
    if (is_never_assigned(parameter.declared)) return false;
    const bool begins = moment_.instance.inlined && moment_.info.entry_of(moment_.die) == moment_.instance.pc;
    if (begins && moment_.wants_arguments && !is_unoptimised(moment_.inside)) {
      const bool views = !single && own_attribute(*parameter.here, DW_AT_GNU_locviews);  // of GCC, also at link time
      if (!views || has_other_value(parameter, at, expression)) return true;
    }
    return std::ranges::all_of(expression, [](const Dwarf_Op& op) {
      return states_number(op) || op.atom == DW_OP_stack_value || op.atom == DW_OP_implicit_value ||
             op.atom == DW_OP_piece;
    });
  }

  /// Whether a function's callers say that they pass other numbers than the one that is told of its first instruction.
  /// A copy that GCC makes for callers who all pass the same number (".constprop") has no place for the parameter, and
  /// what is told is all that the copy knows of it: since GCC 16 what was assigned at once, if something was.
  [[nodiscard]] bool is_another_than_passed(const Parameter& parameter, std::optional<std::uint64_t> told) const {
    if (!told || moment_.instance.inlined || !moment_.at_entry) return false;
    const auto another_in = [&](Dwarf_Die die) {  // the unit of `die`
      Dwarf_Die unit;
      if (dwarf_diecu(&die, &unit, nullptr, nullptr) == nullptr) return false;
      const PassedNumbers& passed =
          moment_.state.passed_numbers.of(unit, [&] { return numbers_passed_in(moment_.info, unit); });
      const auto found = passed.find(parameter.declared.addr);
      return found != passed.end() && found->second.contradict(*told);
    };
    return another_in(parameter.declared) || another_in(moment_.die);
  }

  [[nodiscard]] static std::optional<std::uint64_t> constant_number(Dwarf_Attribute at) {
    Dwarf_Block block;
    return dwarf_formblock(&at, &block) == 0 ? std::nullopt : constant(at);
  }

  /// Whether an entry of the list that is empty, or ends here, has something else for the instance's address: it may
  /// hold up to a view of that address, behind the instruction before it. Or what was passed is nowhere, and this was
  /// given to the variable at a view behind the one that the copy begins with.
  [[nodiscard]] bool has_other_value(const Parameter& parameter, Dwarf_Attribute at,
                                     std::span<Dwarf_Op> expression) const {
    const auto same = [](const Dwarf_Op& a, const Dwarf_Op& b) {
      return a.atom == b.atom && a.number == b.number && a.number2 == b.number2;
    };
    const std::uint64_t pc = moment_.instance.pc.value;
    const std::uint64_t entry_view = own_number(moment_.die, DW_AT_GNU_entry_view).value_or(0);
    auto views = views_of(*parameter.here);
    ListEntries entries(moment_.state.lists.entries, at);
    while (const auto entry = entries.next()) {
      const std::uint64_t view = views ? views->next() : 0;
      if (views) views->next();  // where it ends
      if (entry->begin == pc && pc < entry->end && view > entry_view) return true;
      if (entry->end == pc && !std::ranges::equal(entry->expression, expression, same)) return true;
    }
    return !entries.at_end();
  }

  /// Numbers of a list of views: two for each entry of the list of places. Behind its end they are as large as can be.
  class Views {
   public:
    explicit Views(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
    std::uint64_t next() {
      constexpr unsigned bits = 7;
      std::uint64_t value = 0;
      for (unsigned shift = 0; shift + bits < 64 && !bytes_.empty(); shift += bits) {
        const std::uint8_t byte = bytes_.front();
        bytes_ = bytes_.subspan(1);
        value |= std::uint64_t{byte & 0x7fU} << shift;
        if ((byte & 0x80U) == 0) return value;
      }
      return UINT64_MAX;
    }

   private:
    std::span<const std::uint8_t> bytes_;
  };

  /// Nothing: the variable has no views, all are the first.
  [[nodiscard]] std::optional<Views> views_of(Dwarf_Die variable) const {
    const auto at = own_attribute(variable, DW_AT_GNU_locviews);
    if (!at) return std::nullopt;
    const auto offset = number(at);
    Dwarf* const file = dwarf_cu_getdwarf(variable.cu);
    const DebugSections& sections = moment_.state.lists.sections_of(file);
    const bool lists_have_head = unit_version(variable) >= 5;
    const SectionBytes bytes = lists_have_head ? sections.loclists : sections.loc;
    // GCC counts them from the section's beginning, and in .dwo files from behind the head, as indexes of lists are.
    const std::uint64_t head = lists_have_head && moment_.info.files.is_split(file) ? head_of_lists(bytes) : 0;
    if (!offset || bytes.size() < head || *offset >= bytes.size() - head) return Views({});
    return Views(bytes.subspan(head + *offset));
  }

  /// Bytes of the head of .debug_loclists (DWARF 5, 7.29): a length of 4 or, behind four bytes of ones, 8 bytes; 2 of
  /// version, two sizes, and how many offsets there are.
  [[nodiscard]] static std::uint64_t head_of_lists(SectionBytes bytes) {
    constexpr std::uint64_t ones = 4, with_4 = 12, with_8 = 20;
    const bool large = bytes.size() >= ones && std::ranges::all_of(bytes.first(ones), [](auto b) { return b == 0xff; });
    return large ? with_8 : with_4;
  }

  [[nodiscard]] static WherePiece constant_piece(Dwarf_Attribute at) {
    Dwarf_Block block;
    if (dwarf_formblock(&at, &block) == 0)
      return {0, IsBytes{std::vector<std::uint8_t>(block.data, block.data + std::min<std::size_t>(block.length, 16))}};
    const auto bits = constant(at);
    if (!bits) return {0, Nowhere{"a constant of a form that is not known"}};
    Value value;
    value.sum.displacement = *bits;
    return {0, IsValue{value}};
  }

  /// The one for this very address. Where a list has several entries that begin here, without an instruction between
  /// them (location views, which make all but the last one empty), the first is what the value is on arrival at a
  /// function. Inlined copies have no such moment: what is before them may have its instructions in the midst of them.
  [[nodiscard]] bool find_expression(Dwarf_Attribute& at, bool single, bool arrives, Dwarf_Op*& expression,
                                     std::size_t& count) const {
    if (single) return dwarf_getlocation(&at, &expression, &count) == 0;
    const std::uint64_t pc = moment_.instance.pc.value;
    if (find_entry(at, pc, arrives, expression, count)) return true;
    // Lists begin behind the room for patches, which changes nothing.
    const std::uint64_t room = arrives ? patch_room() : 0;
    return room != 0 && find_entry(at, pc + room, arrives, expression, count);
  }

  [[nodiscard]] bool find_entry(Dwarf_Attribute& at, std::uint64_t pc, bool arrives, Dwarf_Op*& expression,
                                std::size_t& count) const {
    ListEntries entries(moment_.state.lists.entries, at);
    while (const auto entry = entries.next()) {
      if (!(entry->begin <= pc && pc < entry->end) && !(entry->begin == pc && arrives)) continue;
      expression = entry->expression.data();
      count = entry->expression.size();
      return true;
    }
    return false;
  }

  /// Bytes from the function's first instruction to the one behind what is patched at run time; 0: nothing is.
  [[nodiscard]] std::uint64_t patch_room() const {
    const elf::OpenedFile& opened = *moment_.info.files.opened;
    const auto offset = elf::code_offset(opened.image, moment_.instance.pc);
    if (!offset) return 0;
    constexpr std::uint64_t longest = 16;
    const elf::Bytes bytes =
        opened.file.bytes(offset->value, std::min(longest, elf::code_bytes_from(opened.image, moment_.instance.pc)));
    const std::uint64_t pad = arch::landing_pad(moment_.arch.machine, bytes);
    const std::uint64_t room = arch::patch_room(moment_.arch.machine, elf::ByteView(bytes).subspan(pad));
    return room == 0 ? 0 : pad + room;
  }

  [[nodiscard]] std::variant<Sum, std::string> frame_base() {
    auto at = own_expression(moment_.inside, DW_AT_frame_base);
    Dwarf_Op* expression = nullptr;
    std::size_t count = 0;
    if (!at || !find_expression(*at, is_single_expression(*at), false, expression, count))
      return std::string(moment_.state.lists.entries.spent() ? kListsAgain : "in a frame whose base is not told");
    const auto pieces = evaluate(
        {expression, count}, {.arch = moment_.arch, .attribute = &*at, .at_entry = moment_.at_entry, .frame_base = {}});
    const Where& where = pieces.front().where;
    Sum sum;
    if (const auto* reg = std::get_if<InRegister>(&where)) {
      sum.anchor = Anchor::frame;
      sum.base = reg->number;
      return sum;
    }
    const auto* value = std::get_if<IsValue>(&where);
    const auto* address = std::get_if<AtAddress>(&where);
    if (value == nullptr && address == nullptr) return "in a frame whose base is not told";
    const Value& base = value != nullptr ? value->value : address->address;
    if (base.loaded || base.width != 0) return "in a frame whose base is in memory";
    return base.sum;
  }

  const Moment& moment_;
};

}  // namespace

StatedPlace stated_place(const Parameter& parameter, const Moment& moment) { return Reader(moment).read(parameter); }

std::vector<ListedPlace> listed_places(const Parameter& parameter, const Moment& moment) {
  return Reader(moment).listed(parameter);
}

}  // namespace usdt::locate
