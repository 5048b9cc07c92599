// SPDX-License-Identifier: BSD-2-Clause
#include "find/function_finder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <iterator>
#include <span>
#include <utility>

#include "arch/arch.hpp"
#include "arch/instructions.hpp"
#include "base/symbol_name.hpp"
#include "base/try.hpp"
#include "dwarf/functions.hpp"
#include "dwarf/lines.hpp"
#include "dwarf/running.hpp"
#include "find/indirect.hpp"
#include "find/some_of.hpp"

namespace usdt::find {
namespace {

/// Why nothing is attached where a breakpoint would stand within an instruction.
constexpr const char* kOtherCode =
    "debug information has it within an instruction: it is that of other code, as of a copy that the linker left out";

/// Writes "server.c:12".
std::string text_of(const dwarf::SourceLine& line) {
  return line.file.empty() ? std::string("a place not known") : fmt::format("{}:{}", line.file, line.line);
}

std::vector<elf::CodePart> parts_of(const dwarf::Instance& instance) {
  std::vector<elf::CodePart> parts;
  for (const auto& [start, size] : instance.elsewhere) parts.push_back({.address = start, .size = size});
  return parts;
}

/// Whether it may be the function of a lambda expression, whose whole name is not known yet (dwarf/lambdas.hpp).
bool may_be_lambda(const dwarf::FunctionInfo& info) {
  return info.linkage_name.empty() && info.name.starts_with("operator()");
}

/// Whether `name` means a function of debug information, which may have no name for the linker.
bool means(const elf::FunctionName& name, const Function& function) {
  return name.matches(function) || (!elf::may_be_mangled(function.symbol) && name.matches_name(function.name));
}

/// Whether the function is a piece of another one ("work.part.0") that `pattern` does not mean by its own name. A name
/// that is not mangled may have such a word of itself (Go's main.resume); no language writes ".cold" or ".part.0".
bool is_other_piece(const Function& function, std::string_view pattern) {
  const std::string_view piece = piece_suffix(function.symbol);
  if (piece.empty() || pattern.find(piece) != pattern.npos) return false;
  return piece == ".cold" || piece == ".part" || elf::may_be_mangled(function.symbol);
}

}  // namespace

Result<void> FunctionFinder::run_lines() {
  if (auto opened = open_debug_information(); !opened || !debug_) return opened;
  for (const FunctionPattern& pattern : patterns_) TRY(add_line(pattern));
  notices_.tell(code_, file_);
  return {};
}

Result<void> FunctionFinder::run() {
  auto found = TRY(elf::find_functions(code_.elf(), names_, stop_));
  TRY(open_debug_information());
  if (code_.go() && !code_.go()->by_registers)
    file_.no_types = fmt::format("built by {}: arguments are read of Go 1.18 and later", code_.go_version());
  TRY(take_bodies_of_entries(found));
  if (debug_ && !code_.go()) TRY(shared_addresses_.find_folded(debug_->info, found, stop_));
  variants_.find(found);
  for (const Function& function : found) {
    if (stop_.stop_requested()) return fail(ErrorKind::stopped, "functions were not looked for to the end");
    TRY(add(function));
  }
  shared_addresses_.warn(file_);
  auto added = debug_ ? add_by_debug_information() : Result<void>{};
  notices_.tell(code_, file_);
  tell_of_names();
  tell_of_chosen();
  return added;
}

Result<void> FunctionFinder::take_bodies_of_entries(std::vector<Function>& functions) {
  const Machine machine = code_.machine();
  if (code_.go() || !arch::knows_instructions(machine)) return {};
  for (Function& each : functions) {
    const auto code = std::span(each.bytes.data).first(each.bytes.size).subspan(each.landing_pad);
    const arch::Instruction first = arch::decode_instruction(machine, code);
    if (first.flow != arch::Flow::jump || !first.target) continue;
    const VirtAddr body = each.address + each.landing_pad + static_cast<std::uint64_t>(*first.target);
    const std::string symbol = each.symbol + ".cfi";
    if (!code_.pieces().is_called(body, symbol)) continue;
    auto found = TRY(elf::find_functions(code_.elf(), std::vector{elf::FunctionName(symbol)}, stop_));
    const auto own = std::ranges::find(found, body, &Function::address);
    if (own == found.end()) continue;
    own->aliases.push_back(std::exchange(each.symbol, symbol));
    own->name = each.name;
    each = std::move(*own);
  }
  return {};
}

Result<void> FunctionFinder::open_debug_information() {
  auto debug = dwarf::DebugInfo::open(code_.elf(), stop_);
  if (debug) {
    locate::Signatures signatures(*debug);
    debug_.emplace(FileDebug{*std::move(debug), std::move(signatures)});
    copies_.emplace(code_.elf(), debug_->info, stop_);
    return {};
  }
  const Error& why = debug.error();
  if (why.kind == ErrorKind::stopped || why.os_error == ENOMEM) return fail(why);
  file_.no_types = why.message;
  const bool none = why.kind == ErrorKind::not_found || why.kind == ErrorKind::not_supported;
  if (!none) file_.refused = file_.no_types;
  return {};
}

Result<void> FunctionFinder::add_line(const FunctionPattern& pattern) {
  const auto addresses = dwarf::addresses_of_line(debug_->info, pattern.source_file, pattern.line, stop_);
  if (!addresses && addresses.error().kind == ErrorKind::stopped) return fail(addresses.error());
  if (!addresses) return {};
  for (const VirtAddr pc : *addresses) {
    FunctionPoint point;
    point.name = line_text(pattern.source_file, pattern.line);
    point.signature = values_.nothing();
    const auto function = dwarf::function_around(debug_->info, pc);
    if (function) describe(point, *function, pattern);
    if (point.inlined && !pattern.inlined) continue;
    point.source_line = pattern.line;
    place_at_start(code_, point, pc);
    if (function && copies_->is_of_other_code(function->instances.front())) point.refused = kOtherCode;
    if (repeats(code_, point)) notices_.add_repeat(point.name);
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
  if (auto variables = values_.at_line(function, instance, pattern.line)) point.signature = std::move(variables);
}

Result<void> FunctionFinder::add(const Function& function) {
  KnownFunction known;
  bool looked = false;
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    if (!names_[i].matches(function)) continue;
    // It is a part of the function whose name it has, too, whose calls would be counted twice.
    if (is_other_piece(function, patterns_[i].name)) continue;
    if (variants_.is_outer(function.address) && patterns_[i].name != function.symbol) continue;
    if (!std::exchange(looked, true)) known = look_up(function);
    TRY(add(function, known, patterns_[i]));
  }
  return {};
}

KnownFunction FunctionFinder::look_up(const Function& function) {
  if (!debug_) {
    if (!code_.go()) shared_addresses_.note_one_address(function);
    return {values_.untyped(), {}, {}, code_.go().has_value()};
  }
  auto info = dwarf::function_at(debug_->info, function.address, function.symbol);
  if (!info) values_.note_refusal(info.error());
  if (!info || info->instances.empty()) return {values_.untyped(), {}, {}, code_.go().has_value()};
  auto parts = parts_of(info->instances.front());
  if (shared_addresses_.note_folded(function, *info)) return {values_.untyped(), {}, std::move(parts), false};
  return {values_.of(*info, info->instances.front()), info->declared, std::move(parts), code_.go() && info->go};
}

Result<void> FunctionFinder::add(const Function& function, const KnownFunction& known, const FunctionPattern& pattern) {
  FunctionPoint point = point_of(function, known, pattern);
  if (!pattern.args.empty() && pattern.offset == 0 && !code_.go()) {
    if (known.signature->typed)
      typed_anyway_.insert(function.name);
    else
      point.signature = values_.typed_by_hand(pattern.args);
  }
  if (function.ifunc && pattern.offset == 0) {
    const Choices choices = choices_of(file_, function, stop_);
    if (!choices.chosen.empty()) return add_chosen(function, choices, pattern);
    point.refused = fmt::format(
        "what is there only chooses the function (STT_GNU_IFUNC), and {}: name the one that it "
        "chooses",
        choices.why_none);
  }
  if (!is_new(point, function.address + pattern.offset)) {
    note_aliases(function, pattern);
    return {};
  }
  if (pattern.offset != 0) {
    TRY(elf::place_in_function(code_.elf(), function, pattern.offset));
    point.name += offset_text(pattern.offset);
    point.distance = pattern.offset;
    point.signature = values_.nothing();
    place(code_, point, function.address + pattern.offset);
    if (repeats(code_, point)) notices_.add_repeat(point.name);
  } else {
    place_at_start(code_, point, function.address);
    returns_.move_to_cheaper_start(point, function, known);
    returns_.follow_code(point, function, known, pattern.ret_probes);
  }
  file_.functions.push_back(std::move(point));
  note_aliases(function, pattern);
  return {};
}

void FunctionFinder::note_aliases(const Function& function, const FunctionPattern& pattern) {
  if (means_function(pattern, function.name)) return;
  const auto point = std::ranges::find_if(file_.functions, [&](const FunctionPoint& each) {
    return each.moment == pattern.moment && each.distance == pattern.offset &&
           std::string_view(each.name).starts_with(function.name);
  });
  if (point == file_.functions.end()) return;
  for (const std::string& alias : function.aliases) {
    if (!means_function(pattern, alias) || std::ranges::find(point->aliases, alias) != point->aliases.end()) continue;
    point->aliases.push_back(alias);
    one_function_.insert(
        fmt::format("{0} and {1} are one function here: hits of both are told as those of {1}", alias, function.name));
  }
}

Result<void> FunctionFinder::add_chosen(const Function& indirect, const Choices& choices,
                                        const FunctionPattern& pattern) {
  std::vector<std::string> texts;
  for (const Chosen& each : choices.chosen) {
    const bool is_named = each.function.symbol != indirect.symbol;
    texts.push_back(fmt::format("{}{:#x}", is_named ? each.function.symbol + " at " : "", each.function.address.value));
    TRY(add(each.function, look_up(each.function), pattern));
  }
  chosen_.try_emplace(indirect.address, fmt::format("{} ({})", indirect.name, fmt::join(texts, ", ")));
  return {};
}

void FunctionFinder::tell_of_names() {
  for (const std::string& text : one_function_) file_.warnings.push_back({{}, text});
  if (!typed_anyway_.empty())
    file_.warnings.push_back(
        {{},
         fmt::format("debug information knows the types of {}: its own are taken, not those that were said by hand",
                     some_of({typed_anyway_.begin(), typed_anyway_.end()}))});
}

void FunctionFinder::tell_of_chosen() {
  if (chosen_.empty()) return;
  std::vector<std::string> all;
  for (const auto& [address, text] : chosen_) all.push_back(text);
  file_.warnings.push_back(
      {{},
       fmt::format("hits of {} are those of what running processes use: one of several functions, which is chosen when "
                   "a program starts; other names may lead to it, too",
                   some_of(std::move(all)))});
}

FunctionPoint FunctionFinder::point_of(const Function& function, const KnownFunction& known,
                                       const FunctionPattern& pattern) {
  const Moment moment = pattern.moment;
  FunctionPoint point;
  point.moment = moment;
  point.name = function.name;
  point.signature = known.signature;
  point.source_file = known.declared.file;
  point.source_line = known.declared.line;
  if (moment == Moment::entry) return point;
  if (code_.go() || pattern.ret_probes.value_or(false))
    point.returns = known.go ? ReturnBy::goroutine_ret : ReturnBy::instruction;
  point.refused = returns_.why_no_returns(function, point);
  return point;
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
    return std::ranges::any_of(names_, [&](const elf::FunctionName& name) {
      return means(name, function) || (may_be_lambda(info) && name.text().find("lambda") != std::string::npos);
    });
  };
  auto found = dwarf::find_functions(debug_->info, wanted, names_hint(), stop_);
  if (!found && found.error().kind == ErrorKind::stopped) return fail(std::move(found.error()));
  if (!found) {
    file_.refused = std::move(found.error().message);
    return {};
  }
  if (file_.refused.empty()) file_.refused = debug_->info.missing();
  std::erase_if(*found, [&](const dwarf::FunctionInfo& info) {
    const Function function = named(info);
    return std::ranges::none_of(names_, [&](const elf::FunctionName& name) { return means(name, function); });
  });
  const bool may_be_copies = std::ranges::any_of(patterns_, &FunctionPattern::inlined);
  for (const dwarf::FunctionInfo& info : *found) {
    Function function = named(info);
    if (may_be_copies && !code_.go()) copies_->look_at(info);
    for (const dwarf::Instance& instance : info.instances) {
      if (instance.part != dwarf::FunctionPart::whole) {
        copies_->look_at_part(info, instance);
        continue;
      }
      function.address = instance.pc;
      function.size = instance.size;
      add_instance(function, info, instance);
    }
  }
  variants_.leave_out_around_copies(file_.functions);
  if (may_be_copies && !code_.go()) warn_of_repeated(debug_->info, *found, file_);
  copies_->warn(file_);
  if (may_be_copies) warn_of_coroutines(*found, file_);
  return {};
}

dwarf::NameHint FunctionFinder::names_hint() const {
  dwarf::NameHint hint;
  // The debug information of a lambda expression lacks most of its name: no word of it leads there.
  for (const elf::FunctionName& name : names_)
    hint.words.push_back(name.text().find("lambda") == std::string::npos ? name.word_in_symbols() : std::string());
  hint.may_be = [this, demangler = elf::Demangler(kDemangled)](std::string_view symbol) mutable {
    return std::ranges::any_of(names_,
                               [&](const elf::FunctionName& name) { return name.may_match(symbol, demangler); });
  };
  return hint;
}

Function FunctionFinder::named(const dwarf::FunctionInfo& info) {
  Function function;
  function.symbol = info.linkage_name.empty() ? info.qualified : info.linkage_name;
  const elf::Demangled demangled = demangler_.demangle(function.symbol);
  function.name = demangled.name.empty() ? info.qualified : std::string(demangled.name);
  return function;
}

void FunctionFinder::add_instance(const Function& function, const dwarf::FunctionInfo& info,
                                  const dwarf::Instance& instance) {
  const KnownFunction known{values_.of(info, instance), info.declared, parts_of(instance), code_.go() && info.go};
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    if (!means(names_[i], function) || patterns_[i].offset != 0) continue;
    if (instance.inlined && !patterns_[i].inlined) continue;
    if (!instance.inlined && variants_.is_outer(instance.pc)) continue;  // named by a symbol, or left out
    if (instance.inlined && variants_.begins_with_another(function, debug_->info, instance)) continue;
    FunctionPoint point = point_of(function, known, patterns_[i]);
    if (instance.inlined) {
      make_inlined(point, instance, known.go);
      if (const auto meeting = copies_->meeting_of(instance); meeting && point.refused.empty()) {
        place(code_, point, *meeting);
        // Values may have moved since the copy's beginning, where debug information places them.
        point.signature = values_.nothing();
      }
    } else {
      if (!is_new(point, instance.pc)) continue;
      place_at_start(code_, point, instance.pc);
      returns_.follow_code(point, function, known, patterns_[i].ret_probes);
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
  else if (!go && copies_->is_of_other_code(instance))
    point.refused = kOtherCode;
  place(code_, point, instance.pc);
}

}  // namespace usdt::find
