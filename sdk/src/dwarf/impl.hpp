// SPDX-License-Identifier: BSD-2-Clause
// What the files of this room share about open debug information. Private to dwarf/.
#pragma once

#include <elfutils/libdw.h>
#include <libelf.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "arch/arch.hpp"
#include "arch/returned.hpp"
#include "dwarf/budget.hpp"
#include "dwarf/clones.hpp"
#include "dwarf/debug_info.hpp"
#include "dwarf/frame.hpp"
#include "dwarf/function_index.hpp"
#include "dwarf/go_type_list.hpp"
#include "dwarf/names.hpp"
#include "dwarf/passed_numbers.hpp"
#include "dwarf/split_units.hpp"
#include "dwarf/type_names.hpp"
#include "elf/demangle.hpp"
#include "elf/elf_impl.hpp"

namespace usdt::dwarf {

struct ElfEnd {
  void operator()(Elf* elf) const noexcept { elf_end(elf); }
};
struct DwarfEnd {
  void operator()(Dwarf* dwarf) const noexcept { dwarf_end(dwarf); }
};
using ElfHandle = std::unique_ptr<Elf, ElfEnd>;
using DwarfHandle = std::unique_ptr<Dwarf, DwarfEnd>;

struct Unmap {
  std::size_t size = 0;
  void operator()(char* bytes) const noexcept;
};

/// The bytes of a file, with zeros behind them: libdw takes some strings without a look at where their section ends
/// (0.188: DW_FORM_string, .debug_line_str; tests/fuzz found it), and so ends within this memory whatever is in the
/// file.
class FileBytes {
 public:
  /// Copies a file, so that nobody can cut it off under us (SIGBUS). A large one is mapped instead, and as much of it
  /// is read as is asked, where only root and who runs this can change it. Errors: io; limit (a large one of others);
  /// changed (shorter than when it was opened).
  [[nodiscard]] static Result<FileBytes> read(const elf::File& file, const std::filesystem::path& path);

  [[nodiscard]] char* data() const noexcept { return mapped_ ? mapped_.get() : copy_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Lets the section headers be written to that `elf` has of it, which is our copy of them. False: that cannot be.
  [[nodiscard]] bool let_headers_change(Elf* elf) const noexcept;
  /// What was read of a mapped file takes no memory any more, until it is read again.
  void let_go() const noexcept;

 private:
  std::unique_ptr<char[]> copy_;
  std::unique_ptr<char, Unmap> mapped_;
  std::size_t size_ = 0;
};

/// One file, open in libdw; `dwarf` is null where only its ELF sections are wanted.
struct DwarfFile {
  std::filesystem::path path;
  FileBytes bytes;                                               ///< what the handles read
  std::vector<std::vector<std::uint8_t>> changed_sections = {};  ///< and in place of sections of it
  ElfHandle elf;
  DwarfHandle dwarf;

  /// Its sections as libdw has them: unpacked, if they are compressed.
  [[nodiscard]] DebugSections sections() const;
};

/// Refuses what makes libelf and libdw allocate more than any real file has. Errors: limit.
[[nodiscard]] Result<void> check_claims(const elf::File& file, const elf::Image& image,
                                        const std::filesystem::path& path);

/// The ELF sections of `file`. Errors: those of FileBytes::read(), malformed.
[[nodiscard]] Result<DwarfFile> open_elf(const elf::File& file, const std::filesystem::path& path);

/// The same with its debug information; `prepare` is called with it before libdw begins. Errors: also limit (claims of
/// sizes that no file can keep), and those of `prepare`.
using Prepare = std::function<Result<void>(DwarfFile&)>;
[[nodiscard]] Result<DwarfFile> open_dwarf(const elf::File& file, const elf::Image& image,
                                           const std::filesystem::path& path, const Prepare& prepare = {});

/// Addresses that are code of the file.
class CodeRanges {
 public:
  explicit CodeRanges(const elf::Image& image);
  [[nodiscard]] bool contains(VirtAddr address) const noexcept;

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;  ///< start, last; sorted
};

/// An instance that was handed out, and the function whose code it is in (itself, unless it is inlined).
struct KnownDie {
  Dwarf_Die die;
  Dwarf_Die function;
};

/// Which unit has an address, of units that .debug_aranges does not list; or which function of a unit.
struct DieRange {
  std::uint64_t start;
  std::uint64_t end;
  Dwarf_Die die;
};
/// A function of a unit, and where its code begins.
struct DieEntry {
  VirtAddr pc;
  Dwarf_Die die;
};
/// Puts the ranges of `die` behind `all`, as long as the budget is not spent.
void add_ranges(Dwarf_Die die, Budget& budget, std::vector<DieRange>& all);
/// The one that has `pc`; they are sorted by start.
[[nodiscard]] std::optional<Dwarf_Die> find_range(const std::vector<DieRange>& all, VirtAddr pc);

/// A type that was handed out: a DIE, of an array what is behind its first `dimension` dimensions. `swapped`: an enum,
/// or an array of some, in a struct whose numbers are in the other byte order, which GCC before 13 says of them alone.
struct KnownType {
  Dwarf_Die die;
  unsigned dimension;
  bool swapped = false;
};

/// A call that debug information tells of.
struct MergedCall {
  VirtAddr pc;         ///< within the call
  const void* callee;  ///< the declaration
  bool merged;         ///< it is at line 0: the compiler made it one of several
};

struct DebugInfo::Impl {
  static constexpr unsigned most_searches_of_aranges = 16;
  /// What may be spent on location lists whatever the file's size; besides, Budget's for each byte of it.
  static constexpr std::uint64_t lists_at_first = std::uint64_t{1} << 23;

  std::shared_ptr<const elf::OpenedFile> opened;
  std::optional<elf::DebugFile> debug_file;
  const arch::Arch& arch;
  CodeRanges code;
  DwarfFile shared;  ///< what dwz shares; no handles where there is none. Closed after `main`, which refers to it
  DwarfFile main;
  SplitUnits split;  ///< what skeletons in `main` stand for
  StopToken stop;    ///< that it was opened with

  mutable std::mutex mutex;  ///< over all that follows, and over libdw's caches
  mutable ScopeNames names;
  mutable std::vector<KnownDie> dies;  ///< by DieId
  mutable std::unordered_map<const void*, DieId> die_ids;
  mutable std::optional<std::vector<DieRange>> unit_ranges;
  /// How often .debug_aranges was gone through, before it was sorted.
  mutable unsigned searches_of_aranges = 0;
  mutable std::optional<std::vector<UnitRange>> sorted_aranges;
  mutable std::unordered_map<const void*, std::vector<DieRange>> function_ranges;   ///< by unit
  mutable std::unordered_map<const void*, std::vector<DieEntry>> function_entries;  ///< by unit, sorted
  mutable std::unordered_map<const void*, std::vector<MergedCall>> calls_of_units;  ///< by unit
  mutable std::unordered_map<const void*, PassedNumbers> numbers_passed_in_units;   ///< by unit
  mutable std::optional<DebugSections> known_sections;                              ///< of `main`
  [[nodiscard]] const DebugSections& sections() const {
    if (!known_sections) known_sections = main.sections();
    return *known_sections;
  }
  /// Of the file that libdw has `dwarf` of: `main`, what dwz shares, or a .dwo file, which stay open as long as `main`.
  [[nodiscard]] const DebugSections& sections_of(Dwarf* dwarf) const;
  [[nodiscard]] bool is_split(const Dwarf* dwarf) const noexcept {
    return dwarf != main.dwarf.get() && dwarf != shared.dwarf.get();
  }
  mutable std::unordered_map<const void*, DebugSections> other_sections;  ///< but for those of `main`
  mutable Budget list_entries;  ///< of location lists, which any number of variables may share
  /// For what any number of functions may share: what they are instances of, and lists of ranges.
  mutable Budget shared_reads{1, 0};
  mutable Budget code_walks{1, 0};    ///< bytes of code that copies of functions within it make read
  mutable Budget result_walks{1, 0};  ///< bytes of code that functions make read for their results, each once
  /// By the address of a function: the registers that its code is proven to leave a result in.
  mutable std::unordered_map<std::uint64_t, arch::ResultRegisters> proven_results;
  mutable DwarfFile code_file;  ///< of a file with a separate debug file: its own sections
  mutable std::optional<Frames> call_frames;
  mutable elf::Demangler demangler{std::size_t{1} << 24};
  mutable std::optional<CodeNames> symbols;
  mutable std::vector<KnownType> types;  ///< by TypeId
  mutable std::map<std::tuple<const void*, unsigned, bool>, TypeId> type_ids;
  mutable std::unordered_map<const void*, bool> units_with_types;   ///< by unit, of those that were asked for
  mutable std::unordered_map<const void*, bool> unoptimised_units;  ///< likewise
  mutable std::optional<TypeNames> type_names;
  mutable std::unordered_map<const void*, std::optional<TypeNames>> names_of_units;  ///< of those that were asked for
  mutable std::optional<GoTypes> go_types;
  mutable std::optional<FunctionIndex> function_index;

  Impl(std::shared_ptr<const elf::OpenedFile> file, std::optional<elf::DebugFile> separate, StopToken stop_token)
      : opened(std::move(file)),
        debug_file(std::move(separate)),
        arch(arch::for_machine(opened->image.machine)),
        code(opened->image),
        stop(std::move(stop_token)),
        list_entries(lists_at_first, 0) {}

  [[nodiscard]] DieId id_of(const Dwarf_Die& die, const Dwarf_Die& function) const;
  [[nodiscard]] std::optional<KnownDie> known(DieId id) const;
  /// The type's number; `none` where there is no type.
  [[nodiscard]] TypeId type_id(const std::optional<Dwarf_Die>& die, unsigned dimension = 0, bool swapped = false) const;

  /// What signature_told() says, with each unit looked through once.
  [[nodiscard]] bool tells_signature(Dwarf_Die function) const;
  /// Whether a function has been compiled without optimisation; false where that is not known.
  [[nodiscard]] bool is_surely_unoptimised(Dwarf_Die function) const;

  [[nodiscard]] const Frames& frames() const;
  [[nodiscard]] const CodeNames& code_names() const;
  /// Where the code of a function, an inlined copy or a block begins.
  [[nodiscard]] std::optional<VirtAddr> entry_of(Dwarf_Die die) const;

  /// The calls in functions of `unit` that lead to known functions.
  [[nodiscard]] const std::vector<MergedCall>& calls_of(Dwarf_Die unit) const;
  /// The numbers that calls in functions of `unit` pass for parameters that have no place.
  [[nodiscard]] const PassedNumbers& numbers_passed_in(Dwarf_Die unit) const;
  /// Where `die`, or the class of a lambda expression that it belongs to, was declared.
  [[nodiscard]] SourceLine place_of(Dwarf_Die die) const;
  /// The functions of `unit` that have code, by where it begins; of several, first the one that the unit has first.
  [[nodiscard]] const std::vector<DieEntry>& entries_of(Dwarf_Die unit) const;
  /// The first unit of `main` that .debug_aranges gives the code at `pc`, by where its head is.
  [[nodiscard]] std::optional<std::uint64_t> unit_in_aranges(VirtAddr pc) const;
  /// The unit whose code has `pc`.
  [[nodiscard]] std::optional<Dwarf_Die> unit_at(VirtAddr pc) const;
  /// Of all units; or of those that `filter`, if it is not null, lets through.
  [[nodiscard]] FunctionIndex make_index(const DebugSections& sections, const StopToken& stop,
                                         const FunctionIndex::LetGo& let_go, const NameFilter* filter) const;
  /// That of all units, from the cache if it is there.
  [[nodiscard]] std::optional<FunctionIndex> find_index(const DebugSections& sections, const StopToken& stop,
                                                        const FunctionIndex::LetGo& let_go) const;
  /// The units of `main` that may have code of a function that is `wanted`. `hint`: what is known of their names; null:
  /// nothing.
  [[nodiscard]] UnitSet units_with(const Wanted& wanted, const NameHint* hint, const StopToken& stop) const;
  /// The units of `main` with definitions that have names of `hint`, whether or not their code is in the file.
  [[nodiscard]] UnitSet units_naming(const NameHint& hint, const StopToken& stop) const;
  [[nodiscard]] Result<std::vector<FunctionInfo>> functions(const Wanted& wanted, const NameHint* hint,
                                                            const StopToken& stop) const;
  /// Nothing but once it was stopped, or what functions share is spent.
  [[nodiscard]] Result<void> may_read_on() const;
  /// Why names are not to be had, once they are spent (ScopeNames).
  [[nodiscard]] Error names_spent() const;
  /// Names and flags of the function `die` is; neither `declared` nor instances.
  [[nodiscard]] FunctionInfo describe(Dwarf_Die die) const;
};

/// What the line table says of where a function's body begins.
struct FunctionLines {
  std::optional<VirtAddr> prologue_end;  ///< that is said of a row (Clang)
  std::optional<VirtAddr> second;        ///< the second address that has a row; GCC gives the body's beginning one

  [[nodiscard]] std::optional<VirtAddr> body() const noexcept { return prologue_end ? prologue_end : second; }
};
[[nodiscard]] FunctionLines function_lines(Dwarf_Die function);

/// The line that `pc` is of, as debuggers have it; no file and 0: the line table of `unit` does not say.
[[nodiscard]] SourceLine line_at(Dwarf_Die unit, VirtAddr pc);

/// Each unit with code: of a skeleton, what it stands for. Until `visit(unit)` returns false.
void for_each_unit(Dwarf* dwarf, const SplitUnits& split, const std::function<bool(Dwarf_Die)>& visit);
/// The same of some units.
void for_each_unit(Dwarf* dwarf, const SplitUnits& split, const UnitSet& units,
                   const std::function<bool(Dwarf_Die)>& visit);
/// The same with the units that have only types, of split ones too.
void for_each_unit_and_type(Dwarf* dwarf, const SplitUnits& split, const std::function<bool(Dwarf_Die)>& visit);

}  // namespace usdt::dwarf
