// SPDX-License-Identifier: BSD-2-Clause
#include "program/specialise.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <linux/bpf.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/try.hpp"
#include "btf/types.hpp"
#include "carry/windows.hpp"

namespace usdt::backends {
namespace {

constexpr std::uint8_t kMove = BPF_ALU64 | 0xb0 /* BPF_MOV */ | BPF_K;
constexpr std::uint8_t kLoad = BPF_LDX | 0x18 /* BPF_DW */ | BPF_MEM;
constexpr std::uint8_t kAdd = BPF_ALU64;  // BPF_ADD and BPF_K are 0
constexpr std::uint8_t kShiftLeft = BPF_ALU64 | 0x60 /* BPF_LSH */ | BPF_K;
constexpr std::uint8_t kShiftRight = BPF_ALU64 | 0x70 /* BPF_RSH */ | BPF_K;
constexpr std::uint8_t kShiftSigned = BPF_ALU64 | 0xc0 /* BPF_ARSH */ | BPF_K;
constexpr std::uint8_t kLoadImmediate = 0x18;                                // BPF_LD | BPF_IMM | BPF_DW, of two slots
constexpr std::uint8_t kMoveLowHalf = BPF_ALU | 0xb0 /* BPF_MOV */ | BPF_X;  // the upper half becomes 0

/// A jump to the next instruction, which the verifier removes.
constexpr bpf_insn kNothing{.code = BPF_JMP, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0};

/// The load of `size` bytes, the rest of the register 0; nothing where there is none of that size.
std::optional<std::uint8_t> load_of(unsigned size) {
  switch (size) {
    case 1:
      return BPF_LDX | BPF_MEM | 0x10 /* BPF_B */;
    case 2:
      return BPF_LDX | BPF_MEM | 0x08 /* BPF_H */;
    case 4:
      return BPF_LDX | BPF_MEM;  // BPF_W is 0
    case 8:
      return kLoad;
    default:
      return std::nullopt;
  }
}

/// Which argument an immediate is a placeholder of.
std::optional<std::size_t> argument_of(std::int32_t immediate, usdt_patch_arg placeholder) {
  const std::int64_t n = std::int64_t{immediate} - placeholder;
  return n >= 0 && n < USDT_LINK_ARGS ? std::optional(static_cast<std::size_t>(n)) : std::nullopt;
}

bool is_whole_register(const usdt_arg_spec& arg) {
  return arg.kind == USDT_ARG_REG && arg.shift == 0 && (arg.flags & USDT_ARG_PAIR) == 0;
}

bool is_plain_memory(const usdt_arg_spec& arg) {
  constexpr unsigned kPlain = USDT_ARG_SIGNED | USDT_ARG_FLOAT;
  const auto displacement = static_cast<std::int64_t>(arg.value);
  return arg.kind == USDT_ARG_MEM && arg.reg != USDT_REG_NONE && arg.index == USDT_REG_NONE &&
         (arg.flags & ~kPlain) == 0 && displacement == static_cast<std::int32_t>(displacement);
}

class Specialiser {
 public:
  explicit Specialiser(const PlannedProgram& program)
      : program_(program), args_(carry::gather_windows(program.link_spec.args).args) {}

  /// False where a placeholder stands alone.
  [[nodiscard]] bool rewrite(std::span<bpf_insn> code) const {
    for (std::size_t i = 0; i < code.size(); ++i) {
      const std::uint8_t opcode = code[i].code;
      if (opcode == kLoadImmediate) {
        ++i;
      } else if (opcode == kMove) {
        write_number(code[i].imm);
      } else if (opcode == kAdd || opcode == kShiftLeft) {
        if (!write_block(code, i)) return false;
      }
    }
    return true;
  }

 private:
  [[nodiscard]] usdt_patched_kind kind_of(std::size_t n) const {
    if (n >= args_.size()) return USDT_PATCHED_OTHER;
    const usdt_arg_spec& arg = args_[n];
    if (program_.kind.source >= USDT_SOURCE_SLOTS) {
      // Old slots hold the result at the entry, too, where it is not yet one.
      const bool too_early = program_.kind.source == USDT_SOURCE_OLD_SLOTS && (arg.flags & USDT_ARG_RESULT) != 0;
      return is_whole_register(arg) && !too_early ? USDT_PATCHED_SLOT : USDT_PATCHED_OTHER;
    }
    // Registers hold a call's arguments at its entry and its result at its end.
    if (program_.kind.calls) return USDT_PATCHED_OTHER;
    if (is_whole_register(arg)) return USDT_PATCHED_REG;
    return is_plain_memory(arg) && (program_.values_by_site >> n & 1) == 0 ? USDT_PATCHED_MEM : USDT_PATCHED_OTHER;
  }

  void write_number(std::int32_t& number) const {
    if (const auto n = argument_of(number, USDT_PATCH_ARG_KIND)) {
      number = kind_of(*n);
    } else if (const auto w = argument_of(number, USDT_PATCH_ARG_WINDOW)) {
      number = *w < args_.size() ? args_[*w].window : 0;
    } else if (const auto s = argument_of(number, USDT_PATCH_ARG_SIZE)) {
      number = *s < args_.size() ? args_[*s].size : 1;
    } else if (const auto slot = argument_of(number, USDT_PATCH_ARG_SLOT)) {
      number = *slot < args_.size() ? args_[*slot].reg : USDT_REG_NONE;
    }
  }

  /// The instructions round the one at `i`, if it has a placeholder. What the verifier will not get to, it does not
  /// see.
  [[nodiscard]] bool write_block(std::span<bpf_insn> code, std::size_t i) const {
    bpf_insn& here = code[i];
    if (here.code == kAdd) {
      const auto n = argument_of(here.imm, USDT_PATCH_ARG_DISPLACEMENT);
      if (!n) return true;
      here.imm = kind_of(*n) == USDT_PATCHED_MEM ? static_cast<std::int32_t>(args_[*n].value) : 0;
      return write_load(code, i, *n);
    }
    if (const auto n = argument_of(here.imm, USDT_PATCH_ARG_CUT))
      return write_shifts(code, i, *n) && write_load(code, i, *n) && shorten_load(code, i, *n);
    if (const auto n = argument_of(here.imm, USDT_PATCH_ARG_TRIM))
      return write_shifts(code, i, *n) && shorten_trim(code, i, *n);
    return true;
  }

  [[nodiscard]] bool write_load(std::span<bpf_insn> code, std::size_t i, std::size_t n) const {
    if (i == 0 || code[i - 1].code != kLoad) return false;
    const bool loads = n < args_.size() && args_[n].reg != USDT_REG_NONE;
    code[i - 1].off = static_cast<std::int16_t>(loads ? 8 * args_[n].reg : 0);
    return true;
  }

  [[nodiscard]] bool write_shifts(std::span<bpf_insn> code, std::size_t i, std::size_t n) const {
    if (i + 1 == code.size() || code[i + 1].code != kShiftRight || code[i + 1].imm != code[i].imm) return false;
    const bool sized = n < args_.size() && args_[n].size >= 1 && args_[n].size <= 8;
    code[i].imm = code[i + 1].imm = sized ? 64 - 8 * args_[n].size : 0;
    if (sized && (args_[n].flags & USDT_ARG_SIGNED) != 0) code[i + 1].code = kShiftSigned;
    return true;
  }

  /// The load alone does where it extends as it should: whole words, and what is unsigned. (Little-endian machines.)
  [[nodiscard]] bool shorten_load(std::span<bpf_insn> code, std::size_t i, std::size_t n) const {
    if (kind_of(n) != USDT_PATCHED_REG) return true;
    const usdt_arg_spec& arg = args_[n];
    const auto load = load_of(arg.size);
    if (!load || (arg.size < 8 && (arg.flags & USDT_ARG_SIGNED) != 0)) return true;
    code[i - 1].code = *load;
    code[i] = code[i + 1] = kNothing;
    return true;
  }

  /// The same of what was read otherwise.
  [[nodiscard]] bool shorten_trim(std::span<bpf_insn> code, std::size_t i, std::size_t n) const {
    const unsigned size = n < args_.size() ? args_[n].size : 0;
    const bool half = size == 4 && (args_[n].flags & USDT_ARG_SIGNED) == 0;
    if (size != 8 && !half) return true;
    code[i + 1] = kNothing;
    if (half) {
      code[i].code = kMoveLowHalf;
      code[i].src_reg = code[i].dst_reg;
      code[i].imm = 0;
    } else {
      code[i] = kNothing;
    }
    return true;
  }

  const PlannedProgram& program_;
  std::vector<usdt_arg_spec> args_;
};

/// Section headers of an ELF file; nullopt where one reaches beyond it.
std::optional<std::vector<Elf64_Shdr>> sections_of(std::span<const std::byte> object) {
  Elf64_Ehdr header;
  if (object.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, object.data(), sizeof(header));
  const std::uint64_t room = object.size();
  if (header.e_shoff > room || header.e_shnum * sizeof(Elf64_Shdr) > room - header.e_shoff) return std::nullopt;
  std::vector<Elf64_Shdr> found;
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, object.data() + header.e_shoff + i * sizeof(section), sizeof(section));
    if (section.sh_type != SHT_PROGBITS) continue;
    if (section.sh_offset > room || section.sh_size > room - section.sh_offset) return std::nullopt;
    found.push_back(section);
  }
  return found;
}

/// A copy of `object` after `rewrite`, which says false where it does not find what it must, saw each section's code.
template <class Rewrite>
Result<std::vector<std::byte>> rewritten(std::span<const std::byte> object, const Rewrite& rewrite) {
  const auto sections = sections_of(object);
  if (!sections) return fail(ErrorKind::malformed, "BPF object: its sections reach beyond its end");
  std::vector<std::byte> out(object.begin(), object.end());
  for (const Elf64_Shdr& section : *sections) {
    if ((section.sh_flags & SHF_EXECINSTR) == 0) continue;
    std::vector<bpf_insn> code(section.sh_size / sizeof(bpf_insn));
    const std::size_t bytes = code.size() * sizeof(bpf_insn);
    if (bytes == 0) continue;
    std::memcpy(code.data(), out.data() + section.sh_offset, bytes);
    if (!rewrite(std::span(code)))
      return fail(ErrorKind::malformed, "BPF object: its instructions are not as usdt.bpf.h has them");
    std::memcpy(out.data() + section.sh_offset, code.data(), bytes);
  }
  return out;
}

/// Numbers of the kfuncs of sessions in the kernel's BTF.
struct SessionKfuncs {
  std::int32_t is_return = 0;
  std::int32_t cookie = 0;
};

Result<SessionKfuncs> find_session_kfuncs() {
  auto types = TRY(btf::Types::load());
  const SessionKfuncs found{static_cast<std::int32_t>(types->function_id("bpf_session_is_return")),
                            static_cast<std::int32_t>(types->function_id("bpf_session_cookie"))};
  if (found.is_return == 0 || found.cookie == 0)
    return fail(ErrorKind::not_supported, "this kernel has no sessions (Linux 6.10)");
  return found;
}

}  // namespace

Result<std::vector<std::byte>> specialise(std::span<const std::byte> object, const PlannedProgram& program) {
  const Specialiser specialiser(program);
  return rewritten(object, [&](std::span<bpf_insn> code) { return specialiser.rewrite(code); });
}

Result<std::vector<std::byte>> call_session_kfuncs(std::span<const std::byte> object) {
  auto kfuncs = TRY(find_session_kfuncs());
  return rewritten(object, [&](std::span<bpf_insn> code) {
    for (bpf_insn& each : code) {
      if (each.code != (BPF_JMP | BPF_CALL) || each.src_reg != 0) continue;
      if (each.imm != USDT_PATCH_IS_RETURN && each.imm != USDT_PATCH_SESSION_COOKIE) continue;
      each.imm = each.imm == USDT_PATCH_IS_RETURN ? kfuncs.is_return : kfuncs.cookie;
      each.src_reg = BPF_PSEUDO_KFUNC_CALL;
    }
    return true;
  });
}

std::string license_of(std::span<const std::byte> object) {
  const auto sections = sections_of(object);
  Elf64_Ehdr header;
  if (!sections || object.size() < sizeof(header)) return {};
  std::memcpy(&header, object.data(), sizeof(header));
  Elf64_Shdr names;
  const std::uint64_t at = header.e_shoff + header.e_shstrndx * sizeof(names);
  if (at + sizeof(names) > object.size()) return {};
  std::memcpy(&names, object.data() + at, sizeof(names));
  const auto text_at = [&](std::uint64_t offset, std::uint64_t most) {
    if (offset >= object.size()) return std::string_view{};
    const auto* start = reinterpret_cast<const char*>(object.data()) + offset;
    return std::string_view(start, ::strnlen(start, std::min<std::uint64_t>(most, object.size() - offset)));
  };
  for (const Elf64_Shdr& section : *sections) {
    if (text_at(names.sh_offset + section.sh_name, 64) == "license")
      return std::string(text_at(section.sh_offset, section.sh_size));
  }
  return {};
}

}  // namespace usdt::backends
