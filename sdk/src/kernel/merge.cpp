// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/merge.hpp"

#include <algorithm>
#include <iterator>
#include <span>

namespace usdt::kernel {
namespace {

// Bits of a symbol's Named::tag.
constexpr std::uint32_t kFtrace = 1;
constexpr std::uint32_t kAlias = 2;
constexpr std::uint32_t kDuplicate = 4;
constexpr std::uint32_t kUnsure = 8;

// The instruction ftrace rewrites is not always the first: x86 has `endbr64` before it (4 bytes), arm64 an instruction
// that saves the link register, and perhaps `bti c` (4 or 8).
constexpr std::uint64_t kEntryBytes = 16;

int compare_names(const Named& a, const Named& b, const ModuleNames& modules) noexcept {
  if (a.module != b.module) return modules.name(a.module) < modules.name(b.module) ? -1 : 1;
  return a.name.compare(b.name);
}

using Group = std::span<Named>;

/// The entries from `at` on that have one name in one module.
Group group_at(std::vector<Named>& list, std::size_t at) noexcept {
  std::size_t end = at + 1;
  while (end < list.size() && list[end].module == list[at].module && list[end].name == list[at].name) ++end;
  return std::span(list).subspan(at, end - at);
}

/// One name: which of its functions are the listed ones?
void mark_group(Group symbols, std::span<const Named> listed) {
  const bool addresses = listed[0].address != 0 && symbols[0].address != 0;
  if (!addresses) {
    const std::uint32_t mark = listed.size() >= symbols.size() ? kFtrace : kUnsure;
    for (Named& symbol : symbols) symbol.tag |= mark;
  } else {
    for (const Named& place : listed) {
      // The last that begins before: copies of short functions can be near each other.
      const auto behind = std::ranges::upper_bound(symbols, place.address, {}, &Named::address);
      if (behind == symbols.begin()) continue;
      Named& symbol = *std::prev(behind);
      if (place.address - symbol.address <= kEntryBytes) symbol.tag |= kFtrace;
    }
  }
  if (listed.size() > 1) {
    for (Named& symbol : symbols) symbol.tag |= kDuplicate;
  }
}

/// Both lists sorted; what is listed and has no symbol is added, once, without an address.
void mark_listed(std::vector<Named>& symbols, std::vector<Named>& listed, const ModuleNames& modules) {
  std::vector<Named> added;
  std::size_t at = 0;
  for (std::size_t next = 0; next < listed.size();) {
    const Group places = group_at(listed, next);
    next += places.size();
    while (at < symbols.size() && compare_names(symbols[at], places[0], modules) < 0) ++at;
    if (at < symbols.size() && compare_names(symbols[at], places[0], modules) == 0) {
      mark_group(group_at(symbols, at), places);
    } else {
      const std::uint32_t tag = kFtrace | (places.size() > 1 ? kDuplicate : 0);
      added.push_back({places[0].name, 0, places[0].module, tag});
    }
  }
  if (added.empty()) return;
  symbols.insert(symbols.end(), added.begin(), added.end());
  sort(symbols, modules);
}

void mark_duplicates(std::vector<Named>& symbols) {
  for (std::size_t at = 0; at < symbols.size();) {
    const Group same = group_at(symbols, at);
    at += same.size();
    if (same.size() == 1) continue;
    for (Named& symbol : same) symbol.tag |= kDuplicate;
  }
}

/// ftrace lists one name of each address, kallsyms all.
void mark_aliases(std::vector<Named>& symbols) {
  std::vector<std::uint64_t> traced;
  for (const Named& symbol : symbols) {
    if ((symbol.tag & kFtrace) != 0 && symbol.address != 0) traced.push_back(symbol.address);
  }
  std::ranges::sort(traced);
  for (Named& symbol : symbols) {
    if ((symbol.tag & kFtrace) == 0 && std::ranges::binary_search(traced, symbol.address))
      symbol.tag = (symbol.tag & ~kUnsure) | kFtrace | kAlias;
  }
}

}  // namespace

FunctionList merge_lists(Symbols&& symbols, std::vector<Named>&& listed, const ModuleNames& modules) {
  std::vector<Named>& all = symbols.functions;
  sort(all, modules);
  sort(listed, modules);
  mark_duplicates(all);
  mark_listed(all, listed, modules);
  mark_aliases(all);
  FunctionList out;
  out.functions.reserve(all.size());
  for (const Named& symbol : all) {
    if ((symbol.tag & kUnsure) != 0) out.unsure.push_back(static_cast<std::uint32_t>(out.functions.size()));
    KernelFunction& function = out.functions.emplace_back();
    function.name = symbol.name;
    function.module = modules.name(symbol.module);
    function.address = symbol.address;
    function.ftrace = (symbol.tag & kFtrace) != 0;
    function.alias = (symbol.tag & kAlias) != 0;
    function.duplicate = (symbol.tag & kDuplicate) != 0;
  }
  return out;
}

}  // namespace usdt::kernel
