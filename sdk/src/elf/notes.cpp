// SPDX-License-Identifier: BSD-2-Clause
#include "elf/notes.hpp"

#include <algorithm>

namespace usdt::elf {
namespace {

constexpr std::uint64_t kHeaderSize = 12;  // Elf32_Nhdr and Elf64_Nhdr are the same three 32-bit words

constexpr std::uint64_t padded(std::uint64_t size, std::uint64_t align) noexcept {
  return (size + align - 1) & ~(align - 1);
}

tl::unexpected<const char*> bad(const char* what) noexcept { return tl::unexpected<const char*>(what); }

/// Linkers fill the gap before an aligned input section with zeroes. A zero word is such fill, and not the namesz of a
/// nameless note, when the next word is zero too or a note with a proper owner starts there.
bool is_fill(ByteView bytes, std::uint64_t at) noexcept {
  if (!within(at, 4, bytes.size()) || load<std::uint32_t>(bytes, at) != 0) return false;
  if (!within(at, 8, bytes.size())) return true;
  const std::uint64_t namesz = little(load<std::uint32_t>(bytes, at + 4));
  if (namesz == 0) return true;
  const std::uint64_t name = at + 4 + kHeaderSize;
  return within(name, namesz, bytes.size()) && bytes[name] != 0 && bytes[name + namesz - 1] == 0;
}

}  // namespace

std::optional<Note> NoteReader::next() noexcept {
  while (is_fill(bytes_, at_)) at_ += 4;
  const std::uint64_t left = bytes_.size() - at_;
  if (left < 4) return std::nullopt;
  if (left < kHeaderSize) {
    damage_ = {at_, kHeaderSize, left};
    at_ = bytes_.size();
    return std::nullopt;
  }
  const std::uint64_t namesz = little(load<std::uint32_t>(bytes_, at_));
  const std::uint64_t descsz = little(load<std::uint32_t>(bytes_, at_ + 4));
  const std::uint64_t desc = padded(kHeaderSize + namesz, align_);
  if (desc + descsz > left) {
    damage_ = {at_, desc + descsz, left};
    at_ = bytes_.size();
    return std::nullopt;
  }
  Note note;
  note.offset = at_;
  note.type = little(load<std::uint32_t>(bytes_, at_ + 8));
  note.owner = as_text(bytes_.subspan(at_ + kHeaderSize, namesz));
  note.desc_offset = at_ + desc;
  note.desc = bytes_.subspan(note.desc_offset, descsz);
  at_ += std::min(padded(desc + descsz, align_), left);
  return note;
}

tl::expected<StapsdtRecord, const char*> parse_stapsdt(const Note& note, bool is64) noexcept {
  if (note.owner != kStapsdtOwner) return bad("owner's name is not 8 bytes with its NUL");
  if (note.type != kStapsdtType) return bad("type is not 3");
  const std::uint64_t word = is64 ? 8 : 4;
  if (note.desc.size() < 3 * word) return bad("descriptor is too short for its three addresses");
  StapsdtRecord record;
  record.pc = load_word(note.desc, 0, is64);
  record.base = load_word(note.desc, word, is64);
  record.semaphore = load_word(note.desc, 2 * word, is64);

  std::string_view text = as_text(note.desc.subspan(3 * word));
  const auto provider = take_string(text);
  if (!provider) return bad("provider is not terminated");
  const auto name = take_string(text);
  if (!name) return bad("name is not terminated");
  if (name->empty()) return bad("name is empty");
  const auto args = take_string(text);
  if (!args) return bad(text.empty() ? "argument text is missing" : "argument text is not terminated");
  record.provider = *provider;
  record.name = *name;
  record.args = *args;
  return record;
}

}  // namespace usdt::elf
