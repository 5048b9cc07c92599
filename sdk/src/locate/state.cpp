// SPDX-License-Identifier: BSD-2-Clause
#include "locate/state.hpp"

#include <utility>

#include "dwarf/compiler.hpp"
#include "dwarf/die.hpp"

namespace usdt::locate {
namespace {

/// Budget for location lists whatever the file's size, besides the part for each of its bytes.
constexpr std::uint64_t kListsAtFirst = std::uint64_t{1} << 23;
/// Bytes of code that inlined copies may make read, besides those of the file: some seconds' worth.
constexpr std::uint64_t kCodeAtFirst = 1U << 24;
/// Bytes of code that functions may make read for their results, besides those of the file. Each does so once, and
/// functions of compilers do not overlap: the bytes of the file are enough for them.
constexpr std::uint64_t kResultsAtFirst = 1U << 22;

}  // namespace

LocationLists::LocationLists(const DebugFiles& files)
    : entries(kListsAtFirst, files.main.bytes.size()), files_(files) {}

const DebugSections& LocationLists::sections_of(Dwarf* dwarf) {
  if (dwarf == files_.main.dwarf.get()) return files_.sections;
  const auto [known, is_new] = others_.try_emplace(dwarf);
  if (is_new) known->second = sections_in(dwarf_getelf(dwarf), files_.is_split(dwarf) ? ".dwo" : "");
  return known->second;
}

bool UnitTraits::tells_signature(Dwarf_Die function) {
  const SignatureTold told = signature_told(function);
  if (told != SignatureTold::by_unit) return told == SignatureTold::yes;
  Dwarf_Die unit;
  Dwarf_Die declared = origin_of(function);
  if (dwarf_diecu(&declared, &unit, nullptr, nullptr) == nullptr) return true;
  return with_types_.of(unit, [&unit] { return has_types(unit); });
}

bool UnitTraits::is_surely_unoptimised(Dwarf_Die function) {
  if (!is_unoptimised(function)) return false;
  if (!is_rust(function)) return true;
  Dwarf_Die unit;
  if (dwarf_diecu(&function, &unit, nullptr, nullptr) == nullptr) return false;
  return unoptimised_.of(unit, [&unit] { return looks_unoptimised(unit); });
}

const Frames& FrameRules::get() {
  if (!frames_) {
    auto own = files_.debug_file ? open_elf(files_.opened->file, files_.opened->path) : DwarfFile{};
    if (own) code_ = std::move(*own);
    frames_.emplace(files_.debug_file ? code_.elf.get() : files_.main.elf.get(), files_.main.dwarf.get(), files_.arch);
  }
  return *frames_;
}

State::State(std::shared_ptr<DebugState> shared_state)
    : shared(std::move(shared_state)),
      lists(shared->files),
      code_walks(kCodeAtFirst + shared->files.opened->file.size(), 0),
      results{.bytes = Budget(kResultsAtFirst + shared->files.opened->file.size(), 0), .known = {}},
      frames_(shared->files) {}

}  // namespace usdt::locate
