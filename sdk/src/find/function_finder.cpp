// SPDX-License-Identifier: BSD-2-Clause
#include "find/function_finder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "arch/arch.hpp"
#include "base/symbol_name.hpp"

namespace usdt::find {
namespace {

/// Writes "server.c:12".
std::string text_of(const dwarf::SourceLine& line) {
  return line.file.empty() ? std::string("a place not known") : fmt::format("{}:{}", line.file, line.line);
}

std::vector<elf::CodePart> parts_of(const dwarf::Instance& instance) {
  std::vector<elf::CodePart> parts;
  for (const auto& [start, size] : instance.elsewhere) parts.push_back({.address = start, .size = size});
  return parts;
}

}  // namespace

Result<void> FunctionFinder::run_lines() {
  if (auto opened = open_debug_information(); !opened || !debug_) return opened;
  for (const FunctionPattern& pattern : patterns_)
    if (auto added = add_line(pattern); !added) return added;
  return {};
}

Result<void> FunctionFinder::run() {
  auto found = elf::find_functions(*file_.elf, names_, stop_);
  if (!found) return fail(std::move(found.error()));
  if (auto opened = open_debug_information(); !opened) return opened;
  if (go_ && !go_->by_registers)
    file_.no_types = fmt::format("built by {}: arguments are read of Go 1.18 and later", go_version());
  for (const Function& function : *found) {
    if (stop_.stop_requested()) return fail(ErrorKind::stopped, "functions were not looked for to the end");
    if (auto added = add(function); !added) return added;
  }
  auto added = debug_ ? add_by_debug_information() : Result<void>{};
  tell_of_returns();
  return added;
}

Result<void> FunctionFinder::open_debug_information() {
  auto debug = dwarf::DebugInfo::open(*file_.elf, stop_);
  if (debug)
    debug_.emplace(std::move(*debug));
  else if (debug.error().kind == ErrorKind::stopped)
    return fail(std::move(debug.error()));
  else
    file_.no_types = debug.error().message;
  const bool none =
      debug || debug.error().kind == ErrorKind::not_found || debug.error().kind == ErrorKind::not_supported;
  if (!none) file_.refused = file_.no_types;
  return {};
}

Result<void> FunctionFinder::add_line(const FunctionPattern& pattern) {
  const auto addresses = debug_->addresses_of_line(pattern.source_file, pattern.line, stop_);
  if (!addresses && addresses.error().kind == ErrorKind::stopped) return fail(addresses.error());
  if (!addresses) return {};
  for (const VirtAddr pc : *addresses) {
    FunctionPoint point;
    point.name = line_text(pattern.source_file, pattern.line);
    point.signature = nothing();
    if (const auto function = debug_->function_around(pc)) describe(point, *function, pattern);
    if (point.inlined && !pattern.inlined) continue;
    point.source_line = pattern.line;
    place_at_start(point, pc);
    if (is_new(point, pc)) file_.functions.push_back(std::move(point));
  }
  return {};
}

void FunctionFinder::describe(FunctionPoint& point, const dwarf::FunctionInfo& function,
                              const FunctionPattern& pattern) {
  const dwarf::Instance& instance = function.instances.front();
  point.inlined = instance.inlined;
  point.caller = instance.inlined ? instance.caller : named(function).name;
  point.source_file = function.declared.file;
  if (auto variables = debug_->variables(function, instance, pattern.line); variables && !go_)
    point.signature = shared(*std::move(variables));
}

Result<void> FunctionFinder::add(const Function& function) {
  Known known;
  bool looked = false;
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    if (!names_[i].matches(function)) continue;
    // It is a part of the function whose name it has, too, whose calls would be counted twice.
    if (is_cold_half(function.symbol) && patterns_[i].name != function.symbol) continue;
    if (!std::exchange(looked, true)) known = look_up(function);
    if (auto added = add(function, known, patterns_[i]); !added) return added;
  }
  return {};
}

FunctionFinder::Known FunctionFinder::look_up(const Function& function) {
  if (!debug_) return {untyped(), {}, {}, go_.has_value()};
  auto info = debug_->function_at(function.address);
  if (!info) note_refusal(info.error());
  if (!info || info->instances.empty()) return {untyped(), {}, {}, go_.has_value()};
  return {signature_of(*info, info->instances.front()), info->declared, parts_of(info->instances.front()),
          go_ && info->go};
}

void FunctionFinder::note_refusal(const Error& error) {
  if (error.kind == ErrorKind::limit) file_.refused = error.message;
}

Result<void> FunctionFinder::add(const Function& function, const Known& known, const FunctionPattern& pattern) {
  FunctionPoint point = point_of(function, known, pattern);
  if (!pattern.args.empty() && pattern.offset == 0 && !go_) {
    if (known.signature->typed)
      return fail(ErrorKind::invalid_argument,
                  fmt::format("'{}' has debug information, which knows the types of its arguments: they are not said "
                              "by hand",
                              function.name));
    point.signature = typed_by_hand(pattern.args);
  }
  if (function.ifunc)
    point.refused = "what is there only chooses the function (STT_GNU_IFUNC): name the one that it chooses";
  if (!is_new(point, function.address + pattern.offset)) return {};
  if (pattern.offset != 0) {
    auto there = elf::place_in_function(*file_.elf, function, pattern.offset);
    if (!there) return fail(std::move(there.error()));
    point.name += offset_text(pattern.offset);
    point.distance = pattern.offset;
    point.signature = nothing();
    place(point, function.address + pattern.offset);
  } else {
    place_at_start(point, function.address);
    move_to_cheaper_start(point, function, known);
    follow_code(point, function, known, pattern.ret_probes);
  }
  file_.functions.push_back(std::move(point));
  return {};
}

FunctionPoint FunctionFinder::point_of(const Function& function, const Known& known, const FunctionPattern& pattern) {
  const Moment moment = pattern.moment;
  FunctionPoint point;
  point.moment = moment;
  point.name = function.name;
  point.signature = known.signature;
  point.source_file = known.declared.file;
  point.source_line = known.declared.line;
  if (moment == Moment::entry) return point;
  if (go_ || pattern.ret_probes.value_or(false))
    point.returns = known.go ? ReturnBy::goroutine_ret : ReturnBy::instruction;
  point.refused = why_no_returns(function, point);
  return point;
}

void FunctionFinder::place(FunctionPoint& point, VirtAddr pc) {
  point.pc = pc;
  const elf::Code code = code_.at(pc);
  point.offset = code.offset;
  point.bytes = code.bytes;
  point.site_class = code.site_class;
}

void FunctionFinder::place_at_start(FunctionPoint& point, VirtAddr address) {
  place(point, address);
  const std::span bytes(point.bytes.data.data(), point.bytes.size);
  if (const std::uint8_t pad = arch::landing_pad(file_.elf->machine(), bytes); pad != 0) place(point, address + pad);
}

bool FunctionFinder::is_new(const FunctionPoint& point, VirtAddr start) {
  const bool has_own_name = point.inlined || point.name.starts_with('@');
  return taken_.emplace(point.moment, start.value, has_own_name ? point.name : "").second;
}

Result<void> FunctionFinder::add_by_debug_information() {
  const auto wanted = [&](const dwarf::FunctionInfo& info) {
    const bool mangled = elf::may_be_mangled(info.linkage_name);
    // Most are told by a look at the mangled name.
    if (mangled && std::ranges::none_of(names_, [&](const elf::FunctionName& name) {
          return name.matches_symbol(info.linkage_name, {}) || name.may_match_mangled(info.linkage_name);
        }))
      return false;
    const Function function = named(info);
    return std::ranges::any_of(names_, [&](const elf::FunctionName& name) { return name.matches(function); });
  };
  auto found = debug_->functions(wanted, names_hint(), stop_);
  if (!found && found.error().kind == ErrorKind::stopped) return fail(std::move(found.error()));
  if (!found) {
    file_.refused = std::move(found.error().message);
    return {};
  }
  if (file_.refused.empty()) file_.refused = debug_->missing();
  for (const dwarf::FunctionInfo& info : *found) {
    Function function = named(info);
    for (const dwarf::Instance& instance : info.instances) {
      function.address = instance.pc;
      function.size = instance.size;
      add_instance(function, info, instance);
    }
  }
  warn_of_repeated(*found);
  return {};
}

void FunctionFinder::warn_of_repeated(const std::vector<dwarf::FunctionInfo>& functions) {
  if (go_ || std::ranges::none_of(patterns_, &FunctionPattern::inlined)) return;
  std::size_t copies = 0;
  std::vector<std::string> names;
  for (const dwarf::FunctionInfo& each : functions) {
    const auto repeated = std::ranges::count_if(
        each.instances, [&](const dwarf::Instance& one) { return debug_->is_repeated(each, one); });
    copies += static_cast<std::size_t>(repeated);
    if (repeated > 0) names.push_back(each.qualified);
  }
  if (names.empty()) return;
  constexpr std::size_t named = 3;
  const std::string others =
      names.size() > named ? fmt::format(" and {} other functions", names.size() - named) : std::string();
  names.resize(std::min(names.size(), named));
  file_.warnings.push_back({{},
                            fmt::format("calls may be missed of {} inlined {} ({}{}) that the compiler may have "
                                        "repeated, as in a loop that it unrolled: debug information tells one place",
                                        copies, copies == 1 ? "copy" : "copies", fmt::join(names, ", "), others)});
}

dwarf::NameHint FunctionFinder::names_hint() const {
  dwarf::NameHint hint;
  for (const elf::FunctionName& name : names_) hint.words.push_back(name.word_in_symbols());
  hint.may_be = [this, demangler = elf::Demangler(kDemangled)](std::string_view symbol) mutable {
    return std::ranges::any_of(names_,
                               [&](const elf::FunctionName& name) { return name.may_match(symbol, demangler); });
  };
  return hint;
}

Function FunctionFinder::named(const dwarf::FunctionInfo& info) {
  Function function;
  function.symbol = info.linkage_name.empty() ? info.name : info.linkage_name;
  const elf::Demangled demangled = demangler_.demangle(function.symbol);
  function.name = demangled.name.empty() ? info.qualified : std::string(demangled.name);
  return function;
}

void FunctionFinder::add_instance(const Function& function, const dwarf::FunctionInfo& info,
                                  const dwarf::Instance& instance) {
  const Known known{signature_of(info, instance), info.declared, parts_of(instance), go_ && info.go};
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    if (!names_[i].matches(function) || patterns_[i].offset != 0) continue;
    if (instance.inlined && !patterns_[i].inlined) continue;
    FunctionPoint point = point_of(function, known, patterns_[i]);
    if (instance.inlined) {
      make_inlined(point, instance, known.go);
    } else {
      if (!is_new(point, instance.pc)) continue;
      place_at_start(point, instance.pc);
      follow_code(point, function, known, patterns_[i].ret_probes);
    }
    if (!instance.inlined || is_new(point, instance.pc)) file_.functions.push_back(std::move(point));
  }
}

void FunctionFinder::make_inlined(FunctionPoint& point, const dwarf::Instance& instance, bool go) {
  point.inlined = true;
  point.caller = instance.caller;
  const std::string_view why = point.moment != Moment::entry ? "where it does not return"
                               : go                          ? "and Go does not tell where such a copy begins"
                                                             : "";
  if (!why.empty())
    point.refused = fmt::format("inlined into {} at {}, {}", instance.caller, text_of(instance.where_called), why);
  place(point, instance.pc);
}

}  // namespace usdt::find
