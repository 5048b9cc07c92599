// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/code_reads.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "arch/effects.hpp"
#include "dwarf/compiler.hpp"
#include "dwarf/frame.hpp"

namespace usdt::dwarf {
namespace {

using arch::Access;
using arch::Effects;

/// Bytes of a function that are looked at, and of an object.
constexpr std::uint64_t longest_function = 1U << 16;
constexpr std::uint32_t largest_object = 1U << 12;
constexpr std::size_t most_registers = 16;
/// Functions that are called which are looked at, too: bytes of each, how many in all, and how deep.
constexpr std::uint64_t longest_callee = 1U << 12;
constexpr unsigned most_callees = 32;
constexpr unsigned deepest_callee = 3;

struct Code {
  std::uint64_t begin = 0;
  elf::Bytes bytes;
  [[nodiscard]] std::uint64_t end() const { return begin + bytes.size(); }
};

/// The code in the file from `begin` on, up to `end`.
Code code_of(const DebugInfo::Impl& impl, std::uint64_t begin, std::uint64_t end) {
  const elf::OpenedFile& opened = *impl.opened;
  const auto offset = elf::code_offset(opened.image, VirtAddr(begin));
  if (!offset || end <= begin) return {begin, {}};
  const std::uint64_t size =
      std::min({end - begin, longest_function, elf::code_bytes_from(opened.image, VirtAddr(begin))});
  return {begin, opened.file.bytes(offset->value, size)};
}

/// The range of the function's code that has the instance.
Code function_code(const Moment& moment) {
  auto function = moment.inside;
  Dwarf_Addr base = 0;
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  for (std::ptrdiff_t at = 0; (at = dwarf_ranges(&function, at, &base, &begin, &end)) > 0;)
    if (begin <= moment.instance.pc.value && moment.instance.pc.value < end)
      return code_of(moment.impl, moment.instance.pc.value, end);
  return {};
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

void add(ReadBytes& bytes, std::int64_t from, std::uint32_t size) {
  for (std::int64_t at = std::max<std::int64_t>(from, 0); at < from + size; ++at)
    if (at < static_cast<std::int64_t>(bytes.size())) bytes[static_cast<std::size_t>(at)] = true;
}

/// What is known of registers on some way from the function's beginning: how far into the object they point, and which
/// word of it they have.
struct Registers {
  std::array<std::optional<std::int64_t>, most_registers> into, word;
  std::array<bool, most_registers> set{};  ///< by this function
  /// Words of the frame that have the same, by their distance from the call frame address: how far, and which word.
  std::map<std::int64_t, std::pair<std::optional<std::int64_t>, std::optional<std::int64_t>>> kept;

  void add(const Registers& other) {
    for (std::size_t i = 0; i < most_registers; ++i) {
      if (!into[i] && !word[i]) set[i] = other.set[i];
      if (!into[i]) into[i] = other.into[i];
      if (!word[i]) word[i] = other.word[i];
    }
    kept.insert(other.kept.begin(), other.kept.end());
  }
  void forget(std::uint32_t those) {
    for (std::size_t i = 0; i < most_registers; ++i) {
      if ((those >> i & 1U) == 0) continue;
      into[i] = word[i] = std::nullopt;
      set[i] = false;
    }
  }
};

/// Whether the compiler knew nothing of what is called, which may read all that its arguments lead to then.
class Callees {
 public:
  explicit Callees(const Moment& moment) : moment_(moment) {
    if (is_clang(moment.die) || is_linked_as_whole(moment.die)) return;
    Dwarf_Die unit;
    auto function = moment.inside;
    if (dwarf_diecu(&function, &unit, nullptr, nullptr) != nullptr) unit_ = unit;
  }

  /// `target`: nothing where a register or memory says it.
  [[nodiscard]] bool are_unknown(std::optional<std::uint64_t> target) const {
    if (!target) return true;
    const elf::Image& image = moment_.impl.opened->image;
    for (const std::string_view name : {".plt", ".plt.sec", ".plt.got"}) {
      const elf::Section* section = image.find(name);
      if (section != nullptr && section->addr <= *target && *target - section->addr < section->size) return true;
    }
    if (!unit_) return false;
    const auto other = moment_.impl.unit_at(VirtAddr(*target));
    return !other || other->addr != unit_->addr;
  }

 private:
  const Moment& moment_;
  std::optional<Dwarf_Die> unit_;  ///< the one that the compiler saw; nothing: it may have seen others
};

/// Finds out which accesses are to the stack, going through a function forward.
class StackAccess {
 public:
  explicit StackAccess(const Moment& moment) : frames_(&moment.impl.frames()) {}

  /// How far from the call frame address on; nothing: elsewhere, or not known.
  [[nodiscard]] std::optional<std::int64_t> from_cfa(std::uint64_t at, const Access& access) {
    if (at >= known_until_) cfa_ = frames_->cfa_until(VirtAddr(at), known_until_);
    if (!cfa_ || cfa_->base != access.base) return std::nullopt;
    return access.displacement - static_cast<std::int64_t>(cfa_->displacement);
  }

 private:
  const Frames* frames_;
  std::optional<Sum> cfa_;
  std::uint64_t known_until_ = 0;
};

/// Follows an object's address through the code, from its beginning on and forward. Each way through it is one that the
/// compiler saw, too: what is read on one may be read.
class Follow {
 public:
  Follow(const Moment& moment, const Code& code, const AddressAt& address, std::uint32_t size)
      : moment_(moment),
        arch_(moment.arch),
        callees_(moment),
        stack_(moment),
        code_(code),
        slot_(address.stack),
        read_(size) {
    if (address.reg) now_.into[*address.reg] = 0;
  }

  bool visit(std::uint64_t at, const Effects& effects) {
    if (const auto jumped = ahead_.find(at); jumped != ahead_.end()) now_.add(jumped->second);
    for (const auto& access : effects.accesses)
      if (access && access->reads) reads(*access);
    const Registers before = now_;
    now_.forget(effects.changed);
    move(at, before, effects);
    leave(at, effects.code);
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
  void reads(const Access& access) {
    const auto into = now_.into[access.base];
    if (into && !access.indexed) add(read_, *into + access.displacement, access.size);
    if (const auto word = now_.word[access.base]) followed_.push_back(*word);
  }

  /// Registers that the function sets are arguments of what it calls. Others may have what was passed to it.
  void pass_on(std::uint64_t at, const arch::Instruction& code) {
    const auto target =
        code.target ? std::optional(at + static_cast<std::uint64_t>(*code.target)) : std::optional<std::uint64_t>();
    const bool calls = code.flow == arch::Flow::call ||
                       (code.flow == arch::Flow::jump && target && (*target < code_.begin || *target >= code_.end()));
    if (!calls) return;
    Registers passed;
    bool some = false;
    for (const RegisterId each : arch_.user_calls.arguments) {
      const auto reg =
          static_cast<std::size_t>(std::ranges::find(arch_.dwarf_registers, each) - arch_.dwarf_registers.begin());
      if (reg >= most_registers || !now_.set[reg] || (!now_.into[reg] && !now_.word[reg])) continue;
      if (callees_.are_unknown(target)) {
        if (now_.into[reg]) all_ = true;
        if (now_.word[reg]) followed_.push_back(*now_.word[reg]);
        continue;
      }
      passed.into[reg] = now_.into[reg];
      passed.word[reg] = now_.word[reg];
      some = true;
    }
    if (some) into_callee(*target, std::move(passed));
  }

  /// What is called reads what it is passed, as this function would. Code behind its end is reached by nobody.
  void into_callee(std::uint64_t target, Registers passed) {
    if (depth_ == deepest_callee || callees_left_ == 0) return;
    --callees_left_;
    ++depth_;
    const auto slot = std::exchange(slot_, std::nullopt);
    const Registers now = std::exchange(now_, std::move(passed));
    const auto ahead = std::exchange(ahead_, {});
    const StackAccess stack = std::exchange(stack_, StackAccess(moment_));
    const Code code = std::exchange(code_, code_of(moment_.impl, target, target + longest_callee));
    for_each_instruction(arch_.machine, Code(code_),
                         [this](std::uint64_t at, const Effects& effects) { return visit(at, effects); });
    code_ = code;
    stack_ = stack;
    ahead_ = ahead;
    now_ = now;
    slot_ = slot;
    --depth_;
  }

  void move(std::uint64_t at, const Registers& before, const Effects& effects) {
    if (const auto& copy = effects.copies) {
      if (const auto into = before.into[copy->from]) now_.into[copy->to] = *into + copy->displacement;
      now_.word[copy->to] = before.word[copy->from];
      now_.set[copy->to] = true;
    }
    const auto& memory = effects.accesses[0];
    if (!memory || memory->indexed || (!effects.loads && !effects.stores)) return;
    const auto offset = stack_.from_cfa(at, *memory);
    if (offset && effects.stores) now_.kept[*offset] = {before.into[*effects.stores], before.word[*effects.stores]};
    if (!effects.loads) return;
    if (offset) load(*offset, *effects.loads);
    if (!before.into[memory->base]) return;
    now_.word[*effects.loads] = *before.into[memory->base] + memory->displacement;
    now_.set[*effects.loads] = true;
  }

  void load(std::int64_t offset, std::uint8_t to) {
    const auto kept = now_.kept.find(offset);
    if (kept != now_.kept.end()) std::tie(now_.into[to], now_.word[to]) = kept->second;
    if (kept == now_.kept.end() && slot_ && offset == static_cast<std::int64_t>(*slot_)) now_.into[to] = 0;
    now_.set[to] = true;
  }

  void leave(std::uint64_t at, const arch::Instruction& code) {
    pass_on(at, code);
    if (code.target && (code.flow == arch::Flow::branch || code.flow == arch::Flow::jump)) {
      const std::uint64_t to = at + static_cast<std::uint64_t>(*code.target);
      if (to > at) ahead_[to].add(now_);
    }
    if (code.flow == arch::Flow::call) now_.forget(~arch::kept_by_calls(arch_.machine));
    if (code.flow == arch::Flow::jump || code.flow == arch::Flow::ret) now_ = {};
  }

  const Moment& moment_;
  const arch::Arch& arch_;
  Callees callees_;
  StackAccess stack_;
  Code code_;
  unsigned depth_ = 0;
  unsigned callees_left_ = most_callees;
  std::optional<std::uint64_t> slot_;
  Registers now_;
  std::map<std::uint64_t, Registers> ahead_;
  ReadBytes read_;
  std::vector<std::int64_t> followed_;
  bool all_ = false;
};

}  // namespace

ReadBytes CodeReads::behind(const AddressAt& address, std::uint32_t size,
                            std::span<const LibraryAddress> addresses) const {
  const bool is_known = address.stack || (address.reg && *address.reg < most_registers);
  if (!is_known || size > largest_object) return ReadBytes(std::min(size, largest_object), false);
  const Code code = function_code(moment_);
  Follow follow(moment_, code, address, size);
  for_each_instruction(moment_.arch.machine, code,
                       [&](std::uint64_t at, const Effects& effects) { return follow.visit(at, effects); });
  return std::move(follow).take(addresses);
}

ReadBytes CodeReads::in_callers_room(std::uint64_t first, std::uint32_t size) const {
  ReadBytes read(std::min(size, largest_object), false);
  StackAccess stack(moment_);
  for_each_instruction(moment_.arch.machine, function_code(moment_), [&](std::uint64_t at, const Effects& effects) {
    for (const auto& access : effects.accesses) {
      const bool is_plain = access && !access->writes && !access->indexed;
      const auto offset = is_plain ? stack.from_cfa(at, *access) : std::nullopt;
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

bool CodeReads::writes_to(const Sum& sum, std::uint32_t size, VirtAddr begin, VirtAddr end) const {
  if (!sum.base || sum.index || sum.anchor != Anchor::none) return true;
  const auto wanted = static_cast<std::int64_t>(sum.displacement);
  bool writes = false;
  const Code code = code_of(moment_.impl, begin.value, end.value);
  const bool all = for_each_instruction(moment_.arch.machine, code, [&](std::uint64_t, const Effects& effects) {
    for (const auto& access : effects.accesses)
      writes |=
          access && access->writes && access->base == *sum.base &&
          (access->indexed || (access->displacement < wanted + size && wanted < access->displacement + access->size));
    return !writes;
  });
  return writes || !all;
}

arch::ResultRegisters CodeReads::proven_results() const {
  return arch::proven_results(moment_.arch.machine, function_code(moment_).bytes);
}

}  // namespace usdt::dwarf
