// SPDX-License-Identifier: BSD-2-Clause
#include "find/indirect.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "arch/arch.hpp"
#include "elf/claims.hpp"
#include "elf/function_table.hpp"
#include "find/loaded_file.hpp"
#include "proc/process_maps.hpp"

namespace usdt::find {
namespace {

/// Processes that are looked at, of those that have the file mapped.
constexpr std::size_t kMostProcesses = 8;

/// The slot for which the dynamic linker calls `resolver`.
std::optional<VirtAddr> slot_of(const elf::OpenedFile& opened, VirtAddr resolver) {
  const std::uint32_t irelative = arch::for_machine(opened.image.machine).relocations.irelative;
  elf::Claims claims(opened.file, opened.image);
  for (const elf::Section& section : opened.image.sections) {
    if ((section.type != SHT_REL && section.type != SHT_RELA) || (section.flags & SHF_ALLOC) == 0) continue;
    for (const elf::Relocation& each : elf::relocations_of(opened.image, section, claims.read(section)))
      if (each.type == irelative && each.addend == resolver.value) return VirtAddr(each.offset);
  }
  return std::nullopt;
}

/// The function as a symbol table has it that begins at `address`, called as `indirect` is.
Function function_at(const elf::FunctionTable& table, const elf::Image& image, VirtAddr address,
                     const Function& indirect) {
  Function function = indirect;
  function.aliases.clear();
  function.ifunc = false;
  function.address = address;
  function.size = 0;
  function.offset = elf::code_offset(image, address);
  for (const elf::FunctionEntry& entry : table.entries) {
    if (entry.address != address.value || entry.ifunc) continue;
    function.symbol = entry.symbol;
    function.size = std::max(function.size, entry.size);
  }
  return function;
}

}  // namespace

Choices choices_of(const ProbeFile& file, const Function& indirect, const StopToken& stop) {
  const elf::OpenedFile& opened = *elf::Inside::of(*file.elf);
  const auto slot = slot_of(opened, indirect.address);
  if (!slot) return {{}, "the file itself has no slot in which its choice would be found"};
  std::vector<pid_t> pids{::getpid()};
  const std::vector<pid_t> others = proc::numbers_in("/proc");
  pids.insert(pids.end(), others.rbegin(), others.rend());
  std::size_t seen = 0;
  std::vector<std::pair<VirtAddr, std::size_t>> found;
  for (const pid_t pid : pids) {
    if (seen == kMostProcesses || stop.stop_requested()) break;
    const auto code = LoadedCode::of(pid);
    const auto loaded = code ? LoadedFile::of(*code, file.target, opened.image) : std::nullopt;
    const auto word = loaded ? loaded->word_at(*slot) : std::nullopt;
    if (!word || *word == 0) continue;
    ++seen;
    const VirtAddr address = loaded->in_file(ProcessAddr(*word));
    const auto known = std::ranges::find(found, address, &std::pair<VirtAddr, std::size_t>::first);
    known == found.end() ? found.emplace_back(address, 1) : (++known->second, *known);
  }
  if (found.empty()) return {{}, "no process that has the file mapped could be looked at"};
  const elf::FunctionTable table(opened, stop);
  Choices choices;
  for (const auto& [address, processes] : found)
    if (elf::code_offset(opened.image, address))
      choices.chosen.push_back({function_at(table, opened.image, address, indirect), processes});
  if (choices.chosen.empty()) choices.why_none = "what it chose is not in this file (the vDSO, or another library)";
  return choices;
}

}  // namespace usdt::find
