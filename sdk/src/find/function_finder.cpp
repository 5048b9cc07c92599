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
#include "arch/patch_room.hpp"
#include "base/symbol_name.hpp"
#include "base/try.hpp"
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
  return name.matches(function) || (function.name != function.symbol && !elf::may_be_mangled(function.symbol) &&
                                    name.matches_name(function.name));
}

/// Whether the function is a piece of another one ("work.part.0") that `pattern` does not mean by its own name. A name
/// that is not mangled may have such a word of itself (Go's main.resume); no language writes ".cold" or ".part.0".
bool is_other_piece(const Function& function, std::string_view pattern) {
  const std::string_view piece = piece_suffix(function.symbol);
  if (piece.empty() || pattern.find(piece) != pattern.npos) return false;
  return piece == ".cold" || piece == ".part" || elf::may_be_mangled(function.symbol);
}

/// "a has the code of b; c has the code of d; ...; and so have 5 others: WHY".
std::string one_notice(const std::vector<std::string>& said, std::string_view so, std::string_view why) {
  const auto [shown, others] = first_ones(said, "; ");
  return fmt::format("{}{}: {}", shown, others == 0 ? "" : fmt::format("; and {} {} others", so, others), why);
}

}  // namespace

Result<void> FunctionFinder::run_lines() {
  if (auto opened = open_debug_information(); !opened || !debug_) return opened;
  for (const FunctionPattern& pattern : patterns_) TRY(add_line(pattern));
  tell_of_code();
  return {};
}

Result<void> FunctionFinder::run() {
  auto found = TRY(elf::find_functions(*file_.elf, names_, stop_));
  TRY(open_debug_information());
  if (go_ && !go_->by_registers)
    file_.no_types = fmt::format("built by {}: arguments are read of Go 1.18 and later", go_version());
  TRY(take_bodies_of_entries(found));
  TRY(find_folded(found));
  find_variants(found);
  for (const Function& function : found) {
    if (stop_.stop_requested()) return fail(ErrorKind::stopped, "functions were not looked for to the end");
    TRY(add(function));
  }
  warn_of_folded();
  warn_of_one_address();
  auto added = debug_ ? add_by_debug_information() : Result<void>{};
  tell_of_code();
  tell_of_chosen();
  return added;
}

Result<void> FunctionFinder::take_bodies_of_entries(std::vector<Function>& functions) {
  const Machine machine = file_.elf->machine();
  if (go_ || !arch::knows_instructions(machine)) return {};
  for (Function& each : functions) {
    const auto code = std::span(each.bytes.data).first(each.bytes.size).subspan(each.landing_pad);
    const arch::Instruction first = arch::decode_instruction(machine, code);
    if (first.flow != arch::Flow::jump || !first.target) continue;
    const VirtAddr body = each.address + each.landing_pad + static_cast<std::uint64_t>(*first.target);
    const std::string symbol = each.symbol + ".cfi";
    if (!pieces().is_called(body, symbol)) continue;
    auto found = TRY(elf::find_functions(*file_.elf, std::vector{elf::FunctionName(symbol)}, stop_));
    const auto own = std::ranges::find(found, body, &Function::address);
    if (own == found.end()) continue;
    own->aliases.push_back(std::exchange(each.symbol, symbol));
    own->name = each.name;
    each = std::move(*own);
  }
  return {};
}

Result<void> FunctionFinder::open_debug_information() {
  auto debug = dwarf::DebugInfo::open(*file_.elf, stop_);
  if (debug) {
    debug_.emplace(*std::move(debug));
    signatures_.emplace(*debug_);
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
  const auto addresses = dwarf::addresses_of_line(*debug_, pattern.source_file, pattern.line, stop_);
  if (!addresses && addresses.error().kind == ErrorKind::stopped) return fail(addresses.error());
  if (!addresses) return {};
  for (const VirtAddr pc : *addresses) {
    FunctionPoint point;
    point.name = line_text(pattern.source_file, pattern.line);
    point.signature = nothing();
    const auto function = dwarf::function_around(*debug_, pc);
    if (function) describe(point, *function, pattern);
    if (point.inlined && !pattern.inlined) continue;
    point.source_line = pattern.line;
    place_at_start(point, pc);
    if (function && is_of_other_code(function->instances.front())) point.refused = kOtherCode;
    if (repeats(point)) repeat_.push_back(point.name);
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
  if (auto variables = signatures_->with_variables(function, instance, pattern.line); variables && !go_)
    point.signature = shared(*std::move(variables));
}

Result<void> FunctionFinder::add(const Function& function) {
  Known known;
  bool looked = false;
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    if (!names_[i].matches(function)) continue;
    // It is a part of the function whose name it has, too, whose calls would be counted twice.
    if (is_other_piece(function, patterns_[i].name)) continue;
    if (outer_variants_.contains(function.address) && patterns_[i].name != function.symbol) continue;
    if (!std::exchange(looked, true)) known = look_up(function);
    TRY(add(function, known, patterns_[i]));
  }
  return {};
}

std::vector<std::string> FunctionFinder::other_names(const Function& function) {
  const auto written = [this](const std::string& symbol) {
    const elf::Demangled demangled = demangler_.demangle(symbol);
    return demangled.name.empty() ? symbol : std::string(demangled.name);
  };
  std::vector<std::string> names;
  // (A constructor and its base part are one to who reads their names.)
  for (const std::string& alias : function.aliases)
    if (piece_suffix(alias).empty() && written(alias) != function.name) names.push_back(alias);
  return names;
}

Result<void> FunctionFinder::find_folded(const std::vector<Function>& functions) {
  if (!debug_ || go_) return {};
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
  auto defined = TRY(dwarf::find_defined(*debug_, names, addresses, stop_));
  defined_.insert(defined.begin(), defined.end());
  return {};
}

bool FunctionFinder::tell_folded(const Function& function, const dwarf::FunctionInfo& info) {
  const std::string& own = info.linkage_name.empty() ? info.name : info.linkage_name;
  std::vector<std::string> others;
  for (const std::string& each : other_names(function))
    if (each != own && defined_.contains(each)) others.push_back(each);
  const bool is_another = own != function.symbol && defined_.contains(function.symbol);
  if (is_another) others.push_back(own);
  if (others.empty()) return false;
  for (std::string& each : others)
    if (const elf::Demangled demangled = demangler_.demangle(each); !demangled.name.empty()) each = demangled.name;
  folded_.push_back(fmt::format("{} has the code of {}", function.name, fmt::join(others, ", ")));
  return is_another;
}

namespace {

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

void FunctionFinder::note_one_address(const Function& function) {
  if (!function.version.empty()) return;
  std::vector<std::string> others;
  for (const std::string& each : other_names(function)) {
    if (is_spelling(each, function.symbol)) continue;
    const elf::Demangled demangled = demangler_.demangle(each);
    others.push_back(demangled.name.empty() ? each : std::string(demangled.name));
  }
  if (!others.empty())
    one_address_.push_back(fmt::format("{} is at the address of {}", function.name, fmt::join(others, ", ")));
}

void FunctionFinder::warn_of_one_address() {
  if (one_address_.empty()) return;
  file_.warnings.push_back({{},
                            one_notice(one_address_, "so are",
                                       "two names of one function, or equal code that was made one; without debug "
                                       "information nobody tells; hits are calls of each of them")});
}

void FunctionFinder::warn_of_folded() {
  if (folded_.empty()) return;
  file_.warnings.push_back({{},
                            one_notice(folded_, "so have",
                                       "their code is equal, and the compiler or the linker made it one; hits are "
                                       "calls of each of them")});
}

FunctionFinder::Known FunctionFinder::look_up(const Function& function) {
  if (!debug_) {
    if (!go_) note_one_address(function);
    return {untyped(), {}, {}, go_.has_value()};
  }
  auto info = dwarf::function_at(*debug_, function.address, function.symbol);
  if (!info) note_refusal(info.error());
  if (!info || info->instances.empty()) return {untyped(), {}, {}, go_.has_value()};
  auto parts = parts_of(info->instances.front());
  if (tell_folded(function, *info)) return {untyped(), {}, std::move(parts), false};
  return {signature_of(*info, info->instances.front()), info->declared, std::move(parts), go_ && info->go};
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
  if (function.ifunc && pattern.offset == 0) {
    const Choices choices = choices_of(file_, function, stop_);
    if (!choices.chosen.empty()) return add_chosen(function, choices, pattern);
    point.refused = fmt::format(
        "what is there only chooses the function (STT_GNU_IFUNC), and {}: name the one that it "
        "chooses",
        choices.why_none);
  }
  if (!is_new(point, function.address + pattern.offset)) return {};
  if (pattern.offset != 0) {
    TRY(elf::place_in_function(*file_.elf, function, pattern.offset));
    point.name += offset_text(pattern.offset);
    point.distance = pattern.offset;
    point.signature = nothing();
    place(point, function.address + pattern.offset);
    if (repeats(point)) repeat_.push_back(point.name);
  } else {
    place_at_start(point, function.address);
    move_to_cheaper_start(point, function, known);
    follow_code(point, function, known, pattern.ret_probes);
  }
  file_.functions.push_back(std::move(point));
  return {};
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
  const auto bytes = [&point] { return std::span(point.bytes.data.data(), point.bytes.size); };
  if (const std::uint8_t pad = arch::landing_pad(file_.elf->machine(), bytes()); pad != 0) {
    place(point, address + pad);
    // (Behind it may be an instruction that takes no breakpoint.)
    if (arch::uprobe_refusal(file_.elf->machine(), bytes()).empty())
      address = address + pad;
    else
      place(point, address);
  }
  // What is patched at run time is no place for a breakpoint.
  if (const std::uint8_t room = arch::patch_room(file_.elf->machine(), bytes()); room != 0)
    place(point, address + room);
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
  auto found = dwarf::find_functions(*debug_, wanted, names_hint(), stop_);
  if (!found && found.error().kind == ErrorKind::stopped) return fail(std::move(found.error()));
  if (!found) {
    file_.refused = std::move(found.error().message);
    return {};
  }
  if (file_.refused.empty()) file_.refused = debug_->missing();
  std::erase_if(*found, [&](const dwarf::FunctionInfo& info) {
    const Function function = named(info);
    return std::ranges::none_of(names_, [&](const elf::FunctionName& name) { return means(name, function); });
  });
  for (const dwarf::FunctionInfo& info : *found) {
    Function function = named(info);
    look_at_ways(info);
    for (const dwarf::Instance& instance : info.instances) {
      if (instance.part != dwarf::FunctionPart::whole) {
        look_at_part(info, instance);
        continue;
      }
      function.address = instance.pc;
      function.size = instance.size;
      add_instance(function, info, instance);
    }
  }
  leave_out_variants_around_copies();
  warn_of_repeated(*found);
  warn_of_ways();
  warn_of_coroutines(*found);
  return {};
}

void FunctionFinder::warn_of_coroutines(const std::vector<dwarf::FunctionInfo>& functions) {
  if (std::ranges::none_of(patterns_, &FunctionPattern::inlined)) return;
  std::vector<std::string> all;
  for (const dwarf::FunctionInfo& each : functions) {
    // (GCC's, which have no name for the linker, always keep what makes a coroutine.)
    if (each.linkage_name.empty()) continue;
    std::set<std::string> callers;
    for (const dwarf::Instance& one : each.instances)
      if (one.inlined && one.part == dwarf::FunctionPart::coroutine) callers.insert(one.caller);
    if (!callers.empty())
      all.push_back(fmt::format("{} (in {})", each.qualified, some_of({callers.begin(), callers.end()})));
  }
  if (!all.empty())
    file_.warnings.push_back({{},
                              fmt::format("calls may be missed of {}: where the compiler knows all that a coroutine "
                                          "does, it may leave nothing of its call",
                                          some_of(std::move(all)))});
}

void FunctionFinder::warn_of_repeated(const std::vector<dwarf::FunctionInfo>& functions) {
  if (go_ || std::ranges::none_of(patterns_, &FunctionPattern::inlined)) return;
  std::size_t copies = 0;
  std::vector<std::string> names;
  for (const dwarf::FunctionInfo& each : functions) {
    const auto repeated = std::ranges::count_if(
        each.instances, [&](const dwarf::Instance& one) { return dwarf::is_repeated(*debug_, each, one); });
    copies += static_cast<std::size_t>(repeated);
    if (repeated > 0) names.push_back(each.qualified);
  }
  if (names.empty()) return;
  file_.warnings.push_back({{},
                            fmt::format("calls may be missed of {} inlined {} ({}) that the compiler may have "
                                        "repeated, as in a loop that it unrolled: debug information tells one place",
                                        copies, copies == 1 ? "copy" : "copies", some_of(std::move(names)))});
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
  function.symbol = info.linkage_name.empty() ? info.name : info.linkage_name;
  const elf::Demangled demangled = demangler_.demangle(function.symbol);
  function.name = demangled.name.empty() ? info.qualified : std::string(demangled.name);
  return function;
}

void FunctionFinder::add_instance(const Function& function, const dwarf::FunctionInfo& info,
                                  const dwarf::Instance& instance) {
  const Known known{signature_of(info, instance), info.declared, parts_of(instance), go_ && info.go};
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    if (!means(names_[i], function) || patterns_[i].offset != 0) continue;
    if (instance.inlined && !patterns_[i].inlined) continue;
    if (!instance.inlined && outer_variants_.contains(instance.pc)) continue;  // named by a symbol, or left out
    if (instance.inlined && begins_with_variant(function, instance)) continue;
    FunctionPoint point = point_of(function, known, patterns_[i]);
    if (instance.inlined) {
      make_inlined(point, instance, known.go);
      come_by_all_ways(point, instance);
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
  else if (!go && is_of_other_code(instance))
    point.refused = kOtherCode;
  place(point, instance.pc);
}

}  // namespace usdt::find
