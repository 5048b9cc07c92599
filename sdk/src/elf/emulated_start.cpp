// SPDX-License-Identifier: BSD-2-Clause
#include "elf/emulated_start.hpp"

#include <algorithm>

#include "arch/arch.hpp"
#include "arch/instructions.hpp"
#include "elf/elf_impl.hpp"
#include "elf/function_flow.hpp"

namespace usdt::elf {
namespace {

/// Bytes of the first instructions; behind as many, compilers have saved registers or jumped.
constexpr std::size_t kLongestStart = 64;

/// Bytes from the start of `code` to its first instruction but one that the kernel emulates, with none before it that
/// jumps or changes anything that functions are given.
std::optional<std::size_t> first_emulated(Machine machine, ByteView code) {
  for (std::size_t at = 0; at < code.size();) {
    const ByteView there = code.subspan(at);
    const arch::Instruction instruction = arch::decode_instruction(machine, there);
    if (instruction.size == 0) return std::nullopt;
    if (at > 0 && arch::classify_site(machine, there) == SiteClass::emulated &&
        arch::uprobe_refusal(machine, there).empty())
      return at;
    if (instruction.flow != arch::Flow::next || !arch::keeps_arguments(machine, there)) return std::nullopt;
    at += instruction.size;
  }
  return std::nullopt;
}

}  // namespace

std::optional<VirtAddr> emulated_start(const ElfFile& file, const Function& function, const FunctionPieces* pieces,
                                       VirtAddr start) {
  const OpenedFile& opened = *Inside::of(file);
  const auto offset = code_offset(opened.image, start);
  const std::uint64_t skipped = start.value - function.address.value;
  if (!offset || function.size <= skipped || !arch::knows_instructions(file.machine())) return std::nullopt;
  const std::uint64_t size = std::min(function.size - skipped, code_bytes_from(opened.image, start));
  const Bytes code = opened.file.bytes(offset->value, std::min<std::uint64_t>(size, kLongestStart));
  const auto distance = first_emulated(file.machine(), code);
  if (!distance) return std::nullopt;
  const VirtAddr found = start + *distance;
  const auto flow = flow_of(file, function, pieces);
  // A loop may begin between the two, and be entered anew by its jumps.
  const auto passes_by = [&](VirtAddr target) { return target.value > start.value && target.value <= found.value; };
  if (!flow || flow->jumps_by_value + flow->jumps_by_table > 0 || std::ranges::any_of(flow->targets, passes_by))
    return std::nullopt;
  return found;
}

}  // namespace usdt::elf
