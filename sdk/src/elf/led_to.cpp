// SPDX-License-Identifier: BSD-2-Clause
#include "elf/led_to.hpp"

#include <algorithm>
#include <iterator>

#include "arch/leads.hpp"
#include "elf/elf_impl.hpp"

namespace usdt::elf {
namespace {

/// Bytes that are read at once, and the most of an instruction that may be at the end of them.
constexpr std::uint64_t kBlock = std::uint64_t{1} << 20;
constexpr std::uint64_t kLongest = 8;

/// Calls `visit` as arch::for_each_lead() does, for all code of the file.
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
      if (!arch::for_each_lead(file.machine(), code, start, visit)) return false;
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
