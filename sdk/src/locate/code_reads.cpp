// SPDX-License-Identifier: BSD-2-Clause
#include "locate/code_reads.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "arch/effects.hpp"
#include "dwarf/compiler.hpp"
#include "locate/code_state.hpp"
#include "locate/frame.hpp"

namespace usdt::locate {
namespace {

using arch::Access;
using arch::Effects;

/// Bytes of a function that are looked at, and of an object.
constexpr std::uint64_t kLongestFunction = 1U << 16;
constexpr std::uint32_t kLargestObject = 1U << 12;
constexpr std::size_t kMostRegisters = CodeState::kMostRegisters;
/// Functions that are called which are looked at, too: bytes of each, how many in all, and how deep.
constexpr std::uint64_t kLongestCallee = 1U << 12;
constexpr unsigned kMostCallees = 32;
constexpr unsigned kDeepestCallee = 3;
/// Bytes of one that is looked at for which registers it changes.
constexpr std::uint64_t kLongestLeaf = 64;

struct Code {
  std::uint64_t begin = 0;
  elf::Bytes bytes;
  [[nodiscard]] std::uint64_t end() const { return begin + bytes.size(); }
};

/// The code in the file from `begin` on, up to `end`.
Code code_at(const DebugFiles& files, std::uint64_t begin, std::uint64_t end) {
  const elf::OpenedFile& opened = *files.opened;
  const auto offset = elf::code_offset(opened.image, VirtAddr(begin));
  if (!offset || end <= begin) return {begin, {}};
  const std::uint64_t size =
      std::min({end - begin, kLongestFunction, elf::code_bytes_from(opened.image, VirtAddr(begin))});
  return {begin, opened.file.bytes(offset->value, size)};
}

/// The beginning and end of the range of the function's code that has the instance; both 0: none has.
std::pair<Dwarf_Addr, Dwarf_Addr> range_around(const Moment& moment) {
  auto function = moment.inside;
  Dwarf_Addr base = 0;
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  for (std::ptrdiff_t at = 0; (at = dwarf_ranges(&function, at, &base, &begin, &end)) > 0;)
    if (begin <= moment.instance.pc.value && moment.instance.pc.value < end) return {begin, end};
  return {0, 0};
}

/// The code of that range from the instance on.
Code function_code(const Moment& moment) {
  return code_at(moment.info.files, moment.instance.pc.value, range_around(moment).second);
}

/// The code of that range from its beginning on.
Code code_around(const Moment& moment) {
  const auto [begin, end] = range_around(moment);
  return code_at(moment.info.files, begin, end);
}

/// Calls `visit(address, effects)` for each instruction until it returns false; whether all were seen.
template <class Visit>
bool for_each_instruction(Machine machine, const Code& code, Visit&& visit) {
  for (std::uint64_t at = 0; at < code.bytes.size();) {
    const auto effects = arch::effects_of(machine, elf::ByteView(code.bytes).subspan(at));
    if (!effects || effects->code.size == 0) return false;
    if (!visit(code.begin + at, *effects)) return true;
    at += effects->code.size;
  }
  return !code.bytes.empty();
}

std::size_t number_of(const arch::Arch& arch, RegisterId reg) {
  return static_cast<std::size_t>(std::ranges::find(arch.dwarf_registers, reg) - arch.dwarf_registers.begin());
}

std::optional<std::uint64_t> target_of(std::uint64_t at, const arch::Instruction& code) {
  if (!code.target) return std::nullopt;
  return at + static_cast<std::uint64_t>(*code.target);
}

/// Marks the bytes of a range that are not in `without`.
void add(ReadBytes& bytes, std::int64_t from, std::uint32_t size, const ReadBytes& without = {}) {
  const auto end = std::min<std::int64_t>(from + size, static_cast<std::int64_t>(bytes.size()));
  for (std::int64_t at = std::max<std::int64_t>(from, 0); at < end; ++at) {
    const auto i = static_cast<std::size_t>(at);
    if (i >= without.size() || !without[i]) bytes[i] = true;
  }
}

/// Functions that are called.
class Callees {
 public:
  explicit Callees(const Moment& moment) : moment_(moment) {
    if (is_clang(moment.die)) return;
    Dwarf_Die unit;
    auto function = moment.inside;
    if (dwarf_diecu(&function, &unit, nullptr, nullptr) == nullptr) return;
    if (!is_linked_as_whole(moment.die)) unit_ = unit;
    at_link_time_ = is_made_at_link_time(unit);
  }

  /// Whether the compiler knew nothing of it, so that it may read all that its arguments lead to. `target`: nothing
  /// where a register or memory says it.
  [[nodiscard]] bool are_unknown(std::optional<std::uint64_t> target) const {
    if (!target) return true;
    const elf::Image& image = moment_.info.files.opened->image;
    for (const std::string_view name : {".plt", ".plt.sec", ".plt.got"}) {
      const elf::Section* section = image.find(name);
      if (section != nullptr && section->addr <= *target && *target - section->addr < section->size) return true;
    }
    if (!unit_ && !at_link_time_) return false;
    const auto other = moment_.info.units.unit_at(VirtAddr(*target));
    // GCC tells of each function that it makes at link time, whether its source was compiled with -g or not.
    if (at_link_time_) return !other || !is_linked_as_whole(*other);
    return !other || other->addr != unit_->addr;
  }

  /// The registers that a call leaves as they were.
  struct Kept {
    std::uint32_t registers = 0;  ///< a bit each
    bool stack_pointer = false;   ///< callers that count in it see it so
  };
  /// A short function without branches leaves more alone than every function does, and compilers know that: GCC for
  /// i386 keeps arguments in registers across the functions that find out where the code is (__x86.get_pc_thunk.bx),
  /// and with -fipa-ra across others.
  [[nodiscard]] Kept keep(std::optional<std::uint64_t> target) const {
    const Machine machine = moment_.arch.machine;
    const Kept by_any{arch::kept_by_calls(machine), moment_.arch.call_traits.keeps_stack_pointer};
    if (!target) return by_any;
    std::uint32_t changed = 0;
    bool returns = false;
    for_each_instruction(machine, code_at(moment_.info.files, *target, *target + kLongestLeaf),
                         [&](std::uint64_t, const Effects& effects) {
                           changed |= effects.changed;
                           returns = effects.code.flow == arch::Flow::ret && effects.code.size == 1;
                           return effects.code.flow == arch::Flow::next;
                         });
    return returns ? Kept{by_any.registers | ~changed, true} : by_any;
  }

 private:
  const Moment& moment_;
  std::optional<Dwarf_Die> unit_;  ///< the one that the compiler saw; nothing: it may have seen others
  bool at_link_time_ = false;      ///< the compiler saw all that is in such units
};

/// The call frame address by call-frame information, for addresses that go forward through a function.
class CallFrameAddress {
 public:
  explicit CallFrameAddress(const Moment& moment) : frames_(&moment.state.frames()) {}

  /// Nothing: it is not told, or is no sum of a register and a number.
  [[nodiscard]] const std::optional<Sum>& at(std::uint64_t at) {
    if (at >= known_until_) cfa_ = frames_->cfa_until(VirtAddr(at), known_until_);
    return cfa_;
  }
  /// How far from it an access is; nothing: elsewhere, or not known.
  [[nodiscard]] std::optional<std::int64_t> to(std::uint64_t from, const Access& access) {
    const auto& cfa = at(from);
    if (!cfa || cfa->base != access.base) return std::nullopt;
    return access.displacement - static_cast<std::int64_t>(cfa->displacement);
  }

 private:
  const Frames* frames_;
  std::optional<Sum> cfa_;
  std::uint64_t known_until_ = 0;
};

/// Goes through a function forward, and knows at each instruction what registers and the frame have there.
class FrameWalk {
 public:
  FrameWalk(const Moment& moment, CodeState passed)
      : stack_pointer_(number_of(moment.arch, moment.arch.stack_pointer)), cfa_(moment), now_(std::move(passed)) {
    now_.point(stack_pointer_, -static_cast<std::int64_t>(moment.arch.entry_frame));
  }

  [[nodiscard]] CodeState& now() { return now_; }
  void arrive(std::uint64_t at) {
    if (const auto jumped = ahead_.find(at); jumped != ahead_.end()) now_.join(jumped->second);
    if (const auto& cfa = cfa_.at(at); cfa && cfa->base)
      now_.point(*cfa->base, -static_cast<std::int64_t>(cfa->displacement));
  }
  void step(const Effects& effects) { now_.step(effects, stack_pointer_); }
  /// Behind what step() did.
  void leave(std::uint64_t at, const arch::Instruction& code, const Callees& callees) {
    const auto target = target_of(at, code);
    if (target && *target > at && (code.flow == arch::Flow::branch || code.flow == arch::Flow::jump))
      ahead_[*target].join(now_);
    if (code.flow == arch::Flow::call) {
      const auto kept = callees.keep(target);
      now_.call(kept.registers, stack_pointer_, kept.stack_pointer);
    }
    if (code.flow == arch::Flow::jump || code.flow == arch::Flow::ret) now_ = {};
  }

 private:
  std::size_t stack_pointer_;
  CallFrameAddress cfa_;
  CodeState now_;
  std::map<std::uint64_t, CodeState> ahead_;
};

/// Follows an object's address through the code, from its beginning on and forward: what is read on one way may be
/// read.
class Follow {
 public:
  Follow(const Moment& moment, const Code& code, const AddressAt& address, std::uint32_t size)
      : moment_(moment),
        arch_(moment.arch),
        callees_(moment),
        walk_(moment, passed_in(address)),
        code_(code),
        read_(size) {}

  bool visit(std::uint64_t at, const Effects& effects) {
    walk_.arrive(at);
    for (const auto& access : effects.accesses)
      if (access && access->reads) reads(*access);
    walk_.step(effects);
    pass_on(effects.code, target_of(at, effects.code));
    walk_.leave(at, effects.code, callees_);
    return true;
  }

  /// `addresses` count only if one of the same object was followed.
  [[nodiscard]] ReadBytes take(std::span<const LibraryAddress> addresses) && {
    if (all_) return ReadBytes(read_.size(), true);
    const auto is_followed = [&](const LibraryAddress& one) {
      return std::ranges::any_of(addresses, [&](const LibraryAddress& other) {
        return other.object == one.object && std::ranges::find(followed_, other.offset) != followed_.end();
      });
    };
    for (const LibraryAddress& each : addresses)
      if (!is_followed(each) && each.offset + arch_.word_size <= read_.size())
        std::fill_n(read_.begin() + each.offset, arch_.word_size, false);
    return std::move(read_);
  }

 private:
  static CodeState passed_in(const AddressAt& address) {
    CodeState passed;
    if (address.reg) passed.pass(*address.reg, {.into = 0, .word = {}});
    if (address.stack) passed.pass_on_stack(static_cast<std::int64_t>(*address.stack), {.into = 0, .word = {}});
    return passed;
  }

  void reads(const Access& access) {
    const Held& held = walk_.now().at(access.base).held;
    if (held.into && !access.indexed) add(read_, *held.into + access.displacement, access.size);
    if (held.word) followed_.push_back(*held.word);
  }

  /// Registers that the function sets are arguments of what it calls. Others may have what was passed to it.
  void pass_on(const arch::Instruction& code, std::optional<std::uint64_t> target) {
    const bool calls = code.flow == arch::Flow::call ||
                       (code.flow == arch::Flow::jump && target && (*target < code_.begin || *target >= code_.end()));
    if (!calls) return;
    CodeState passed;
    bool some = false;
    for (const RegisterId each : arch_.user_calls.arguments) {
      const std::size_t reg = number_of(arch_, each);
      if (reg >= kMostRegisters) continue;
      const auto& [held, set, frame] = walk_.now().at(reg);
      if (!set || !held.is_something()) continue;
      if (callees_.are_unknown(target)) {
        if (held.into) all_ = true;
        if (held.word) followed_.push_back(*held.word);
        continue;
      }
      passed.pass(reg, held);
      some = true;
    }
    if (some && target) into_callee(*target, std::move(passed));
  }

  /// Follows a call: the callee reads what it is passed, as this function would. Nothing reaches code behind its end.
  void into_callee(std::uint64_t target, CodeState passed) {
    if (depth_ == kDeepestCallee || callees_left_ == 0) return;
    --callees_left_;
    ++depth_;
    const FrameWalk walk = std::exchange(walk_, FrameWalk(moment_, std::move(passed)));
    const Code code = std::exchange(code_, code_at(moment_.info.files, target, target + kLongestCallee));
    for_each_instruction(arch_.machine, Code(code_),
                         [this](std::uint64_t at, const Effects& effects) { return visit(at, effects); });
    code_ = code;
    walk_ = walk;
    --depth_;
  }

  const Moment& moment_;
  const arch::Arch& arch_;
  Callees callees_;
  FrameWalk walk_;
  Code code_;
  unsigned depth_ = 0;
  unsigned callees_left_ = kMostCallees;
  ReadBytes read_;
  std::vector<std::int64_t> followed_;
  bool all_ = false;
};

}  // namespace

ReadBytes CodeReads::behind(const AddressAt& address, std::uint32_t size,
                            std::span<const LibraryAddress> addresses) const {
  const bool is_known = address.stack || (address.reg && *address.reg < kMostRegisters);
  if (!is_known || size > kLargestObject) return ReadBytes(std::min(size, kLargestObject), false);
  const Code code = function_code(moment_);
  Follow follow(moment_, code, address, size);
  for_each_instruction(moment_.arch.machine, code,
                       [&](std::uint64_t at, const Effects& effects) { return follow.visit(at, effects); });
  return std::move(follow).take(addresses);
}

ReadBytes CodeReads::in_callers_room(std::uint64_t first, std::uint32_t size) const {
  ReadBytes read(std::min(size, kLargestObject), false);
  CallFrameAddress cfa(moment_);
  for_each_instruction(moment_.arch.machine, function_code(moment_), [&](std::uint64_t at, const Effects& effects) {
    for (const auto& access : effects.accesses) {
      const bool is_plain = access && !access->writes && !access->indexed;
      const auto offset = is_plain ? cfa.to(at, *access) : std::nullopt;
      if (!offset) continue;
      const std::int64_t from = *offset - static_cast<std::int64_t>(first);
      if (access->reads) {
        add(read, from, access->size);
      } else if (from >= 0 && from < static_cast<std::int64_t>(read.size())) {
        read.assign(read.size(), true);  // its address is taken
      }
    }
    return true;
  });
  return read;
}

ReadBytes CodeReads::filled_behind(const FilledObject& object) const {
  ReadBytes filled(std::min(object.size, kLargestObject), false);
  if (arch::kept_by_calls(moment_.arch.machine) == 0) return filled;  // no code of that machine is followed
  const Code code = code_around(moment_);
  const auto base = static_cast<std::uint8_t>(object.base);
  if (object.base >= kMostRegisters || !moment_.state.code_walks.spend(code.bytes.size()))
    return ReadBytes(filled.size(), true);
  ReadBytes there(filled.size(), false);
  std::size_t calls = object.calls;
  std::optional<FramePlace> begin;
  const Callees callees(moment_);
  FrameWalk walk(moment_, {});
  const auto offset_of = [&](const Access& access) -> std::optional<std::int64_t> {
    if (const auto& into = walk.now().at(access.base).held.into) return *into + access.displacement;
    const auto place = walk.now().place_of(access);
    if (!place || !begin || place->base != begin->base) return std::nullopt;
    return place->offset - begin->offset;
  };
  for_each_instruction(moment_.arch.machine, code, [&](std::uint64_t at, const Effects& effects) {
    const std::uint64_t pc = moment_.instance.pc.value;
    walk.arrive(at);
    if (at == pc) {
      begin = walk.now().place_of({.base = base, .displacement = object.displacement});
      walk.now().pass(base, {.into = -object.displacement, .word = {}});
    }
    for (const auto& access : effects.accesses) {
      const auto offset = at >= pc && access ? offset_of(*access) : std::nullopt;
      if (!offset) continue;
      if (access->reads && object.reads_count) add(there, *offset, access->size, filled);
      if (access->writes) add(filled, *offset, access->indexed ? object.size : access->size, there);
    }
    walk.step(effects);
    walk.leave(at, effects.code, callees);
    if (at >= pc && effects.code.flow == arch::Flow::call && calls > 0) return --calls, true;
    return at < pc || effects.code.flow == arch::Flow::next || effects.code.flow == arch::Flow::branch;
  });
  return filled;
}

arch::ResultRegisters CodeReads::proven_results() const {
  ProvenResults& results = moment_.state.results;
  const auto [known, is_new] = results.known.try_emplace(moment_.instance.pc.value);
  if (!is_new) return known->second;
  const Code code = function_code(moment_);
  if (!results.bytes.spend(code.bytes.size())) return {};
  const auto variables =
      is_rust(moment_.die) ? arch::StackVariables::are_not_volatile : arch::StackVariables::may_be_volatile;
  return known->second = arch::proven_results(moment_.arch.machine, code.bytes, variables);
}

}  // namespace usdt::locate
