// SPDX-License-Identifier: BSD-2-Clause
#include "find/find_functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "arch/arch.hpp"
#include "base/symbol_name.hpp"
#include "dwarf/debug_info.hpp"
#include "elf/code_reader.hpp"
#include "elf/demangle.hpp"
#include "elf/elf_impl.hpp"
#include "elf/emulated_start.hpp"
#include "elf/function_flow.hpp"
#include "elf/functions.hpp"
#include "elf/go_program.hpp"
#include "elf/unwinding.hpp"
#include "resolve/untyped.hpp"
#include "usdt/select.hpp"

namespace usdt::find {
namespace {

using Signature = std::shared_ptr<const FunctionSignature>;

/// Bytes of names as programmers wrote them, of one file.
constexpr std::size_t kDemangled = std::size_t{16} << 20;

/// Writes "server.c:12".
std::string text_of(const dwarf::SourceLine& line) {
  return line.file.empty() ? std::string("a place not known") : fmt::format("{}:{}", line.file, line.line);
}

/// What begins otherwise than a function does: there is no return address on top of the stack, and the kernel would
/// overwrite something else with its own (argc at _start, what the dynamic linker's resolver is given, a signal frame).
/// vfork() keeps it in a register while its child uses the stack.
bool has_no_return_address(const Function& function) {
  static constexpr std::string_view names[] = {"_start",  "_dl_start_user", "__restore_rt", "__restore",
                                               "__vfork", "vfork",          "__libc_vfork", "__kernel_rt_sigreturn",
                                               "__clone", "clone",          "clone3",       "__clone3"};
  const auto is_one = [](std::string_view symbol) {
    return std::ranges::find(names, symbol) != std::end(names) || symbol.starts_with("_dl_runtime_resolve") ||
           symbol.starts_with("_dl_runtime_profile");
  };
  return is_one(function.symbol) || std::ranges::any_of(function.aliases, is_one);
}

class FunctionFinder {
 public:
  FunctionFinder(const std::vector<FunctionPattern>& patterns, const StopToken& stop, ProbeFile& file)
      : patterns_(patterns),
        stop_(stop),
        file_(file),
        code_(elf::Inside::of(*file.elf)->file, elf::Inside::of(*file.elf)->image),
        go_(elf::go_program(elf::Inside::of(*file.elf)->file, elf::Inside::of(*file.elf)->image)) {
    for (const FunctionPattern& pattern : patterns) names_.emplace_back(pattern.name);
  }

  /// For patterns of lines, which have no names.
  Result<void> run_lines() {
    if (auto opened = open_debug_information(); !opened || !debug_) return opened;
    for (const FunctionPattern& pattern : patterns_)
      if (auto added = add_line(pattern); !added) return added;
    return {};
  }

  Result<void> run() {
    auto found = elf::find_functions(*file_.elf, names_, stop_);
    if (!found) return fail(std::move(found.error()));
    if (auto opened = open_debug_information(); !opened) return opened;
    if (go_ && !go_->by_registers)
      file_.no_types = fmt::format("built by {}: arguments are read of Go 1.18 and later", go_version());
    for (const Function& function : *found)
      if (const auto other = other_half(function.symbol); !other.empty()) halves_[other].push_back(&function);
    for (const Function& function : *found) {
      if (stop_.stop_requested()) return fail(ErrorKind::stopped, "functions were not looked for to the end");
      if (auto added = add(function); !added) return added;
    }
    halves_.clear();
    return debug_ ? add_by_debug_information() : Result<void>{};
  }

 private:
  /// None is no error but in ProbeFile::no_types.
  Result<void> open_debug_information() {
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

  /// Each block of its code. A source file or line that is not known is no error: other files may have it.
  Result<void> add_line(const FunctionPattern& pattern) {
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

  /// The function that a line's block is in, and its variables there.
  void describe(FunctionPoint& point, const dwarf::FunctionInfo& function, const FunctionPattern& pattern) {
    const dwarf::Instance& instance = function.instances.front();
    point.inlined = instance.inlined;
    point.caller = instance.inlined ? instance.caller : named(function).name;
    point.source_file = function.declared.file;
    if (auto variables = debug_->variables(function, instance, pattern.line); variables && !go_)
      point.signature = shared(*std::move(variables));
  }

  Result<void> add(const Function& function) {
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

  /// What debug information says of a function.
  struct Known {
    Signature signature;
    dwarf::SourceLine declared;
    bool go = false;  ///< a function of a Go program is taken for Go's, unless it is known to be another language's
  };

  Known look_up(const Function& function) {
    if (!debug_) return {untyped(), {}, go_.has_value()};
    auto info = debug_->function_at(function.address);
    if (!info) note_refusal(info.error());
    if (!info || info->instances.empty()) return {untyped(), {}, go_.has_value()};
    return {signature_of(*info, info->instances.front()), info->declared, go_ && info->go};
  }

  [[nodiscard]] const elf::Image& image() const noexcept { return elf::Inside::of(*file_.elf)->image; }

  Signature signature_of(const dwarf::FunctionInfo& info, const dwarf::Instance& instance) {
    if (go_ && !go_->by_registers) return nothing();
    auto found = debug_->signature(info, instance);
    if (!found) note_refusal(found.error());
    return found ? shared(*std::move(found)) : untyped();
  }

  /// That what there is was not read, which is not the same as that there is none.
  void note_refusal(const Error& error) {
    if (error.kind == ErrorKind::limit) file_.refused = error.message;
  }

  [[nodiscard]] Signature shared(dwarf::Signature&& found) const {
    return std::make_shared<const FunctionSignature>(FunctionSignature{.args = std::move(found.args),
                                                                       .result = std::move(found.result),
                                                                       .varargs = found.varargs,
                                                                       .typed = true,
                                                                       .pieces = std::move(found.pieces),
                                                                       .result_pieces = std::move(found.result_pieces),
                                                                       .types = debug_->types(),
                                                                       .arg_types = std::move(found.types),
                                                                       .result_type = found.result_type});
  }

  [[nodiscard]] Signature typed_by_hand(std::vector<Type> types) const {
    for (Type& type : types)
      if (type.size == 0) type.size = arch::for_machine(file_.elf->machine()).word_size;
    resolve::UntypedValues values = resolve::hand_typed_function(file_.elf->machine(), types);
    return std::make_shared<const FunctionSignature>(
        FunctionSignature{.args = std::move(values.args), .result = std::move(values.result), .typed = true});
  }

  const Signature& untyped() {
    if (go_) return nothing();
    if (!untyped_) {
      resolve::UntypedValues values = resolve::untyped_function(file_.elf->machine());
      untyped_ = std::make_shared<const FunctionSignature>(
          FunctionSignature{std::move(values.args), std::move(values.result)});
    }
    return untyped_;
  }

  Result<void> add(const Function& function, const Known& known, const FunctionPattern& pattern) {
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
      follow_code(point, function, known.go, pattern.ret_probes);
    }
    file_.functions.push_back(std::move(point));
    return {};
  }

  /// What the instructions of a function say of its entry and returns.
  void follow_code(FunctionPoint& point, const Function& function, bool go, std::optional<bool> ret_probes) {
    const bool by_instructions = point.returns != ReturnBy::probe;
    const bool may_be = !by_instructions && point.moment != Moment::entry && point.refused.empty() && !ret_probes &&
                        may_be_left_by_exceptions();
    if (!go && !by_instructions && !may_be) return;
    const auto flow = elf::flow_of(*file_.elf, function, halves_of(function));
    if (flow && go && flow->checked) place(point, *flow->checked);
    if (may_be) return let_exceptions_pass(point, function, flow);
    if (by_instructions && point.refused.empty()) take_returns(point, function, flow);
  }

  [[nodiscard]] std::vector<const Function*> halves_of(const Function& function) const {
    const auto halves = halves_.find(function.symbol);
    return halves != halves_.end() ? halves->second : std::vector<const Function*>();
  }

  /// From an instruction that the kernel steps to one that it emulates, where that is the same. Debug information with
  /// parameters tells that a compiler made the code. Go's functions are entered again where the stack has grown.
  void move_to_cheaper_start(FunctionPoint& point, const Function& function, const Known& known) {
    if (point.site_class != SiteClass::single_step || go_ || !known.signature->typed || !point.refused.empty()) return;
    const auto there = elf::emulated_start(*file_.elf, function, halves_of(function), point.pc);
    if (!there) return;
    point.moved = static_cast<std::uint8_t>(there->value - point.pc.value);
    place(point, *there);
  }

  void take_returns(FunctionPoint& point, const Function& function, const Result<elf::FunctionFlow>& flow) {
    auto rets = flow ? rets_of(*flow) : fail(flow.error());
    if (!rets) {
      point.refused = std::move(rets.error().message);
      return;
    }
    point.rets = *std::move(rets);
    if (flow->jumps_away > 0)
      file_.warnings.push_back({{},
                                fmt::format("{}: jumps to other functions ({} times), which return in its place "
                                            "unseen",
                                            function.name, flow->jumps_away)});
  }

  /// Where programs can run before each of its RET instructions.
  Result<std::vector<FileOffset>> rets_of(const elf::FunctionFlow& flow) {
    if (flow.returns.empty())
      return fail(ErrorKind::not_supported, "it has no RET instruction: it never returns, or by other functions");
    std::vector<FileOffset> rets;
    for (const VirtAddr at : flow.returns) {
      const elf::Code code = code_.at(at);
      const std::span bytes(code.bytes.data.data(), code.bytes.size);
      if (const auto why = arch::uprobe_refusal(file_.elf->machine(), bytes); !why.empty() || !code.offset)
        return fail(ErrorKind::not_supported,
                    fmt::format("no probe can be put on its RET instruction at {:#x}: {}", at.value, why));
      rets.push_back(*code.offset);
    }
    return rets;
  }

  /// The kernel's probe takes the place of the return address, by which the unwinder of an exception finds callers. RET
  /// instructions have probes instead, unless a return would be lost by it.
  void let_exceptions_pass(FunctionPoint& point, const Function& function, const Result<elf::FunctionFlow>& flow) {
    if (flow && !flow->calls && flow->jumps_away == 0 && flow->jumps_by_value == 0) return;  // nobody throws there
    if (flow && flow->jumps_away == 0 && flow->jumps_by_value == 0) {
      if (auto rets = rets_of(*flow)) {
        point.returns = ReturnBy::instruction;
        point.rets = *std::move(rets);
        return;
      }
    }
    warn_of_exceptions(function.name);
  }

  bool may_be_left_by_exceptions() {
    if (!unwinds_) unwinds_ = elf::may_unwind(elf::Inside::of(*file_.elf)->file, image());
    return *unwinds_;
  }

  void warn_of_exceptions(std::string_view name) {
    if (std::exchange(warned_of_exceptions_, true)) return;
    file_.warnings.push_back({{},
                              fmt::format("an exception that leaves {} ends the program, since the kernel's return "
                                          "probes hide its callers; with --ret-probes it does not, and what returns by "
                                          "a jump to another function is not seen",
                                          name)});
  }

  /// A point of `function`, not placed yet.
  [[nodiscard]] FunctionPoint point_of(const Function& function, const Known& known, const FunctionPattern& pattern) {
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
    if (point.refused.empty() && pattern.ret_probes == false && !go_ && may_be_left_by_exceptions())
      warn_of_exceptions(function.name);
    return point;
  }

  [[nodiscard]] std::string go_version() const { return go_->version.empty() ? "a Go before 1.18" : go_->version; }

  /// Empty: a program may run where the function returns.
  [[nodiscard]] std::string why_no_returns(const Function& function, const FunctionPoint& point) const {
    const bool is_entry_point = image().entry == function.address.value;
    if (point.moment == Moment::both && point.returns == ReturnBy::goroutine_ret && !go_->by_registers)
      return fmt::format(
          "built by {}: the goroutine, by which the ends of a call are told, is known of Go 1.18 and later",
          go_version());
    if (is_cold_half(function.symbol))
      return "it is the unlikely half of another function, which jumps there: it has no return of its own";
    if (point.returns != ReturnBy::probe) return {};
    if (is_entry_point || has_no_return_address(function))
      return "it is not called as a function: the kernel would overwrite what is not a return address";
    return {};
  }

  /// Behind the first instructions, registers and stack are no longer as the caller left them. Go has a calling
  /// convention of its own.
  const Signature& nothing() {
    if (!nothing_) nothing_ = std::make_shared<const FunctionSignature>();
    return nothing_;
  }

  /// Puts the point on the instruction at `pc`.
  void place(FunctionPoint& point, VirtAddr pc) {
    point.pc = pc;
    const elf::Code code = code_.at(pc);
    point.offset = code.offset;
    point.bytes = code.bytes;
    point.site_class = code.site_class;
  }

  /// The function's first instruction, behind one that only allows indirect jumps.
  void place_at_start(FunctionPoint& point, VirtAddr address) {
    place(point, address);
    const std::span bytes(point.bytes.data.data(), point.bytes.size);
    if (const std::uint8_t pad = arch::landing_pad(file_.elf->machine(), bytes); pad != 0) place(point, address + pad);
  }

  /// Whether no point of that moment was added yet. `start`: before what it is placed behind.
  bool is_new(const FunctionPoint& point, VirtAddr start) {
    const bool has_own_name = point.inlined || point.name.starts_with('@');
    return taken_.emplace(point.moment, start.value, has_own_name ? point.name : "").second;
  }

  /// Copies inlined into other functions, and functions whose symbol says another name ("handle.isra.0").
  Result<void> add_by_debug_information() {
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
    auto found = debug_->functions(wanted, stop_);
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
    return {};
  }

  /// The function as a symbol table would name it.
  Function named(const dwarf::FunctionInfo& info) {
    Function function;
    function.symbol = info.linkage_name.empty() ? info.name : info.linkage_name;
    const elf::Demangled demangled = demangler_.demangle(function.symbol);
    function.name = demangled.name.empty() ? info.qualified : std::string(demangled.name);
    return function;
  }

  void add_instance(const Function& function, const dwarf::FunctionInfo& info, const dwarf::Instance& instance) {
    const Known known{signature_of(info, instance), info.declared, go_ && info.go};
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
      if (!names_[i].matches(function) || patterns_[i].offset != 0) continue;
      if (instance.inlined && !patterns_[i].inlined) continue;
      FunctionPoint point = point_of(function, known, patterns_[i]);
      if (instance.inlined) {
        make_inlined(point, instance, known.go);
      } else {
        if (!is_new(point, instance.pc)) continue;
        place_at_start(point, instance.pc);
        follow_code(point, function, known.go, patterns_[i].ret_probes);
      }
      if (!instance.inlined || is_new(point, instance.pc)) file_.functions.push_back(std::move(point));
    }
  }

  void make_inlined(FunctionPoint& point, const dwarf::Instance& instance, bool go) {
    point.inlined = true;
    point.caller = instance.caller;
    const std::string_view why = point.moment != Moment::entry ? "where it does not return"
                                 : go                          ? "and Go does not tell where such a copy begins"
                                                               : "";
    if (!why.empty())
      point.refused = fmt::format("inlined into {} at {}, {}", instance.caller, text_of(instance.where_called), why);
    place(point, instance.pc);
  }

  const std::vector<FunctionPattern>& patterns_;
  const StopToken& stop_;
  ProbeFile& file_;
  elf::CodeReader code_;
  std::optional<elf::GoProgram> go_;
  elf::Demangler demangler_{kDemangled};
  std::vector<elf::FunctionName> names_;  ///< of patterns_
  std::optional<dwarf::DebugInfo> debug_;
  Signature untyped_;
  Signature nothing_;
  std::map<std::string_view, std::vector<const Function*>> halves_;  ///< elsewhere, by the symbol of the function
  std::optional<bool> unwinds_;
  bool warned_of_exceptions_ = false;
  std::set<std::tuple<Moment, std::uint64_t, std::string>> taken_;
};

}  // namespace

Result<void> add_functions(const std::vector<FunctionPattern>& patterns, const StopToken& stop, ProbeFile& file) {
  const auto is_line = [](const FunctionPattern& pattern) { return !pattern.source_file.empty(); };
  std::vector<FunctionPattern> lines;
  std::vector<FunctionPattern> names;
  std::ranges::copy_if(patterns, std::back_inserter(lines), is_line);
  std::ranges::copy_if(patterns, std::back_inserter(names), std::not_fn(is_line));
  if (!names.empty()) {
    if (auto found = FunctionFinder(names, stop, file).run(); !found) return found;
  }
  return lines.empty() ? Result<void>() : FunctionFinder(lines, stop, file).run_lines();
}

std::string why_no_line(const ElfFile& file, const FunctionPattern& pattern, const StopToken& stop) {
  const auto debug = dwarf::DebugInfo::open(file, stop);
  // Of all that is mapped, most files have none.
  if (!debug) return means_everything(pattern.target) ? std::string() : debug.error().message;
  const auto addresses = debug->addresses_of_line(pattern.source_file, pattern.line, stop);
  if (!addresses) return addresses.error().message;
  if (!addresses->empty()) return {};
  const auto next = debug->next_line_with_code(pattern.source_file, pattern.line, stop);
  return fmt::format("there is no code at {}:{}{}", pattern.source_file, pattern.line,
                     next ? fmt::format("; the next line with code is {}", *next) : ", nor behind it");
}

}  // namespace usdt::find

namespace usdt {
inline namespace v1 {

Result<std::shared_ptr<const TypeGraph>> file_types(const ElfFile& file, const StopToken& stop) {
  const auto debug = dwarf::DebugInfo::open(file, stop);
  if (!debug) return fail(debug.error());
  return debug->types();
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
