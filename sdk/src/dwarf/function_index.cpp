// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/function_index.hpp"

#include <dwarf.h>

#include <algorithm>
#include <array>
#include <future>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "base/hash_index.hpp"
#include "dwarf/budget.hpp"
#include "dwarf/die.hpp"
#include "dwarf/names.hpp"
#include "sys/blocked_signals.hpp"

namespace usdt::dwarf {
namespace {

/// Bytes that are read of abbreviations and of entries out of their order, besides those for each byte of .debug_info.
/// Compilers need fewer: a table of some kilobytes for each unit, and each function's entry once or twice.
constexpr std::uint64_t kWorkAtFirst = 1U << 20;
/// The same of names: compilers write some hundred bytes for each function.
constexpr std::uint64_t kNamesAtFirst = 64U << 20;

/// Bytes of a unit for each of its entries that lend a name, and for each that has code: compilers write more.
constexpr std::uint64_t kBytesPerScope = 4;
constexpr std::uint64_t kBytesPerStart = 8;
constexpr std::uint64_t kEntriesAtFirst = 4096;

/// Bytes that all threads together read before memory is given back.
constexpr std::uint64_t kMostKept = 16U << 20;
/// Bytes that are worth a thread of their own, and the most threads.
constexpr std::uint64_t kLeastPart = 32U << 20;
constexpr unsigned kMostParts = 8;
/// Entries read, or functions asked for, between two looks at what is kept and whether to stop.
constexpr std::uint32_t kBetweenLooks = 1U << 12;

std::size_t mixed(std::size_t hash, std::uint64_t with) {
  return (hash ^ (with + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2))) * 0x2545f4914f6cdd1d;
}

/// An entry that may be what a function or scope stands for, and what it is in.
struct Entry {
  std::uint64_t offset = 0;
  std::uint32_t parent = 0;  ///< its index and 1, if that lends its name
};

/// The names of an entry in .debug_info, and the entry that it stands for.
struct EntryNames {
  std::optional<TextPlace> name;
  std::optional<TextPlace> linkage_name;
  std::optional<TextPlace> mips_linkage_name;
  std::optional<std::uint64_t> next;
  bool has_signature = false;
};

/// Some units that are next to each other, from one offset to another.
struct Part {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Parts of about the same size, which are the whole. Where units are not understood, the last part goes on to the end.
std::vector<Part> parts_of(SectionBytes info, std::size_t count, const FunctionIndex::LetGo& let_go) {
  std::vector<Part> parts{{.end = info.size()}};
  std::uint64_t at = 0;
  for (std::uint32_t units = 1; parts.size() < count; ++units) {
    const auto head = unit_head(info, at);
    if (!head || head->end >= info.size()) break;
    at = head->end;
    if (units % kBetweenLooks == 0) let_go();
    if (at < info.size() / count * parts.size()) continue;
    parts.back().end = at;
    parts.push_back({at, info.size()});
  }
  return parts;
}

}  // namespace

class FunctionIndex::Builder {
 public:
  /// Indexes the units of `part`. `before_letting_go`: bytes that are read until memory is given back.
  Builder(FunctionIndex& index, const DebugSections& sections, const Part& part, const IsCode& is_code,
          const StopToken& stop, const LetGo& let_go, std::uint64_t before_letting_go, const NameFilter* filter)
      : index_(index),
        sections_(sections),
        is_code_(is_code),
        stop_(stop),
        let_go_(let_go),
        before_letting_go_(before_letting_go),
        filter_(filter),
        part_(part),
        work_(kWorkAtFirst, part.end - part.begin) {}

  /// Reads them, up to where they are not understood.
  void read() {
    index_.end_ = part_.begin;
    while (index_.end_ < part_.end && !stop_.stop_requested()) {
      const auto head = unit_head(sections_.info, index_.end_);
      if (!head) break;
      add(*head);
      index_.end_ = head->end;
    }
  }

  /// Work that remains for the units that were read.
  struct Rest {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> elsewhere;
    std::uint64_t work = 0;
  };
  [[nodiscard]] Rest take_rest() && { return {std::move(elsewhere_), work_.left()}; }

  /// Adds what another one has read of the part behind. Everything is then as if this had read both.
  void take_in(const FunctionIndex& more, const Rest& rest) {
    const auto first_unit = static_cast<std::uint32_t>(index_.units_.size());
    std::vector<std::uint32_t> scopes(more.scopes_.size() + 1);  // of next, 0: none; here
    for (std::size_t i = 0; i < more.scopes_.size(); ++i) {
      Scope scope = more.scopes_[i];
      scope.outer = scopes[scope.outer];
      scopes[i + 1] = number_of(scope, scopes_, index_.scopes_) + 1;
    }
    std::vector<std::uint32_t> functions;
    functions.reserve(more.functions_.size());
    for (Function function : more.functions_) {
      function.scope = scopes[function.scope];
      functions.push_back(number_of(function, functions_, index_.functions_));
    }
    for (const InUnit& place : more.places_)
      index_.places_.push_back({functions[place.function], first_unit + place.unit});
    for (const std::uint32_t unit : more.unknown_) index_.unknown_.push_back(first_unit + unit);
    for (const auto& [start, unit] : rest.elsewhere) elsewhere_.emplace_back(start, first_unit + unit);
    index_.units_.insert(index_.units_.end(), more.units_.begin(), more.units_.end());
    index_.end_ = more.end_;
    work_.add(rest.work);
  }

  void finish() {
    add_named_elsewhere();
    sort();
  }

 private:
  void add(const UnitHead& head) {
    const auto unit = static_cast<std::uint32_t>(index_.units_.size());
    index_.units_.push_back(head.offset);
    if (head.kind == DW_UT_type) return;
    if (filter_ != nullptr && !may_be_meant(head)) return look_at_memory(head.end - head.offset);
    const auto reader = open(head);
    if (!reader || !read_entries(*reader, true)) return place(std::nullopt, unit);
    std::ranges::sort(starts_);
    starts_.erase(std::unique(starts_.begin(), starts_.end()), starts_.end());
    std::uint32_t count = 0;
    for (const std::uint64_t start : starts_) {
      if (++count % kBetweenLooks == 0 && stop_.stop_requested()) return;
      if (start < head.offset || start >= head.end)
        elsewhere_.emplace_back(start, unit);
      else
        place(function_at(*reader, start), unit);
    }
    look_at_memory(head.end - head.offset);
  }

  /// Whether the filter lets a unit through.
  [[nodiscard]] bool may_be_meant(const UnitHead& head) {
    if (head.kind != DW_UT_compile && head.kind != DW_UT_partial) return true;
    if (!forms_ || forms_of_ != head.abbreviations) {
      forms_ = name_forms(sections_, head, work_.left());
      forms_of_ = head.abbreviations;
      work_.spend(forms_->size);
    }
    std::uint64_t str_offsets_base = 0;
    if (forms_->indexed && !forms_->elsewhere) {
      const auto reader = open(head);
      if (!reader) return true;
      str_offsets_base = reader->str_offsets_base();
    }
    return filter_->may_be_in(sections_, head, *forms_, str_offsets_base);
  }

  void look_at_memory(std::uint64_t read) {
    kept_ += read;
    if (kept_ < before_letting_go_) return;
    let_go_();
    kept_ = 0;
  }

  void place(const std::optional<std::uint32_t>& function, std::uint32_t unit) {
    if (function)
      index_.places_.push_back({*function, unit});
    else if (index_.unknown_.empty() || index_.unknown_.back() != unit)
      index_.unknown_.push_back(unit);
  }

  /// Reads units again whose functions are inlined into other units, as link-time optimisation often does.
  void add_named_elsewhere() {
    std::ranges::sort(elsewhere_);
    for (auto at = elsewhere_.begin(); at != elsewhere_.end() && !stop_.stop_requested();) {
      const auto behind = std::ranges::upper_bound(index_.units_, at->first);
      if (behind == index_.units_.begin() || at->first >= index_.end_) {
        for (; at != elsewhere_.end(); ++at) place(std::nullopt, at->second);
        return;
      }
      const auto head = unit_head(sections_.info, *std::prev(behind));
      const auto reader = head ? open(*head) : std::nullopt;
      const bool readable = reader && read_entries(*reader, false);
      const std::uint64_t end = head ? head->end : index_.end_;
      for (; at != elsewhere_.end() && at->first < end && !stop_.stop_requested(); ++at)
        place(readable ? function_at(*reader, at->first) : std::nullopt, at->second);
      look_at_memory(end - *std::prev(behind));
    }
  }

  void sort() {
    const auto sort_unique = [](auto& all) {
      std::ranges::sort(all);
      all.erase(std::unique(all.begin(), all.end()), all.end());
      all.shrink_to_fit();
    };
    sort_unique(index_.places_);
    sort_unique(index_.unknown_);
  }

  /// Nothing: it is not understood.
  std::optional<UnitReader> open(const UnitHead& head) {
    if (head.kind != DW_UT_compile && head.kind != DW_UT_partial) return std::nullopt;
    if (!abbreviations_ || !abbreviations_->serve(head)) {
      abbreviations_.emplace(sections_, head, work_.left());
      work_.spend(abbreviations_->size());
    }
    std::optional<UnitReader> reader(std::in_place, sections_, head, *abbreviations_);
    return reader->good() ? std::move(reader) : std::nullopt;
  }

  /// One level of the tree above an entry.
  struct Level {
    std::uint32_t parent = 0;  ///< of Entry
    bool in_scopes = true;     ///< all around it is such that names are looked for in it
    bool discarded = false;    ///< the linker left its code out
  };

  /// All entries of a unit; false: they are not understood to the end. `with_code`: and where code begins.
  bool read_entries(const UnitReader& unit, bool with_code) {
    entries_.clear();
    starts_.clear();
    levels_.assign(1, Level{});
    SectionReader bytes(unit.bytes(), unit.head().first_entry);
    std::uint64_t looked_at = unit.head().offset;
    const std::uint64_t size = unit.head().end - unit.head().offset;
    const std::uint64_t most_scopes = kEntriesAtFirst + size / kBytesPerScope;
    const std::uint64_t most_starts = kEntriesAtFirst + size / kBytesPerStart;
    for (std::uint32_t count = 1; !bytes.at_end(); ++count) {
      const auto offset = static_cast<std::uint64_t>(bytes.position() - sections_.info.data());
      if (count % kBetweenLooks == 0) {
        if (stop_.stop_requested()) return false;
        if (offset - looked_at >= before_letting_go_) let_go_(), looked_at = offset;
      }
      const std::uint64_t code = bytes.uleb();
      if (code == 0) {
        levels_.pop_back();
        if (levels_.size() <= 1) break;
        continue;
      }
      const Abbreviation* abbreviation = unit.abbreviation(code);
      if (abbreviation == nullptr || entries_.size() == most_scopes || starts_.size() == most_starts) return false;
      Level level = levels_.back();
      if (abbreviation->is_scope) entries_.push_back({offset, level.in_scopes ? level.parent : 0});
      const bool has_code = abbreviation->has_code && with_code && !level.discarded &&
                            (abbreviation->tag == DW_TAG_subprogram || abbreviation->tag == DW_TAG_inlined_subroutine);
      if (has_code)
        level.discarded = !add_code(unit, bytes, *abbreviation, offset);
      else
        unit.skip(bytes, *abbreviation);
      if (!abbreviation->has_children) {
        if (levels_.size() == 1) break;
        continue;
      }
      if (levels_.size() > kDeepestTree) return false;
      level.in_scopes = level.in_scopes && (levels_.size() == 1 || abbreviation->may_hold_scopes);
      level.parent = level.in_scopes && abbreviation->is_scope ? static_cast<std::uint32_t>(entries_.size()) : 0;
      levels_.push_back(level);
    }
    scope_of_.assign(entries_.size(), not_known);
    return bytes.good();
  }

  /// False: the linker left it out.
  bool add_code(const UnitReader& unit, SectionReader& bytes, const Abbreviation& abbreviation, std::uint64_t offset) {
    std::optional<std::uint64_t> low;
    std::optional<std::uint64_t> entry;
    std::optional<std::uint64_t> origin;
    bool in_place = true;
    unit.read(bytes, abbreviation, [&](const FoundAttribute& at) {
      if (at.wanted == Wanted::low_pc) low = unit.address(at);
      if (at.wanted == Wanted::entry_pc) entry = unit.address(at);
      if (at.wanted == Wanted::abstract_origin) {
        origin = unit.reference(at);
        in_place = !origin;
      }
    });
    const auto begin = entry ? entry : low;
    if (begin && !is_code_(VirtAddr(*begin))) return false;
    // Most copies say nothing of names but what they are copies of.
    starts_.push_back(in_place || abbreviation.has_names ? offset : *origin);
    return true;
  }

  [[nodiscard]] std::optional<EntryNames> names_at(const UnitReader& unit, std::uint64_t offset) {
    if (work_.left() == 0) return std::nullopt;
    SectionReader bytes(unit.bytes(), offset);
    const Abbreviation* abbreviation = unit.abbreviation(bytes.uleb());
    if (abbreviation == nullptr) return std::nullopt;
    EntryNames names;
    std::optional<std::uint64_t> specification;
    bool understood = true;
    const auto text = [&](const FoundAttribute& at, std::optional<TextPlace>& place) {
      place = unit.text(at);
      understood = understood && place;
    };
    const auto refer = [&](const FoundAttribute& at, std::optional<std::uint64_t>& place) {
      place = unit.reference(at);
      understood = understood && place && *place >= unit.head().first_entry && *place < unit.head().end;
    };
    unit.read(bytes, *abbreviation, [&](const FoundAttribute& at) {
      if (at.wanted == Wanted::name) text(at, names.name);
      if (at.wanted == Wanted::linkage_name) text(at, names.linkage_name);
      if (at.wanted == Wanted::mips_linkage_name) text(at, names.mips_linkage_name);
      if (at.wanted == Wanted::abstract_origin) refer(at, names.next);
      if (at.wanted == Wanted::specification) refer(at, specification);
      if (at.wanted == Wanted::signature) names.has_signature = true;
    });
    if (!names.next) names.next = specification;
    const auto end = static_cast<std::uint64_t>(bytes.position() - sections_.info.data());
    if (!work_.spend(end - offset + abbreviation->attributes.size())) return std::nullopt;
    if (!understood || !bytes.good()) return std::nullopt;
    return names;
  }

  /// The names of an entry and of all it stands for, the first of each kind; and the last of these entries.
  struct Chain {
    EntryNames names;
    std::optional<TextPlace> last_name;
    std::uint64_t last = 0;
  };
  [[nodiscard]] std::optional<Chain> chain_from(const UnitReader& unit, std::uint64_t offset) {
    Chain chain{.names = {}, .last_name = {}, .last = offset};
    for (unsigned step = 0; step < kLongestChain; ++step) {
      const auto names = names_at(unit, chain.last);
      if (!names) return std::nullopt;
      if (!chain.names.name) chain.names.name = names->name;
      if (!chain.names.linkage_name) chain.names.linkage_name = names->linkage_name;
      if (!chain.names.mips_linkage_name) chain.names.mips_linkage_name = names->mips_linkage_name;
      if (step == 0) chain.names.has_signature = names->has_signature;
      chain.last_name = names->name;
      if (!names->next) return chain;
      chain.last = *names->next;
    }
    return std::nullopt;
  }

  /// The function of an entry of `unit`, whose entries are read; nothing: not known.
  std::optional<std::uint32_t> function_at(const UnitReader& unit, std::uint64_t offset) {
    const auto chain = chain_from(unit, offset);
    const auto scope = chain ? scope_around(unit, chain->last, 0) : std::nullopt;
    if (!scope) return std::nullopt;
    const EntryNames& names = chain->names;
    const auto linkage = names.linkage_name ? names.linkage_name : names.mips_linkage_name;
    const Function function{.scope = *scope,
                            .name = names.name.value_or(TextPlace()),
                            .own_name = chain->last_name.value_or(TextPlace()),
                            .linkage_name = linkage.value_or(TextPlace())};
    return number_of(function, functions_, index_.functions_);
  }

  /// The scope (its index and 1; 0: none) that the entry at `offset` is in; nothing: not known.
  std::optional<std::uint32_t> scope_around(const UnitReader& unit, std::uint64_t offset, unsigned depth) {
    const auto at = std::ranges::lower_bound(entries_, offset, {}, &Entry::offset);
    if (at == entries_.end() || at->offset != offset) return std::nullopt;
    return at->parent == 0 ? 0 : scope_of(unit, at->parent - 1, depth + 1);
  }

  std::optional<std::uint32_t> scope_of(const UnitReader& unit, std::uint32_t entry, unsigned depth) {
    if (depth >= kDeepestTree) return std::nullopt;
    if (scope_of_[entry] != not_known) return scope_of_[entry];
    const std::uint64_t offset = entries_[entry].offset;
    const auto chain = chain_from(unit, offset);
    if (!chain || (!chain->names.name && chain->names.has_signature)) return std::nullopt;
    const auto outer = scope_around(unit, chain->last, depth);
    if (!outer) return std::nullopt;
    const Scope scope{.outer = *outer,
                      .is_namespace = tag_at(unit, offset) == DW_TAG_namespace,
                      .name = chain->names.name.value_or(TextPlace())};
    return scope_of_[entry] = number_of(scope, scopes_, index_.scopes_) + 1;
  }

  /// The number of `named` in `all`, where it is added if it is new.
  template <class Named>
  static std::uint32_t number_of(const Named& named, HashIndex& numbers, std::vector<Named>& all) {
    const auto [number, is_new] = numbers.try_add(hash_of(named), static_cast<std::uint32_t>(all.size()),
                                                  [&](std::uint32_t known) { return all[known] == named; });
    if (is_new) all.push_back(named);
    return number;
  }

  [[nodiscard]] static std::uint32_t tag_at(const UnitReader& unit, std::uint64_t offset) {
    const Abbreviation* abbreviation = unit.abbreviation(SectionReader(unit.bytes(), offset).uleb());
    return abbreviation == nullptr ? 0 : abbreviation->tag;
  }

  [[nodiscard]] static std::size_t hash_of(const Scope& scope) noexcept {
    return mixed(mixed(mixed(HashIndex::seed(), scope.outer), scope.name.packed()), scope.is_namespace ? 1 : 0);
  }
  [[nodiscard]] static std::size_t hash_of(const Function& function) noexcept {
    return mixed(mixed(mixed(HashIndex::seed(), function.scope), function.name.packed()),
                 function.linkage_name.packed());
  }

  FunctionIndex& index_;
  const DebugSections& sections_;
  const IsCode& is_code_;
  const StopToken& stop_;
  const LetGo& let_go_;
  const std::uint64_t before_letting_go_;
  const NameFilter* const filter_;  ///< null: all units are read
  const Part part_;
  Budget work_;
  std::uint64_t kept_ = 0;  ///< bytes read since memory was given back
  std::optional<Abbreviations> abbreviations_;
  std::optional<NameForms> forms_;  ///< of the abbreviations at `forms_of_`
  std::uint64_t forms_of_ = 0;
  std::vector<Level> levels_;
  std::vector<Entry> entries_;         ///< of one unit, by offset
  std::vector<std::uint64_t> starts_;  ///< of one unit: entries that have the names of its code
  static constexpr std::uint32_t not_known = UINT32_MAX;
  std::vector<std::uint32_t> scope_of_;                             ///< by entry of that unit
  std::vector<std::pair<std::uint64_t, std::uint32_t>> elsewhere_;  ///< such entries of other units; unit
  HashIndex scopes_;
  HashIndex functions_;
};

std::size_t FunctionIndex::useful_threads(std::uint64_t bytes) noexcept {
  return std::clamp<std::uint64_t>(bytes / kLeastPart, 1,
                                   std::clamp(std::thread::hardware_concurrency(), 1U, kMostParts));
}

FunctionIndex::FunctionIndex(const DebugSections& sections, const IsCode& is_code, const StopToken& stop,
                             const LetGo& let_go, std::size_t threads, const NameFilter* filter) {
  const std::vector<Part> parts = parts_of(sections.info, threads, let_go);
  std::vector<FunctionIndex> indexes(parts.size() - 1, FunctionIndex());  // of all but the first
  const auto builder = [&](FunctionIndex& index, const Part& part) {
    return Builder(index, sections, part, is_code, stop, let_go, kMostKept / parts.size(), filter);
  };
  std::vector<std::future<Builder::Rest>> others;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const sys::BlockedSignals blocked;
    others.push_back(std::async([&, i] {
      Builder other = builder(indexes[i - 1], parts[i]);
      other.read();
      return std::move(other).take_rest();
    }));
  }
  Builder all = builder(*this, parts.front());
  all.read();
  for (std::size_t i = 0; i < others.size(); ++i) {
    const Builder::Rest rest = others[i].get();
    let_go();  // no memory for the sections while there are two indexes
    all.take_in(indexes[i], rest);
    indexes[i] = FunctionIndex();
  }
  all.finish();
}

std::string FunctionIndex::qualified(const DebugSections& sections, const Function& function) const {
  const std::string_view own = function.own_name.in(sections);
  if (own.empty()) return {};
  std::array<std::string_view, kDeepestTree> around;
  std::size_t depth = 0;
  for (std::uint32_t at = function.scope; at != 0 && depth < around.size(); ++depth) {
    const Scope& scope = scopes_[at - 1];
    const std::string_view name = scope.name.in(sections);
    around[depth] = name.empty() ? nameless_scope(scope.is_namespace) : name;
    at = scope.outer;
  }
  return qualified_name(own, std::span(around).first(depth));
}

UnitSet FunctionIndex::units(const DebugSections& sections, const std::function<bool(const FunctionNames&)>& wanted,
                             const StopToken& stop, const LetGo& let_go) const {
  UnitSet found{.offsets = {}, .all_from = end_};
  for (const std::uint32_t unit : unknown_) found.offsets.insert(units_[unit]);
  Budget names(kNamesAtFirst, sections.info.size());
  auto place = places_.begin();
  for (std::uint32_t i = 0; i < functions_.size(); ++i) {
    const auto first = place;
    while (place != places_.end() && place->function == i) ++place;
    if (i % kBetweenLooks == kBetweenLooks - 1) {
      if (stop.stop_requested()) return found;
      let_go();
    }
    if (names.left() != 0) {
      const std::string whole = qualified(sections, functions_[i]);
      const FunctionNames each{functions_[i].name.in(sections), functions_[i].linkage_name.in(sections), whole};
      names.spend(each.name.size() + each.linkage_name.size() + each.qualified.size());
      if (!wanted(each)) continue;
    }
    for (auto each = first; each != place; ++each) found.offsets.insert(units_[each->unit]);
  }
  return found;
}

}  // namespace usdt::dwarf
