// SPDX-License-Identifier: BSD-2-Clause
// From note ranges to sites: first what the notes say, then what the main file knows about those places.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "elf/code_reader.hpp"
#include "elf/elf_impl.hpp"
#include "elf/notes.hpp"

namespace usdt::elf {
namespace {

// Half a million probes; a range beyond that is a lie not worth its memory.
constexpr std::uint64_t kMaxNoteRange = 64ULL << 20;

/// Reads the notes of one object, range by range.
class NoteCollector {
 public:
  NoteCollector(const File& file, const Image& image, std::vector<Site>& sites, Warnings& warnings,
                const std::stop_token& stop)
      : file_(file), image_(image), sites_(sites), warnings_(warnings), stop_(stop), claims_(file, image) {
    if (image.type == ET_REL) relocations_.emplace(file, image, warnings);
  }

  void collect(const std::vector<NoteRange>& ranges) {
    for (const NoteRange& range : ranges) {
      if (stop_.stop_requested()) return;
      collect(range);
    }
  }

 private:
  void collect(const NoteRange& range) {
    Bytes bytes = read(range);
    std::vector<std::uint64_t> relocated;
    if (relocations_ && range.section != 0) relocated = relocations_->apply(range.section, bytes);
    // A stapsdt note of an ELF64 file has 60 bytes or more. Only once: many small reservations would each move all.
    if (sites_.empty()) sites_.reserve(bytes.size() / 64);
    NoteReader reader(bytes, range.align);
    while (const auto note = reader.next()) {
      if (stop_.stop_requested()) return;
      take(*note, range, relocated);
    }
    if (const auto& damage = reader.damage()) {
      warn(range, damage->offset,
           fmt::format("claims {} bytes, {} are left: the rest is not read", damage->claimed, damage->left));
    }
  }

  void warn(const NoteRange& range, std::uint64_t at, std::string_view what) {
    const std::uint64_t where = image_.start + range.offset + at;
    warnings_.add(where, fmt::format("note at file offset {:#x}: {}", where, what));
  }

  Bytes read(const NoteRange& range) {
    const std::uint64_t where = image_.start + range.offset;
    const std::uint64_t there = range.offset < image_.size ? image_.size - range.offset : 0;
    const std::uint64_t wanted = std::min({range.size, there, kMaxNoteRange});
    const std::uint64_t free = claims_.take(range.offset, wanted);
    Bytes bytes = file_.bytes(where, free);
    if (free < wanted) {
      warnings_.add(where, fmt::format("notes at file offset {:#x}: of {} bytes claimed {} were read for another "
                                       "section or segment already, and are read once",
                                       where, range.size, wanted - free));
    } else if (bytes.size() < range.size) {
      warnings_.add(where, fmt::format("notes at file offset {:#x}: {} bytes claimed, only {} could be read", where,
                                       range.size, bytes.size()));
    }
    return bytes;
  }

  void take(const Note& note, const NoteRange& range, const std::vector<std::uint64_t>& relocated) {
    if (note.owner.substr(0, 7) != kStapsdtOwner.substr(0, 7)) {
      if (range.only_stapsdt)
        warn(range, note.offset, fmt::format("foreign owner '{}', skipped", printable(note.owner)));
      return;
    }
    const auto record = parse_stapsdt(note, image_.is64);
    if (!record) return warn(range, note.offset, fmt::format("{}, skipped", record.error()));
    Site& site = sites_.emplace_back();
    site.provider = record->provider;
    site.name = record->name;
    site.args_text = record->args;
    site.pc = VirtAddr(record->pc);
    site.base = VirtAddr(record->base);
    site.semaphore = VirtAddr(record->semaphore);
    const std::uint64_t word = note.desc_offset + (image_.is64 ? 16 : 8);
    site.has_semaphore = record->semaphore != 0 || std::ranges::binary_search(relocated, word);
    site.pc_adjusted = site.pc;
    site.semaphore_adjusted = site.semaphore;
  }

  static std::string printable(std::string_view owner) {
    std::string text;
    for (const char c : owner.substr(0, std::min<std::size_t>(owner.find('\0'), 32))) {
      text += c >= ' ' && c <= '~' ? c : '?';
    }
    return text;
  }

  const File& file_;
  const Image& image_;
  std::vector<Site>& sites_;
  Warnings& warnings_;
  const std::stop_token& stop_;
  Claims claims_;
  std::optional<NoteRelocations> relocations_;
};

/// Moves `site` by as much as prelink(8) moved the file since its notes were written: notes are in no loaded segment
/// and keep their words, .stapsdt.base is loaded and moves along. The semaphore moves with everything else.
void correct_prelink(const Image& image, std::uint64_t base, Site& site) noexcept {
  if (base == 0 || site.base.value == 0) return;
  const std::uint64_t shift = base - site.base.value;
  site.pc_adjusted = VirtAddr(image.wrap(site.pc.value + shift));
  if (site.semaphore.value != 0) site.semaphore_adjusted = VirtAddr(image.wrap(site.semaphore.value + shift));
}

}  // namespace

void Warnings::add(std::uint64_t file_offset, std::string message) {
  if (out_.size() > kMax) return;
  if (out_.size() == kMax) message = "further warnings are left out";
  out_.push_back({FileOffset(file_offset), prefix_ + message});
}

void collect_notes(const File& file, const Image& image, std::vector<Site>& sites, Warnings& warnings,
                   const std::stop_token& stop) {
  for (const ScanWarning& w : image.warnings) warnings.add(w.where.value, w.message);
  const std::size_t before = sites.size();
  NoteCollector(file, image, sites, warnings, stop).collect(stapsdt_sections(image));
  if (sites.size() != before || image.is_debug_file()) return;
  NoteCollector(file, image, sites, warnings, stop).collect(note_segments(image));
}

void place_sites(const File& file, const Image& image, std::uint64_t base, std::vector<Site>& sites) {
  if (image.type == ET_REL) return;
  const bool has_code = !image.is_debug_file();
  CodeReader reader(file, image);
  for (Site& site : sites) {
    correct_prelink(image, base, site);
    if (!has_code) continue;
    if (site.has_semaphore) site.semaphore_offset = data_offset(image, site.semaphore_adjusted, 2);
    const Code code = reader.at(site.pc_adjusted);
    site.offset = code.offset;
    site.bytes = code.bytes;
    site.site_class = code.site_class;
  }
}

}  // namespace usdt::elf
