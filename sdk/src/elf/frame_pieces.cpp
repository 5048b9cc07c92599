// SPDX-License-Identifier: BSD-2-Clause
#include "elf/frame_pieces.hpp"

#include <algorithm>

#include "arch/arch.hpp"

namespace usdt::elf {
namespace {

constexpr std::uint64_t kWord = 4;
constexpr std::uint8_t kRelative = 0x1b;  // DW_EH_PE_pcrel | DW_EH_PE_sdata4
constexpr std::uint8_t kTable = 0x3b;     // DW_EH_PE_datarel | DW_EH_PE_sdata4
constexpr std::uint8_t kCount = 0x03;     // DW_EH_PE_udata4

std::uint64_t extended(std::uint32_t value) noexcept {
  return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(value)});
}

}  // namespace

FramePieces::FramePieces(const File& file, const Image& image) : machine_(image.machine) {
  const Section* head = image.find(".eh_frame_hdr");
  const Section* frames = image.find(".eh_frame");
  known_ = (frames == nullptr || frames->size <= kWord) && !image.sections.empty();
  if (head == nullptr || frames == nullptr) return;
  const Bytes table = section_bytes(file, image, *head);
  constexpr std::uint64_t first = 4 + 2 * kWord;  // behind version, three encodings, a pointer and the count
  if (table.size() < first || table[0] != 1 || table[1] != kRelative || table[2] != kCount || table[3] != kTable)
    return;
  const std::uint64_t count =
      std::min<std::uint64_t>(little(load<std::uint32_t>(table, 4 + kWord)), (table.size() - first) / (2 * kWord));
  base_ = frames->addr;
  bytes_ = section_bytes(file, image, *frames);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t at = first + i * 2 * kWord;
    frames_.push_back(
        {.start = image.wrap(head->addr + extended(little(load<std::uint32_t>(table, at)))),
         .description = image.wrap(head->addr + extended(little(load<std::uint32_t>(table, at + kWord))))});
  }
  std::ranges::sort(frames_, {}, &Frame::start);
  known_ = true;
}

std::uint8_t FramePieces::byte_at(std::uint64_t address) const noexcept {
  return address - base_ < bytes_.size() ? bytes_[address - base_] : std::uint8_t{0};
}

std::uint32_t FramePieces::word_at(std::uint64_t address) const noexcept {
  return within(address - base_, kWord, bytes_.size()) ? little(load<std::uint32_t>(bytes_, address - base_)) : 0;
}

/// Whether the rules that hold at the first instruction are others than those of each function's: they begin with how
/// far the frame is from the stack pointer, or in which other register (DWARF 5, 6.4.2).
bool FramePieces::begins_within(std::uint64_t instructions, std::uint64_t end) const {
  const arch::Arch& arch = arch::for_machine(machine_);
  if (!arch.known_code.pieces) return false;
  for (std::uint64_t at = instructions; at < end; ++at) {
    switch (byte_at(at)) {
      case 0x00:  // DW_CFA_nop
        continue;
      case 0x0e:  // DW_CFA_def_cfa_offset
        return byte_at(at + 1) != arch.entry_frame;
      case 0x0c:  // DW_CFA_def_cfa
      case 0x0d:  // DW_CFA_def_cfa_register
      case 0x0f:  // DW_CFA_def_cfa_expression
        return true;
      default:
        return false;
    }
  }
  return false;
}

std::optional<FramePieces::Frame> FramePieces::frame_at(VirtAddr address) const {
  const auto after = std::ranges::upper_bound(frames_, address.value, {}, &Frame::start);
  if (after == frames_.begin()) return std::nullopt;
  const Frame& frame = *std::prev(after);
  const std::uint64_t length = word_at(frame.description);
  const std::uint64_t size = word_at(frame.description + 3 * kWord);
  const std::uint64_t starts = frame.description + 2 * kWord + extended(word_at(frame.description + 2 * kWord));
  if (length < 3 * kWord + 1 || starts != frame.start || address.value - frame.start >= size) return std::nullopt;
  return frame;
}

bool FramePieces::may_land_in(VirtAddr address) const {
  if (!known_) return true;
  const auto frame = frame_at(address);
  if (!frame) return false;
  // Behind the range are as many bytes as one byte says: the address of the table, or 0.
  const std::uint64_t at = frame->description + 4 * kWord;
  const std::uint64_t size = byte_at(at);
  if (size > 127) return true;
  for (std::uint64_t i = 1; i <= size; ++i)
    if (byte_at(at + i) != 0) return true;
  return false;
}

std::optional<CodePart> FramePieces::piece_at(VirtAddr address) const {
  const auto found = frame_at(address);
  if (!found) return std::nullopt;
  const Frame& frame = *found;
  const std::uint64_t length = word_at(frame.description);
  const CodePart piece{.address = VirtAddr(frame.start), .size = word_at(frame.description + 3 * kWord)};
  if (address.value != frame.start) return piece;
  // Behind its range are as many bytes of data as one byte says, of what the compiler made.
  const std::uint64_t data = byte_at(frame.description + 4 * kWord);
  const std::uint64_t instructions = frame.description + 4 * kWord + 1 + data;
  if (data > 127 || !begins_within(instructions, frame.description + kWord + length)) return std::nullopt;
  return piece;
}

}  // namespace usdt::elf
