// SPDX-License-Identifier: BSD-2-Clause
#include "program/expand_calls.hpp"

#include <elf.h>
#include <linux/btf.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "base/try.hpp"
#include "expr/compile.hpp"

namespace usdt::backends {
namespace {

/// The new place of each instruction of a section; one more entry for the section's end.
using Moves = std::vector<std::size_t>;

constexpr std::uint8_t kLoadImmediate = BPF_LD | BPF_IMM | 0x18 /* BPF_DW */;
constexpr std::uint32_t kCallRelocation = 10;  // R_BPF_64_32

tl::unexpected<Error> malformed(std::string_view what) {
  return fail(ErrorKind::malformed, "BPF object: " + std::string(what));
}

/// Bytes of an ELF file, read and written at checked places.
class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> bytes) : bytes_(bytes.begin(), bytes.end()) {}

  template <class T>
  [[nodiscard]] std::optional<T> at(std::uint64_t offset) const {
    if (offset > bytes_.size() || sizeof(T) > bytes_.size() - offset) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  template <class T>
  void put(std::uint64_t offset, const T& value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof(T));
  }
  [[nodiscard]] bool has(std::uint64_t offset, std::uint64_t size) const {
    return offset <= bytes_.size() && size <= bytes_.size() - offset;
  }
  [[nodiscard]] std::string_view text(std::uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    const auto* start = reinterpret_cast<const char*>(bytes_.data()) + offset;
    return {start, ::strnlen(start, bytes_.size() - static_cast<std::size_t>(offset))};
  }
  /// Appends it at a multiple of 8 bytes; returns the offset.
  std::uint64_t append(std::span<const bpf_insn> code) {
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    const std::size_t offset = bytes_.size();
    bytes_.resize(offset + code.size_bytes());
    std::memcpy(bytes_.data() + offset, code.data(), code.size_bytes());
    return offset;
  }
  std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

bool is_call_of(const bpf_insn& insn, std::int32_t placeholder) {
  return insn.code == (BPF_JMP | BPF_CALL) && insn.src_reg == 0 && insn.imm == placeholder;
}

constexpr std::uint8_t kFramePointer = 10;
constexpr bpf_insn kSetR0{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0};

bool is_frame_load(const bpf_insn& insn) {
  return insn.code == (BPF_LDX | BPF_MEM | 0x18 /* BPF_DW */) && insn.src_reg == kFramePointer;
}

/// Whether it goes to another instruction of its section, `off` behind the next one.
bool is_jump(const bpf_insn& insn) {
  const unsigned kind = BPF_CLASS(insn.code);
  return (kind == BPF_JMP || kind == 0x06 /* BPF_JMP32 */) && BPF_OP(insn.code) != BPF_CALL &&
         BPF_OP(insn.code) != BPF_EXIT;
}

class Expander {
 public:
  Expander(std::span<const std::byte> object, std::int32_t placeholder, std::span<const bpf_insn> code)
      : bytes_(object), placeholder_(placeholder), code_(code) {}

  Result<std::vector<std::byte>> run() {
    TRY(read_sections());
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      if (sections_[i].sh_type != SHT_PROGBITS || (sections_[i].sh_flags & SHF_EXECINSTR) == 0) continue;
      TRY(expand(i));
    }
    if (moves_.empty()) return fail(ErrorKind::not_found, "no such call");
    if (expr::needs_row(code_) && !has_row_)
      return fail(ErrorKind::invalid_argument,
                  "the plan fills a table (PlanOptions::table), and no program of the BPF object has a place for its "
                  "rows: tables are Tracer's");
    for (const Elf64_Shdr& section : sections_) {
      TRY(move_rest(section));
    }
    for (std::size_t i = 0; i < sections_.size(); ++i)
      bytes_.put(header_.e_shoff + i * sizeof(Elf64_Shdr), sections_[i]);
    return std::move(bytes_).take();
  }

 private:
  Result<void> read_sections() {
    const auto header = bytes_.at<Elf64_Ehdr>(0);
    if (!header || header->e_shentsize != sizeof(Elf64_Shdr)) return malformed("no section headers");
    header_ = *header;
    for (std::size_t i = 0; i < header_.e_shnum; ++i) {
      const auto section = bytes_.at<Elf64_Shdr>(header_.e_shoff + i * sizeof(Elf64_Shdr));
      if (!section || (section->sh_type != SHT_NOBITS && !bytes_.has(section->sh_offset, section->sh_size)))
        return malformed("its sections reach beyond its end");
      sections_.push_back(*section);
    }
    return {};
  }

  [[nodiscard]] std::string_view name_of(const Elf64_Shdr& section) const {
    if (header_.e_shstrndx >= sections_.size()) return {};
    return bytes_.text(sections_[header_.e_shstrndx].sh_offset + section.sh_name);
  }

  /// The section's code with the instructions in it, behind everything else in the file.
  Result<void> expand(std::size_t number) {
    Elf64_Shdr& section = sections_[number];
    std::vector<bpf_insn> old;
    for (std::uint64_t at = 0; at + sizeof(bpf_insn) <= section.sh_size; at += sizeof(bpf_insn))
      old.push_back(*bytes_.at<bpf_insn>(section.sh_offset + at));
    if (std::ranges::none_of(old, [&](const bpf_insn& insn) { return is_call_of(insn, placeholder_); })) return {};
    Moves moves(old.size() + 1);
    for (std::size_t i = 0; i < old.size(); ++i)
      moves[i + 1] = moves[i] + (is_call_of(old[i], placeholder_) ? code_.size() : 1);
    std::vector<bpf_insn> out;
    out.reserve(moves.back());
    for (std::size_t i = 0; i < old.size(); ++i) {
      if (is_call_of(old[i], placeholder_)) {
        if (out.size() < 2 || !is_frame_load(out.back()) || !is_frame_load(out.rbegin()[1]))
          return fail(ErrorKind::invalid_argument,
                      "a program asks about hits (usdt_filter()) with a window that is not on its own stack");
        has_row_ |= out.back().off != out.rbegin()[1].off;
        const auto placed = expr::in_frame(code_, out.rbegin()[1].off, out.back().off);
        out.back() = kSetR0;  // the loads were to say where: what is there may not be written yet
        out.rbegin()[1] = kSetR0;
        out.insert(out.end(), placed.begin(), placed.end());
        continue;
      }
      if (!move_target(old, i, moves)) return fail(ErrorKind::limit, "a jump of the program becomes too long");
      out.push_back(old[i]);
      if (old[i].code == kLoadImmediate && i + 1 < old.size()) out.push_back(old[++i]);
    }
    section.sh_offset = bytes_.append(out);
    section.sh_size = out.size() * sizeof(bpf_insn);
    moves_.emplace(number, std::move(moves));
    return {};
  }

  static bool move_target(std::vector<bpf_insn>& code, std::size_t i, const Moves& moves) {
    bpf_insn& insn = code[i];
    const bool calls = insn.code == (BPF_JMP | BPF_CALL) && insn.src_reg == BPF_PSEUDO_CALL;
    if (!calls && !is_jump(insn)) return true;
    const std::int64_t to = static_cast<std::int64_t>(i) + 1 + (calls ? insn.imm : insn.off);
    if (to < 0 || to >= static_cast<std::int64_t>(moves.size())) return calls;  // relocated: not known yet
    const std::int64_t distance =
        static_cast<std::int64_t>(moves[static_cast<std::size_t>(to)]) - static_cast<std::int64_t>(moves[i]) - 1;
    if (calls) {
      insn.imm = static_cast<std::int32_t>(distance);
      return true;
    }
    if (distance != static_cast<std::int16_t>(distance)) return false;
    insn.off = static_cast<std::int16_t>(distance);
    return true;
  }

  [[nodiscard]] const Moves* moves_of(std::size_t section) const {
    const auto found = moves_.find(section);
    return found == moves_.end() ? nullptr : &found->second;
  }
  /// Returns where byte `offset` of a section is now.
  static std::uint64_t moved(const Moves& moves, std::uint64_t offset) {
    const auto insn = static_cast<std::size_t>(std::min<std::uint64_t>(offset / sizeof(bpf_insn), moves.size() - 1));
    return moves[insn] * sizeof(bpf_insn) + offset % sizeof(bpf_insn);
  }

  Result<void> move_rest(const Elf64_Shdr& section) {
    if (section.sh_type == SHT_SYMTAB) return move_symbols(section);
    if (section.sh_type == SHT_REL) return move_relocations(section);
    if (section.sh_type == SHT_PROGBITS && name_of(section) == ".BTF.ext") return move_lines(section);
    return {};
  }

  Result<void> move_symbols(const Elf64_Shdr& section) {
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
      auto symbol = *bytes_.at<Elf64_Sym>(section.sh_offset + at);
      const Moves* moves = moves_of(symbol.st_shndx);
      if (moves == nullptr) continue;
      const std::uint64_t end = moved(*moves, symbol.st_value + symbol.st_size);
      symbol.st_value = moved(*moves, symbol.st_value);
      if (symbol.st_size != 0) symbol.st_size = end - symbol.st_value;
      bytes_.put(section.sh_offset + at, symbol);
    }
    return {};
  }

  Result<void> move_relocations(const Elf64_Shdr& section) {
    if (section.sh_link >= sections_.size() || section.sh_info >= sections_.size())
      return malformed("relocations of no section");
    const Moves* moves = moves_of(section.sh_info);
    for (std::uint64_t at = 0; at + sizeof(Elf64_Rel) <= section.sh_size; at += sizeof(Elf64_Rel)) {
      auto relocation = *bytes_.at<Elf64_Rel>(section.sh_offset + at);
      if (moves != nullptr) {
        relocation.r_offset = moved(*moves, relocation.r_offset);
        bytes_.put(section.sh_offset + at, relocation);
      }
      move_callee(section, relocation);
    }
    return {};
  }

  /// A call by its section's symbol has the distance of the function from the section's start in the instruction.
  void move_callee(const Elf64_Shdr& section, const Elf64_Rel& relocation) {
    if (ELF64_R_TYPE(relocation.r_info) != kCallRelocation) return;
    const auto symbol =
        bytes_.at<Elf64_Sym>(sections_[section.sh_link].sh_offset + ELF64_R_SYM(relocation.r_info) * sizeof(Elf64_Sym));
    if (!symbol || ELF64_ST_TYPE(symbol->st_info) != STT_SECTION) return;
    const Moves* moves = moves_of(symbol->st_shndx);
    const std::uint64_t at = sections_[section.sh_info].sh_offset + relocation.r_offset;
    auto insn = bytes_.at<bpf_insn>(at);
    if (moves == nullptr || !insn || insn->imm < -1) return;
    const auto callee = static_cast<std::uint64_t>(insn->imm + 1) * sizeof(bpf_insn);
    insn->imm = static_cast<std::int32_t>(moved(*moves, callee) / sizeof(bpf_insn)) - 1;
    bytes_.put(at, *insn);
  }

  /// .BTF.ext: what it says of functions, lines and CO-RE relocations, by byte offset (Documentation/bpf/btf.rst).
  Result<void> move_lines(const Elf64_Shdr& section) {
    struct Header {
      std::uint16_t magic;
      std::uint8_t version;
      std::uint8_t flags;
      std::uint32_t size;
      std::uint32_t parts[6];  // offset and bytes of functions, lines, CO-RE relocations
    };
    const auto header = bytes_.at<Header>(section.sh_offset);
    if (!header) return malformed("a short .BTF.ext");
    const std::size_t parts = header->size >= sizeof(Header) ? 3 : 2;
    for (std::size_t i = 0; i < parts; ++i) {
      const std::uint64_t at = section.sh_offset + header->size + header->parts[2 * i];
      if (!move_records(at, header->parts[2 * i + 1])) return malformed("a .BTF.ext that reaches beyond its end");
    }
    return {};
  }

  bool move_records(std::uint64_t at, std::uint64_t size) {
    if (size == 0) return true;
    const std::uint64_t end = at + size;
    const auto record_size = bytes_.at<std::uint32_t>(at);
    if (!record_size || *record_size < sizeof(std::uint32_t) || !bytes_.has(at, size)) return false;
    at += sizeof(std::uint32_t);
    while (at + 8 <= end) {
      const auto name = *bytes_.at<std::uint32_t>(at);
      const auto count = *bytes_.at<std::uint32_t>(at + 4);
      at += 8;
      if (std::uint64_t{count} * *record_size > end - at) return false;
      const Moves* moves = moves_of_named(name);
      for (std::uint32_t i = 0; i < count; ++i, at += *record_size) {
        if (moves != nullptr) bytes_.put(at, static_cast<std::uint32_t>(moved(*moves, *bytes_.at<std::uint32_t>(at))));
      }
    }
    return true;
  }

  /// Returns the moves of the section whose name is at `offset` of the strings of .BTF.
  [[nodiscard]] const Moves* moves_of_named(std::uint32_t offset) const {
    const auto btf = std::ranges::find_if(sections_, [&](const auto& section) { return name_of(section) == ".BTF"; });
    if (btf == sections_.end()) return nullptr;
    const auto header = bytes_.at<btf_header>(btf->sh_offset);
    if (!header) return nullptr;
    const std::string_view name = bytes_.text(btf->sh_offset + header->hdr_len + header->str_off + offset);
    for (const auto& [number, moves] : moves_) {
      if (name_of(sections_[number]) == name) return &moves;
    }
    return nullptr;
  }

  Bytes bytes_;
  std::int32_t placeholder_;
  std::span<const bpf_insn> code_;
  bool has_row_ = false;  ///< some call has
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
  std::map<std::size_t, Moves> moves_;  ///< by section
};

}  // namespace

Result<std::vector<std::byte>> expand_calls(std::span<const std::byte> object, std::int32_t placeholder,
                                            std::span<const bpf_insn> code) {
  return Expander(object, placeholder, code).run();
}

}  // namespace usdt::backends
