// SPDX-License-Identifier: BSD-2-Clause
#include "find/shared_addresses.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/symbol_name.hpp"
#include "base/try.hpp"
#include "dwarf/functions.hpp"
#include "find/some_of.hpp"

namespace usdt::find {
namespace {

/// "a has the code of b; c has the code of d; ...; and so have 5 others: WHY".
std::string one_notice(const std::vector<std::string>& said, std::string_view so, std::string_view why) {
  const auto [shown, others] = first_ones(said, "; ");
  return fmt::format("{}{}: {}", shown, others == 0 ? "" : fmt::format("; and {} {} others", so, others), why);
}

/// Whether two names are spellings of one function, as libraries of C have them: "write" and "__write", "pread" and
/// "pread64", "malloc" and "__libc_malloc".
bool is_spelling(std::string_view a, std::string_view b) {
  if (elf::may_be_mangled(a) || elf::may_be_mangled(b)) return false;
  for (std::string_view* name : {&a, &b}) name->remove_prefix(std::min(name->find_first_not_of('_'), name->size()));
  if (a.size() < b.size()) std::swap(a, b);
  const std::string_view before = a.substr(0, a.size() - b.size());
  const std::string_view behind = a.substr(b.size());
  const bool has_prefix = a.ends_with(b) && (before.empty() || before.ends_with('_'));
  return has_prefix || (a.starts_with(b) && behind.find_first_not_of("0123456789") == behind.npos);
}

}  // namespace

std::string SharedAddresses::written(const std::string& symbol) {
  const elf::Demangled demangled = demangler_.demangle(symbol);
  return demangled.name.empty() ? symbol : std::string(demangled.name);
}

std::vector<std::string> SharedAddresses::other_names(const Function& function) {
  std::vector<std::string> names;
  // (A constructor and its base part are one to who reads their names.)
  for (const std::string& alias : function.aliases)
    if (piece_suffix(alias).empty() && written(alias) != function.name) names.push_back(alias);
  return names;
}

Result<void> SharedAddresses::find_folded(const dwarf::DebugInfo& debug, const std::vector<Function>& functions,
                                          const StopToken& stop) {
  std::vector<std::string> names;
  std::vector<VirtAddr> addresses;
  for (const Function& function : functions) {
    auto others = other_names(function);
    if (others.empty()) continue;
    names.push_back(function.symbol);
    std::ranges::move(others, std::back_inserter(names));
    addresses.push_back(function.address);
  }
  if (names.empty()) return {};
  auto defined = TRY(dwarf::find_defined(debug, names, addresses, stop));
  defined_.insert(defined.begin(), defined.end());
  return {};
}

bool SharedAddresses::note_folded(const Function& function, const dwarf::FunctionInfo& info) {
  const std::string& own = info.linkage_name.empty() ? info.name : info.linkage_name;
  std::vector<std::string> others;
  for (const std::string& each : other_names(function))
    if (each != own && defined_.contains(each)) others.push_back(each);
  const bool is_another = own != function.symbol && defined_.contains(function.symbol);
  if (is_another) others.push_back(own);
  if (others.empty()) return false;
  for (std::string& each : others) each = written(each);
  folded_.push_back(fmt::format("{} has the code of {}", function.name, fmt::join(others, ", ")));
  return is_another;
}

void SharedAddresses::note_one_address(const Function& function) {
  if (!function.version.empty()) return;
  std::vector<std::string> others;
  for (const std::string& each : other_names(function))
    if (!is_spelling(each, function.symbol)) others.push_back(written(each));
  if (!others.empty())
    one_address_.push_back(fmt::format("{} is at the address of {}", function.name, fmt::join(others, ", ")));
}

void SharedAddresses::warn(ProbeFile& file) const {
  if (!folded_.empty())
    file.warnings.push_back({{},
                             one_notice(folded_, "so have",
                                        "their code is equal, and the compiler or the linker made it one; hits are "
                                        "calls of each of them")});
  if (!one_address_.empty())
    file.warnings.push_back({{},
                             one_notice(one_address_, "so are",
                                        "two names of one function, or equal code that was made one; without debug "
                                        "information nobody tells; hits are calls of each of them")});
}

}  // namespace usdt::find
