// SPDX-License-Identifier: BSD-2-Clause
#include "attach/specialise.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <linux/bpf.h>

#include <cstring>
#include <optional>

namespace usdt::backends {
namespace {

constexpr std::uint8_t kMove = BPF_ALU64 | 0xb0 /* BPF_MOV */ | BPF_K;
constexpr std::uint8_t kLoad = BPF_LDX | 0x18 /* BPF_DW */ | BPF_MEM;
constexpr std::uint8_t kShiftLeft = BPF_ALU64 | 0x60 /* BPF_LSH */ | BPF_K;
constexpr std::uint8_t kShiftRight = BPF_ALU64 | 0x70 /* BPF_RSH */ | BPF_K;
constexpr std::uint8_t kShiftSigned = BPF_ALU64 | 0xc0 /* BPF_ARSH */ | BPF_K;
constexpr std::uint8_t kLoadImmediate = 0x18;  // BPF_LD | BPF_IMM | BPF_DW, of two slots

/// Which argument an immediate is a mark of.
std::optional<std::size_t> argument_of(std::int32_t immediate, std::int32_t mark) {
  const std::int64_t n = std::int64_t{immediate} - mark;
  return n >= 0 && n < USDT_LINK_ARGS ? std::optional(static_cast<std::size_t>(n)) : std::nullopt;
}

bool is_whole_register(const usdt_arg_spec& arg) {
  return arg.kind == USDT_ARG_REG && arg.shift == 0 && (arg.flags & USDT_ARG_PAIR) == 0;
}

class Specialiser {
 public:
  explicit Specialiser(const EncodedSpec& spec) : spec_(spec) {}

  /// False where a mark stands alone.
  [[nodiscard]] bool rewrite(std::span<bpf_insn> code) const {
    for (std::size_t i = 0; i < code.size(); ++i) {
      bpf_insn& here = code[i];
      if (here.code == kLoadImmediate) {
        ++i;
      } else if (here.code == kMove) {
        if (const auto n = argument_of(here.imm, USDT_MARK_KIND)) here.imm = kind_of(*n);
      } else if (here.code == kShiftLeft) {
        const auto n = argument_of(here.imm, USDT_MARK_CUT);
        if (n && (i == 0 || i + 1 == code.size() || !read_register(code.subspan(i - 1, 3), *n))) return false;
      }
    }
    return true;
  }

 private:
  [[nodiscard]] std::int32_t kind_of(std::size_t n) const {
    if (n >= spec_.args.size()) return USDT_OWN_NONE;
    return is_whole_register(spec_.args[n]) ? USDT_OWN_REG : USDT_OWN_OTHER;
  }

  [[nodiscard]] bool read_register(std::span<bpf_insn> three, std::size_t n) const {
    bpf_insn &load = three[0], &left = three[1], &right = three[2];
    if (load.code != kLoad || right.code != kShiftRight || right.imm != left.imm) return false;
    left.imm = right.imm = 0;
    if (kind_of(n) != USDT_OWN_REG) return true;  // the verifier will not see it
    const usdt_arg_spec& arg = spec_.args[n];
    load.off = static_cast<std::int16_t>(8 * arg.reg);
    left.imm = right.imm = 64 - 8 * arg.size;
    if ((arg.flags & USDT_ARG_SIGNED) != 0) right.code = kShiftSigned;
    return true;
  }

  const EncodedSpec& spec_;
};

/// Sections of code, as offset and size in the file; nullopt where one is beyond it.
std::optional<std::vector<Elf64_Shdr>> code_sections(std::span<const std::byte> object) {
  Elf64_Ehdr header;
  if (object.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, object.data(), sizeof(header));
  const std::uint64_t room = object.size();
  if (header.e_shoff > room || header.e_shnum * sizeof(Elf64_Shdr) > room - header.e_shoff) return std::nullopt;
  std::vector<Elf64_Shdr> found;
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, object.data() + header.e_shoff + i * sizeof(section), sizeof(section));
    if (section.sh_type != SHT_PROGBITS || (section.sh_flags & SHF_EXECINSTR) == 0) continue;
    if (section.sh_offset > room || section.sh_size > room - section.sh_offset) return std::nullopt;
    found.push_back(section);
  }
  return found;
}

}  // namespace

Result<std::vector<std::byte>> specialise(std::span<const std::byte> object, const EncodedSpec& spec) {
  const auto sections = code_sections(object);
  if (!sections) return fail(ErrorKind::malformed, "BPF object: its sections reach beyond its end");
  std::vector<std::byte> out(object.begin(), object.end());
  const Specialiser specialiser(spec);
  for (const Elf64_Shdr& section : *sections) {
    std::vector<bpf_insn> code(section.sh_size / sizeof(bpf_insn));
    const std::size_t bytes = code.size() * sizeof(bpf_insn);
    if (bytes == 0) continue;
    std::memcpy(code.data(), out.data() + section.sh_offset, bytes);
    if (!specialiser.rewrite(code))
      return fail(ErrorKind::malformed, "BPF object: its instructions are not as usdt.bpf.h has them");
    std::memcpy(out.data() + section.sh_offset, code.data(), bytes);
  }
  return out;
}

}  // namespace usdt::backends
