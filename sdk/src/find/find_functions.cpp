// SPDX-License-Identifier: BSD-2-Clause
#include "find/find_functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "base/symbol_name.hpp"
#include "base/try.hpp"
#include "dwarf/debug_info.hpp"
#include "dwarf/lines.hpp"
#include "elf/demangle.hpp"
#include "elf/functions.hpp"
#include "find/function_finder.hpp"
#include "usdt/select.hpp"

namespace usdt::find {

Result<void> add_functions(const std::vector<FunctionPattern>& patterns, const StopToken& stop,
                           const FilesBeside& beside, ProbeFile& file) {
  const auto is_line = [](const FunctionPattern& pattern) { return !pattern.source_file.empty(); };
  std::vector<FunctionPattern> lines;
  std::vector<FunctionPattern> names;
  std::ranges::copy_if(patterns, std::back_inserter(lines), is_line);
  std::ranges::copy_if(patterns, std::back_inserter(names), std::not_fn(is_line));
  if (!names.empty()) {
    TRY(FunctionFinder(names, stop, beside, file).run());
  }
  return lines.empty() ? Result<void>() : FunctionFinder(lines, stop, beside, file).run_lines();
}

std::string why_no_line(const ElfFile& file, const FunctionPattern& pattern, const StopToken& stop) {
  const auto debug = dwarf::DebugInfo::open(file, stop);
  // Most of the files that are mapped have no debug information.
  if (!debug) return means_everything(pattern.target) ? std::string() : debug.error().message;
  const auto addresses = dwarf::addresses_of_line(*debug, pattern.source_file, pattern.line, stop);
  if (!addresses) return addresses.error().message;
  if (!addresses->empty()) return {};
  const auto next = dwarf::next_line_with_code(*debug, pattern.source_file, pattern.line, stop);
  return fmt::format("there is no code at {}:{}{}", pattern.source_file, pattern.line,
                     next ? fmt::format("; the next line with code is {}", *next) : ", nor behind it");
}

}  // namespace usdt::find

namespace usdt {
inline namespace v1 {

Result<std::shared_ptr<const TypeGraph>> file_types(const ElfFile& file, const StopToken& stop) {
  const auto debug = TRY(dwarf::DebugInfo::open(file, stop));
  return debug.types();
}

bool means_function(const FunctionPattern& pattern, std::string_view name) {
  if (!pattern.source_file.empty()) return name == line_text(pattern.source_file, pattern.line);
  if (pattern.offset != 0) {
    const std::string offset = offset_text(pattern.offset);
    if (!name.ends_with(offset)) return false;
    name.remove_suffix(offset.size());
  }
  if (elf::FunctionName(pattern.name).matches_name(name)) return true;
  elf::Demangler demangler(pattern.name.size() * 64);
  return elf::may_be_mangled(pattern.name) && demangler.demangle(pattern.name).name == name;
}

}  // namespace v1
}  // namespace usdt
