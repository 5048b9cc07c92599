// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/unpack.hpp"

#include <fmt/format.h>
#include <gelf.h>
#include <zstd.h>

#include <new>
#include <string_view>

#include "base/no_memory.hpp"
#include "base/try.hpp"

namespace usdt::dwarf {
namespace {

/// ELFCOMPRESS_ZSTD, which the <elf.h> of glibc before 2.37 lacks.
constexpr std::uint32_t kByZstd = 2;
/// Zeros behind a section's bytes, as FileBytes has them behind a file's.
constexpr std::size_t kZerosBehindSection = 4096;
/// More than zlib allocates to inflate: its window of 32 KB and its tables.
constexpr std::size_t kWorkOfZlib = 1U << 16;

class Unpacker {
 public:
  explicit Unpacker(DwarfFile& file) : file_(file) {}

  [[nodiscard]] Result<void> run() {
    Elf* const elf = file_.elf.get();
    std::size_t names = 0;
    if (elf_getshdrstrndx(elf, &names) != 0) return {};
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
      GElf_Shdr header;
      GElf_Chdr packed;
      if (gelf_getshdr(section, &header) == nullptr || (header.sh_flags & SHF_COMPRESSED) == 0) continue;
      if (gelf_getchdr(section, &packed) == nullptr) continue;
      if (packed.ch_type != kByZstd) {
        if (!has_room_for(section, packed)) return fail(no_memory());
        continue;
      }
      const char* name = elf_strptr(elf, names, header.sh_name);
      TRY(unpack(section, header, packed, name == nullptr ? "" : name));
    }
    return {};
  }

 private:
  /// Lets libelf unpack `section`, as libdw would, which takes one that cannot be unpacked for one that is not there.
  /// This is right for damaged sections; one that there is no memory for would be missing from the results.
  [[nodiscard]] static bool has_room_for(Elf_Scn* section, const GElf_Chdr& packed) {
    return elf_compress(section, 0, 0) >= 0 || has_memory_for(packed.ch_size + kWorkOfZlib);
  }

  [[nodiscard]] Result<void> unpack(Elf_Scn* section, GElf_Shdr header, const GElf_Chdr& packed,
                                    std::string_view name) {
    const Elf_Data* raw = elf_rawdata(section, nullptr);
    const std::size_t head = gelf_getclass(file_.elf.get()) == ELFCLASS64 ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr);
    if (raw == nullptr || raw->d_buf == nullptr || raw->d_size < head) return refuse(name, "it cannot be read");
    const auto* bytes = static_cast<const std::uint8_t*>(raw->d_buf) + head;
    std::vector<std::uint8_t>& made = file_.changed_sections.emplace_back();
    try {
      made.resize(packed.ch_size + kZerosBehindSection);
    } catch (const std::bad_alloc&) {
      return fail(no_memory());
    }
    const std::size_t size = ZSTD_decompress(made.data(), packed.ch_size, bytes, raw->d_size - head);
    if (ZSTD_isError(size) != 0) return refuse(name, ZSTD_getErrorName(size));
    if (size != packed.ch_size) return refuse(name, fmt::format("it has {} bytes, not {}", size, packed.ch_size));
    header.sh_flags &= ~GElf_Xword{SHF_COMPRESSED};
    if (!file_.bytes.let_headers_change(file_.elf.get()) || gelf_update_shdr(section, &header) == 0)
      return refuse(name, "its header cannot be changed");
    if (!replace_bytes(section, std::span(made).first(size))) return refuse(name, "it cannot be read");
    return {};
  }

  [[nodiscard]] tl::unexpected<Error> refuse(std::string_view name, std::string_view why) const {
    return fail(ErrorKind::malformed,
                fmt::format("{}: {}, which is compressed with zstd: {}", file_.path.string(), name, why));
  }

  DwarfFile& file_;
};

}  // namespace

Result<void> unpack_sections(DwarfFile& file) { return Unpacker(file).run(); }

}  // namespace usdt::dwarf
