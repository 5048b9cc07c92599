// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/symbolizer.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <variant>

#include "arch/arch.hpp"
#include "base/try.hpp"
#include "stack/java_name.hpp"
#include "stack/place_scripts.hpp"
#include "stack/process.hpp"
#include "stack/v8_name.hpp"
#include "stack/walk.hpp"
#include "usdt/clock.hpp"
#include "usdt/kernel_symbols.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using stack::Area;
using stack::Period;
using stack::Process;

/// Whether the hit is on an instruction that returns. What is kept of a call is of its entry.
bool is_on_return(const Event& event) {
  const auto* place = std::get_if<FilePlace>(&event.site().point);
  return place != nullptr && !place->rets.empty() && event.probe().function == Moment::exit;
}

/// On a RET instruction the function has not returned yet.
bool is_at_return(const Event& event) {
  const std::string_view prefix = event.probe().provider;
  const auto* place = std::get_if<FilePlace>(&event.site().point);
  if (place != nullptr && !place->rets.empty()) return false;
  const bool of_kernel = !event.probe().file && (prefix == "kretfunc" || prefix == "kretprobe" || prefix == "fexit");
  return of_kernel || event.probe().function == Moment::exit;
}

stack::Hit hit_of(const Event& event, Process& process, Process& scripts_of) {
  stack::Hit hit{.when = Period::at(event.timestamp())};
  hit.machine = machine_of(event.plan(), event.site());
  if (!event.script().frames.empty()) hit.kept = scripts_of.scripts(true).loop_registers();
  if (std::holds_alternative<FilePlace>(event.site().point)) {
    hit.returns = is_at_return(event);
    hit.on_return = is_on_return(event);
    hit.at_entry = event.probe().function && !hit.returns && !hit.on_return && event.probe().distance == 0;
    return hit;
  }
  // The program tells the machine of a hit in the kernel: a 64-bit kernel runs 32-bit programs, too.
  const auto stack = event.user_stack();
  if (!stack || stack->addresses.empty()) return hit;
  const Area* area = process.find(stack->addresses.front());
  if (area != nullptr && area->module) hit.machine = area->module->machine();
  return hit;
}

std::vector<Frame> without_names(const Area* area, const Process& process) {
  Frame frame;
  if (area == nullptr)
    frame.issue = process.why_unknown();
  else
    frame.issue = area->is_return_probe()           ? FrameIssue::return_probe
                  : area->issue != FrameIssue::none ? area->issue
                                                    : FrameIssue::no_file;
  if (area != nullptr) {
    frame.module = area->name;
    frame.detail = area->detail;
  }
  return {frame};
}

std::string time_of_day(std::int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  struct tm parts {};
  std::array<char, 16> text{};
  const std::size_t size =
      ::localtime_r(&time, &parts) != nullptr ? std::strftime(text.data(), text.size(), "%H:%M:%S", &parts) : 0;
  return {text.data(), size};
}

/// Names code of a JIT compiler as its perf map does.
void add_name(Frame& frame, const stack::PerfMap::Found& found) {
  frame.issue = found.uncertain ? FrameIssue::code_replaced : FrameIssue::none;
  frame.detail = found.other;
  frame.function = found.name;
  frame.distance = found.distance;
  if (stack::is_java_method(found.name)) frame.language = "java";
  // Other code, such as the interpreter's, stays where it is.
  if (found.listed_at && !found.uncertain && !frame.language.empty()) {
    frame.issue = FrameIssue::code_listed;
    frame.detail = "written at " + time_of_day(*found.listed_at);
  }
  const auto script = stack::parse_v8_name(found.name);
  if (!script) return;
  frame.language = "javascript";
  frame.function = script->function.empty() ? "(anonymous)" : script->function;
  frame.source = script->file;
  frame.definition_line = script->file.empty() ? 0 : script->line;
  frame.definition_column = script->file.empty() ? 0 : script->column;
  frame.tier = script->tier;
}

/// Interpreters of runtimes are one function for all that they run.
void say_what_is_interpreted(Frame& frame) {
  constexpr std::string_view of_file = "Builtins_", of_map = "Builtin:";
  std::string_view name = frame.function;
  if (name == "Interpreter" && frame.module.empty()) {
    frame.issue = FrameIssue::script_unnamed;
    frame.detail = "OpenJDK's interpreter runs it";
    return;
  }
  if (!name.starts_with(of_file) && !name.starts_with(of_map)) return;
  name.remove_prefix(name.starts_with(of_file) ? of_file.size() : of_map.size());
  if (!name.starts_with("InterpreterEnt") && !name.starts_with("BaselineOrInterpreterEnter")) return;
  frame.issue = FrameIssue::script_unnamed;
  // The deoptimizer makes frames of the interpreter, and those return to the one function that has no copies.
  frame.detail =
      "V8 names it with --perf-basic-prof and --interpreted-frames-native-stack, unless its optimized code was given "
      "up";
}

/// The functions of a script as they are shown, by their number in the record; nothing: it is none, or has not begun.
using ScriptFrames = std::vector<std::optional<Frame>>;

/// Before all else: native functions have their names and callers from files, which stay, and those of scripts have
/// them from the process, while it lives. What it has mapped takes longer to read, and is for native functions. The
/// outermost ones come first: CPython frees what a script has outside of functions after its last line.
ScriptFrames read_scripts(const RecordedScript& script, Process& process) {
  ScriptFrames frames(script.frames.size());
  for (std::size_t n = frames.size(); n-- > 0;)
    if ((script.frames[n].flags & USDT_SCRIPT_MARK) == 0) frames[n] = process.scripts(true).frame_of(script.frames[n]);
  return frames;
}

/// The language of functions of scripts, as frames name it.
std::string_view language_of(const RecordedScript& script) {
  switch (script.runtime) {
    case USDT_RUNTIME_CPYTHON:
      return "python";
    case USDT_RUNTIME_PHP:
      return "php";
    case USDT_RUNTIME_RUBY:
      return "ruby";
    default:
      return "";
  }
}

/// Keys of rows have native functions alone, of a process that runs scripts: of a thread that runs one there is the
/// interpreter's loop, unless callers are missing.
void say_what_a_row_lacks(Stack& stack) {
  const bool runs = std::ranges::any_of(stack.frames, [](const Frame& frame) {
    return frame.function.starts_with("_PyEval_EvalFrameDefault") || frame.function == "execute_ex" ||
           frame.function == "rb_vm_exec";
  });
  if (!runs && stack.end == FrameIssue::none) return;
  Frame& frame = stack.frames.emplace_back();
  frame.issue = FrameIssue::script_unread;
  frame.detail = "rows have native functions alone; --ustack beside --by has them";
}

/// Makes the stack of one event: native functions, and those of scripts where they belong.
template <class Impl>  // Symbolizer::Impl, which has no name here
class StackMaker {
 public:
  StackMaker(Impl& impl, const Event& event, Process& process, Process& scripts_of, ScriptFrames scripts)
      : impl_(impl),
        event_(event),
        process_(process),
        scripts_of_(scripts_of),
        scripts_(std::move(scripts)),
        script_(event.script()),
        most_(event.layout().user_stack_depth) {}

  [[nodiscard]] Stack make(const stack::Walked& walked) {
    stack_.end = walked.end;
    if (script_.frames.empty()) add_script_issue();
    for (const stack::Place& place : placed(walked)) {
      if (stack_.end == FrameIssue::depth_reached && functions_ >= most_) break;
      if (place.issue != FrameIssue::none)
        stack_.frames.emplace_back().issue = place.issue;
      else if (place.step != nullptr)
        add_native(*place.step);
      else
        add_scripts(place.scripts);
    }
    return std::move(stack_);
  }

 private:
  [[nodiscard]] std::vector<stack::Place> placed(const stack::Walked& walked) {
    if (!script_.frames.empty() && scripts_of_.scripts(true).loop_registers())
      return place_by_registers(walked, script_.frames);
    const std::string_view loop = script_.frames.empty() ? "" : scripts_of_.scripts(true).loop();
    if (loop.empty()) return place_scripts(walked, script_.frames);
    return place_by_loops(walked, script_.frames, [&](const stack::Step& step) {
      const Area* area = process_.find(step.lookup());
      if (area == nullptr || !area->module) return false;
      const auto linked = area->module->address_of(FileOffset(step.lookup() - area->start + area->offset));
      return linked && area->module->functions_at(*linked).back().function == loop;
    });
  }

  void add_native(const stack::Step& step) {
    if (step.issue != FrameIssue::none) {
      stack_.frames.emplace_back().issue = step.issue;
      return;
    }
    if (!make_room()) return;
    const bool is_hit_of_nobody = &process_ == &impl_.nobody && stack_.frames.empty();
    auto known = is_hit_of_nobody ? impl_.frames_of_site(event_, step) : std::nullopt;
    auto frames = known ? std::move(*known) : impl_.frames(process_, step, Period::at(event_.timestamp()));
    std::ranges::move(frames, std::back_inserter(stack_.frames));
  }

  void add_scripts(std::span<const usdt_script_frame> scripts) {
    for (const usdt_script_frame& script : scripts) {
      auto& frame = scripts_[static_cast<std::size_t>(&script - script_.frames.data())];
      if (frame && !make_room()) return;
      if (frame) {
        frame->language = language_of(script_);
        stack_.frames.push_back(std::move(*frame));
      }
      if (&script == &script_.frames.back()) add_script_issue();
    }
  }

  /// Counts one more function; false: there are as many as were asked for.
  bool make_room() {
    if (functions_ >= most_) {
      stack_.end = FrameIssue::depth_reached;
      return false;
    }
    ++functions_;
    return true;
  }

  /// Says why there are no more functions of the script, where that is not their end.
  void add_script_issue() {
    switch (script_.state) {
      case USDT_SCRIPT_NONE:
      case USDT_SCRIPT_OTHER_IMAGE:
        if (event_.layout().script_depth > 0 && scripts_of_.scripts(false).are_known())
          add(FrameIssue::script_late, "");
        break;
      case USDT_SCRIPT_COMPLETE:
      case USDT_SCRIPT_OTHER_THREAD:
        break;
      case USDT_SCRIPT_CUT:
        add(FrameIssue::script_cut, "");
        break;
      case USDT_SCRIPT_UNREADABLE:
        add(FrameIssue::script_unread, "the next one's memory could not be read (paged out, or not there)");
        break;
      case USDT_SCRIPT_INCONSISTENT:
        add(FrameIssue::script_unread, "the next one does not fit to those before");
        break;
      case USDT_SCRIPT_MOST_THREADS:
        add(FrameIssue::script_unread, "the interpreter has more threads than are looked at");
        break;
    }
  }
  void add(FrameIssue issue, std::string_view detail) {
    Frame& frame = stack_.frames.emplace_back();
    frame.issue = issue;
    frame.detail = detail;
  }

  Impl& impl_;
  const Event& event_;
  Process& process_;
  Process& scripts_of_;  ///< what has the names of its scripts, which `process_` does not if it has ended
  ScriptFrames scripts_;
  const RecordedScript script_;
  const std::size_t most_;
  std::size_t functions_ = 0;
  Stack stack_;
};

}  // namespace

struct Symbolizer::Impl {
  explicit Impl(SymbolizerOptions o) : options(std::move(o)), processes(options), nobody({}, processes.modules()) {}

  /// The process as it was at the hit, as far as can be told: what is mapped where the site is has to be its file. Else
  /// it ended, or became another program since.
  Process& process_of(const Event& event) {
    Process& process = processes.of(static_cast<pid_t>(event.pid()));
    if (!fits(event, process)) process.read_again();
    const bool fits_now = fits(event, process);
    if (fits_now && !may_lack_some(event, process)) return process;
    Process& past = processes.at(static_cast<pid_t>(event.pid()), event.timestamp());
    if (fits(event, past) && (!fits_now || knows_more(past, process, event))) return past;
    return fits_now ? process : nobody;
  }
  /// What has the names of the process's scripts, though it may have ended, and what it had mapped be in another.
  Process& scripts_of(const Event& event) { return processes.unread(static_cast<pid_t>(event.pid())); }
  /// Reads the functions of a script of an event that is named later: other code may be in their places by then.
  void keep_scripts(const Event& event) {
    constexpr std::size_t most = 512;
    if (event.script().frames.empty()) return;
    if (kept_scripts.size() == most) kept_scripts.erase(kept_scripts.begin());
    kept_scripts[{event.timestamp(), event.tid()}] = read_scripts(event.script(), scripts_of(event));
  }
  ScriptFrames script_frames(const Event& event) {
    const auto kept = kept_scripts.find({event.timestamp(), event.tid()});
    const bool is_its = kept != kept_scripts.end() && kept->second.size() == event.script().frames.size();
    return is_its ? kept->second : read_scripts(event.script(), scripts_of(event));
  }
  /// Where the process entered the kernel, at a hit there; nothing: it was hit itself.
  static std::optional<std::uint64_t> entered_at(const Event& event) {
    if (std::get_if<FilePlace>(&event.site().point) != nullptr) return std::nullopt;
    const auto stack = event.user_stack();
    const int word = arch::for_machine(event.plan().kernel_machine).ip_word;
    if (!stack || word < 0 || static_cast<std::size_t>(word) >= stack->registers.size()) return std::nullopt;
    return stack->registers[static_cast<std::size_t>(word)];
  }
  /// Whether it may have had more mapped at a hit in the kernel, where no site tells, than was read: it has ended, or
  /// that was before it mapped the code that it ran.
  static bool may_lack_some(const Event& event, Process& process) {
    const auto at = entered_at(event);
    return at && (!process.lives() || process.find(*at) == nullptr);
  }
  static bool knows_more(const Process& past, const Process& process, const Event& event) {
    const std::uint64_t at = entered_at(event).value_or(0);
    const Area* area = past.known(at);
    if (process.known(at) == nullptr) return area != nullptr && area->module;
    return past.areas().size() >= process.areas().size();
  }
  static bool fits(const Event& event, const Process& process) {
    const auto* place = std::get_if<FilePlace>(&event.site().point);
    if (place == nullptr || is_at_return(event)) return process.issue() == FrameIssue::none;
    const Area* area = process.known(event.ip().value);
    const FileOffset at(area != nullptr ? event.ip().value - area->start + area->offset : 0);
    return area != nullptr && (at == place->offset || std::ranges::find(place->rets, at) != place->rets.end());
  }

  std::vector<Frame> frames(Process& process, const stack::Step& step, Period when) {
    const Area* area = process.find(step.lookup());
    std::vector<Frame> found;
    std::optional<FileOffset> offset;
    if (area != nullptr && area->module) {
      offset = FileOffset(step.address - area->start + area->offset);
      const auto linked = area->module->address_of(FileOffset(step.lookup() - area->start + area->offset));
      if (linked) found = area->module->functions_at(*linked);
      // Functions that V8 brings along have no symbols where the file is stripped.
      if (linked && found.back().issue == FrameIssue::no_symbol && area->module->runtime() == stack::Runtime::v8)
        if (const auto code = process.in_perf_map(step.lookup(), when)) add_name(found.back(), *code);
      if (linked) say_what_is_interpreted(found.back());
    } else if (area != nullptr && area->issue == FrameIssue::none) {
      if (const auto code = process.in_perf_map(step.lookup(), when)) {
        found.emplace_back().module = area->name;
        add_name(found.back(), *code);
        say_what_is_interpreted(found.back());
      }
    }
    if (found.empty()) {
      found = without_names(area, process);
      if (found.front().issue == FrameIssue::no_file) found.front().detail = process.why_no_perf_map();
    }
    // The C library has no symbol for it, or an odd one.
    if (step.signal) {
      found.back().function = "<signal handler called>";
      found.back().issue = FrameIssue::none;
    }
    finish(found, step, offset);
    return found;
  }
  static void finish(std::vector<Frame>& frames, const stack::Step& step, std::optional<FileOffset> offset) {
    for (Frame& frame : frames) {
      frame.address = ProcessAddr(step.address);
      frame.return_address = step.return_address;
      frame.offset = offset;
      frame.distance += frame.function.empty() ? 0 : step.address - step.lookup();
    }
  }

  /// The function that was hit is known from the plan, whatever became of the process.
  std::optional<std::vector<Frame>> frames_of_site(const Event& event, const stack::Step& step) {
    const auto* place = std::get_if<FilePlace>(&event.site().point);
    if (place == nullptr || is_at_return(event) || !place->rets.empty()) return std::nullopt;
    const auto module = processes.modules().of(event.plan().files[place->file]);
    const auto linked = module ? module->address_of(place->offset) : std::nullopt;
    if (!linked) return std::nullopt;
    auto found = module->functions_at(*linked);
    finish(found, step, place->offset);
    return found;
  }

  /// The process whose stack is a key of a row, as far as can be told: where it was hit there has to be a site's file.
  Process& process_of(const TableStack& key, const AttachPlan& plan) {
    const auto pid = static_cast<pid_t>(key.pid);
    Process& process = processes.of(pid);
    if (!fits(key, plan, process)) process.read_again();
    if (fits(key, plan, process)) return process;
    Process& past = processes.at(pid, event_clock());
    return fits(key, plan, past) ? past : nobody;
  }
  static bool fits(const TableStack& key, const AttachPlan& plan, const Process& process) {
    const Area* area = process.known(key.addresses.front());
    if (has_kernel_points(plan) || area == nullptr || !area->module)
      return has_kernel_points(plan) && process.issue() == FrameIssue::none;
    const FileOffset at(key.addresses.front() - area->start + area->offset);
    return std::ranges::any_of(plan.sites, [&](const PlannedSite& site) {
      const auto* place = std::get_if<FilePlace>(&site.point);
      if (place == nullptr) return false;
      const bool returns = plan.probes[site.probe].function == Moment::exit && place->rets.empty();
      return returns || place->offset == at || std::ranges::find(place->rets, at) != place->rets.end();
    });
  }
  static bool kernel_adds_callers() {
    utsname name{};
    unsigned major = 0, minor = 0;
    if (::uname(&name) != 0 || std::sscanf(name.release, "%u.%u", &major, &minor) != 2) return false;
    const arch::Arch* kernel = arch::for_name(name.machine);
    return kernel != nullptr && kernel->kernel.adds_callers && std::pair(major, minor) >= *kernel->kernel.adds_callers;
  }

  Stack name(const TableStack& key, const AttachPlan& plan) {
    if (key.kernel) return name_kernel(key);
    Process& process = process_of(key, plan);
    const Area* area = process.find(key.addresses.front());
    const Machine machine = area != nullptr && area->module ? area->module->machine() : plan.kernel_machine;
    const stack::Hit hit{.machine = machine, .when = {named_until, event_clock()}};
    const stack::Walked walked = walk_chain(process, key, hit, kernel_adds_callers());
    Stack named{.frames = {}, .end = walked.end};
    for (const stack::Step& step : walked.steps) {
      if (step.issue != FrameIssue::none)
        named.frames.emplace_back().issue = step.issue;
      else
        std::ranges::move(frames(process, step, hit.when), std::back_inserter(named.frames));
    }
    if (process.scripts(false).are_known()) say_what_a_row_lacks(named);
    return named;
  }

  Stack name_kernel(const TableStack& key) {
    std::vector<std::uint64_t> addresses = key.addresses;
    if (key.caller != 0) addresses.insert(addresses.begin() + 1, key.caller);
    Stack named = kernel_frames(addresses, false);
    if (key.cut) named.end = FrameIssue::depth_reached;
    return named;
  }

  Stack kernel_frames(std::span<const std::uint64_t> addresses, bool first_returns) {
    Stack stack;
    for (const std::uint64_t address : addresses) {
      Frame& frame = stack.frames.emplace_back();
      frame.address = ProcessAddr(address);
      frame.kernel = true;
      frame.return_address = stack.frames.size() > 1 || first_returns;
      auto symbol = kernel.find(address);
      if (!symbol) {
        frame.issue = FrameIssue::no_symbol;
        continue;
      }
      frame.function = std::move(symbol->name);
      frame.module = std::move(symbol->module);
      frame.distance = symbol->distance;
    }
    return stack;
  }

  SymbolizerOptions options;
  stack::ProcessTable processes;
  Process nobody;
  KernelSymbols kernel;
  std::map<std::pair<std::uint64_t, std::uint32_t>, ScriptFrames> kept_scripts;  ///< by when, and thread
  std::map<TableStack, std::shared_ptr<const Stack>> named_keys;                 ///< of rows
  std::uint64_t named_until = event_clock();  ///< when rows were named last: new ones are younger
};

Symbolizer::Symbolizer(SymbolizerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Symbolizer::Symbolizer(Symbolizer&&) noexcept = default;
Symbolizer& Symbolizer::operator=(Symbolizer&&) noexcept = default;
Symbolizer::~Symbolizer() = default;

Result<void> Symbolizer::watch() { return impl_->processes.watch(); }

void Symbolizer::see(const Event& event) {
  impl_->keep_scripts(event);
  Process& process = impl_->process_of(event);
  process.look_at_code(event.timestamp());
}

void Symbolizer::see(pid_t pid) {
  Process& process = impl_->processes.of(pid);
  static_cast<void>(process.scripts(false));
  process.look_at_code(event_clock());
}

void Symbolizer::expect(pid_t pid) { static_cast<void>(impl_->processes.unread(pid).scripts(true)); }

Result<Stack> Symbolizer::user_stack(const Event& event) {
  const auto recorded = TRY(event.user_stack());
  if (recorded.registers.empty()) return Stack{};
  ScriptFrames scripts = impl_->script_frames(event);
  Process& process = impl_->process_of(event);
  Process& scripts_of = impl_->scripts_of(event);
  const stack::Walked walked = walk_stack(process, recorded, event.layout(), hit_of(event, process, scripts_of));
  StackMaker<Impl> maker(*impl_, event, process, scripts_of, std::move(scripts));
  return maker.make(walked);
}

Result<Stack> Symbolizer::kernel_stack(const Event& event) {
  const auto addresses = TRY(event.kernel_stack());
  Stack stack = impl_->kernel_frames(addresses, is_at_return(event));
  if (stack.frames.size() >= event.layout().stack_shown) stack.end = FrameIssue::depth_reached;
  return stack;
}

void Symbolizer::name(std::vector<TableRow>& rows, const AttachPlan& plan) {
  // As many rows as a table has, and more.
  constexpr std::size_t most = 1 << 17;
  const std::uint64_t now = event_clock();
  std::map<std::vector<TableKey>, TableRow> same;
  for (TableRow& row : rows) {
    for (TableKey& key : row.keys) {
      auto* stack = std::get_if<TableStack>(&key);
      if (stack == nullptr || stack->names || stack->addresses.empty()) continue;
      if (impl_->named_keys.size() >= most) impl_->named_keys.clear();
      const auto [known, fresh] = impl_->named_keys.try_emplace(*stack);
      if (fresh) known->second = std::make_shared<const Stack>(impl_->name(*stack, plan));
      stack->names = known->second;
    }
    TableRow& whole = same[row.keys];
    if (whole.count == 0) whole.keys = row.keys;
    whole.add(row);
  }
  impl_->named_until = now;
  rows.clear();
  for (auto& [keys, row] : same) rows.push_back(std::move(row));
}

std::vector<Frame> Symbolizer::frames_at(pid_t pid, ProcessAddr address, bool return_address) {
  return impl_->frames(impl_->processes.of(pid), {.address = address.value, .return_address = return_address},
                       Period::at(event_clock()));
}

}  // namespace v1
}  // namespace usdt
