// SPDX-License-Identifier: BSD-2-Clause
// Which byte ranges of an object hold notes, decided from the headers alone: a file without probes costs no more.
#include <fmt/format.h>

#include <algorithm>

#include "elf/elf_impl.hpp"
#include "elf/notes.hpp"

namespace usdt::elf {

std::vector<NoteRange> stapsdt_sections(const Image& image) {
  std::vector<NoteRange> ranges;
  const bool nameless = image.names.empty();
  for (std::size_t i = 0; i < image.sections.size(); ++i) {
    const Section& s = image.sections[i];
    // A debug file may keep the header of a section whose bytes it left in the main file.
    if (s.type == SHT_NOBITS || s.type == SHT_NULL || s.size == 0) continue;
    const bool named = image.is_called(s, ".note.stapsdt");
    // sys/sdt.h pads by ".balign 4" in either class, whatever sh_addralign a linker script gave the section.
    if (named || (nameless && s.type == SHT_NOTE)) ranges.push_back({s.offset, s.size, 4, i, named});
  }
  return ranges;
}

std::vector<NoteRange> note_segments(const Image& image) {
  std::vector<NoteRange> ranges;
  for (const Segment& s : image.segments) {
    if (s.type == PT_NOTE && s.filesz != 0)
      ranges.push_back({s.offset, s.filesz, s.align == 8 ? 8ULL : 4ULL, 0, false});
  }
  return ranges;
}

namespace {

std::string build_id_in(const File& file, const Image& image, std::uint64_t offset, std::uint64_t size,
                        std::uint64_t align) {
  constexpr std::uint64_t kEnough = 4096;  // build-id notes have some 36 bytes and come among the first
  constexpr std::string_view kOwner{"GNU\0", 4};
  if (!within(offset, 0, image.size)) return {};
  const Bytes bytes = file.bytes(image.start + offset, std::min({size, image.size - offset, kEnough}));
  NoteReader reader(bytes, align);
  while (const auto note = reader.next()) {
    if (note->owner != kOwner || note->type != NT_GNU_BUILD_ID || note->desc.empty()) continue;
    std::string hex;
    for (const std::uint8_t byte : note->desc) fmt::format_to(std::back_inserter(hex), "{:02x}", byte);
    return hex;
  }
  return {};
}

}  // namespace

std::string build_id(const File& file, const Image& image) {
  if (const Section* s = image.find(".note.gnu.build-id"); s != nullptr && s->type != SHT_NOBITS) {
    if (auto id = build_id_in(file, image, s->offset, s->size, 4); !id.empty()) return id;
  }
  // The segments of a debug file point at bytes it does not have.
  if (image.is_debug_file()) return {};
  for (const NoteRange& range : note_segments(image)) {
    if (auto id = build_id_in(file, image, range.offset, range.size, range.align); !id.empty()) return id;
  }
  return {};
}

}  // namespace usdt::elf
