// SPDX-License-Identifier: BSD-2-Clause
#include "elf/led_to.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "arch/instructions.hpp"
#include "elf/elf_impl.hpp"

namespace usdt::elf {
namespace {

/// Bytes that are read at once, and the most of an instruction that may be at the end of them.
constexpr std::uint64_t kBlock = std::uint64_t{1} << 20;
constexpr std::uint64_t kLongest = 8;

/// Calls `visit(at, target, is_call)` for each place that may have an instruction with a distance to somewhere; until
/// it returns false. `start`: the address of `code`.
template <class Visit>
bool x86_leads(ByteView code, VirtAddr start, Visit&& visit) {
  constexpr std::size_t near = 4;  // bytes of a distance; others have one
  for (std::size_t i = 0; i + 1 < code.size(); ++i) {
    const std::uint8_t byte = code[i];
    const VirtAddr here = start + i;
    const bool is_short = byte == 0xeb || (byte >= 0x70 && byte <= 0x7f) || (byte >= 0xe0 && byte <= 0xe3);
    if (is_short && !visit(here, here + 2 + static_cast<std::uint64_t>(static_cast<std::int8_t>(code[i + 1])), false))
      return false;
    const bool is_near = byte == 0xe8 || byte == 0xe9 || (byte >= 0x80 && byte <= 0x8f);  // the latter behind 0x0f
    if (!is_near || i + 1 + near > code.size()) continue;
    std::int32_t distance = 0;
    std::memcpy(&distance, &code[i + 1], near);
    if (!visit(here, here + 1 + near + static_cast<std::uint64_t>(std::int64_t{distance}), byte == 0xe8)) return false;
  }
  return true;
}

template <class Visit>
bool arm64_leads(ByteView code, VirtAddr start, Visit&& visit) {
  constexpr std::size_t size = 4;
  for (std::size_t i = 0; i + size <= code.size(); i += size) {
    const arch::Instruction each = arch::decode_instruction(Machine::aarch64, code.subspan(i));
    if (!each.target) continue;
    if (!visit(start + i, start + i + static_cast<std::uint64_t>(*each.target), each.flow == arch::Flow::call))
      return false;
  }
  return true;
}

/// The same for all code of the file.
template <class Visit>
bool all_leads(const ElfFile& file, Visit&& visit) {
  const OpenedFile& opened = *Inside::of(file);
  for (const Segment& segment : opened.image.segments) {
    if (segment.type != PT_LOAD || (segment.flags & PF_X) == 0) continue;
    const std::uint64_t size = std::min(segment.filesz, code_bytes_from(opened.image, VirtAddr(segment.vaddr)));
    for (std::uint64_t at = 0; at < size; at += kBlock) {
      const Bytes code =
          opened.file.bytes(opened.image.start + segment.offset + at, std::min(kBlock + kLongest, size - at));
      const VirtAddr start(segment.vaddr + at);
      const bool goes_on =
          file.machine() == Machine::aarch64 ? arm64_leads(code, start, visit) : x86_leads(code, start, visit);
      if (!goes_on) return false;
    }
  }
  return true;
}

}  // namespace

bool is_led_to_by(const ElfFile& file, VirtAddr target, const std::vector<CodePart>& parts) {
  return all_leads(file, [&](VirtAddr at, VirtAddr to, bool is_call) {
    if (to != target) return true;
    return !is_call && std::ranges::any_of(parts, [at](const CodePart& part) { return part.has(at); });
  });
}

std::vector<Lead> leads_into(const ElfFile& file, const std::vector<CodePart>& parts) {
  constexpr std::uint64_t most_code = std::uint64_t{64} << 20;  // a quarter of a second
  constexpr std::size_t most = 1024;
  std::uint64_t code = 0;
  for (const Segment& segment : Inside::of(file)->image.segments)
    if (segment.type == PT_LOAD && (segment.flags & PF_X) != 0) code += segment.filesz;
  std::vector<Lead> found;
  if (code > most_code || parts.empty()) return found;
  static_cast<void>(all_leads(file, [&](VirtAddr at, VirtAddr to, bool) {
    const auto after = std::ranges::upper_bound(parts, to, {}, &CodePart::address);
    if (after == parts.begin()) return true;
    const CodePart& part = *std::prev(after);
    if (part.has(to) && to != part.address && !part.has(at)) found.push_back({at, to});
    return found.size() < most;
  }));
  return found;
}

}  // namespace usdt::elf
