// SPDX-License-Identifier: BSD-2-Clause
// function+offset: where an instruction begins.
#include <fmt/format.h>

#include <algorithm>

#include "arch/instructions.hpp"
#include "elf/elf_impl.hpp"
#include "elf/functions.hpp"

namespace usdt::elf {
namespace {

constexpr std::size_t kLongestInstruction = 15;  // of x86

}  // namespace

Result<FileOffset> place_in_function(const ElfFile& file, const Function& function, std::uint64_t distance) {
  const OpenedFile& opened = *Inside::of(file);
  const auto refuse = [&](ErrorKind kind, std::string_view why) {
    return fail(kind, fmt::format("{}+{:#x}: {}", function.name, distance, why));
  };
  if (!function.offset) return refuse(ErrorKind::not_supported, "the function's code is not in this file");
  if (distance == 0) return *function.offset;
  const std::uint64_t there = code_bytes_from(opened.image, function.address);
  const std::uint64_t size = function.size == 0 ? there : std::min(function.size, there);
  if (distance >= size) {
    return refuse(ErrorKind::invalid_argument, fmt::format("beyond the function's end, which is at +{:#x}", size));
  }
  if (!arch::knows_instructions(file.machine())) {
    return refuse(ErrorKind::not_supported, "this build of the library cannot tell x86 instructions apart");
  }
  const Bytes code = opened.file.bytes(function.offset->value, std::min(distance + kLongestInstruction, there));
  for (std::uint64_t at = 0;;) {
    if (at == distance) return *function.offset + distance;
    const std::uint64_t next =
        at < code.size() ? at + arch::instruction_size(file.machine(), ByteView(code).subspan(at)) : at;
    if (next == at) {
      return refuse(ErrorKind::not_supported,
                    fmt::format("at +{:#x} is no known instruction, so that the ones behind it cannot be told", at));
    }
    if (next > distance) {
      return refuse(
          ErrorKind::invalid_argument,
          fmt::format("within the {}-byte instruction at +{:#x}; the next one is at +{:#x}", next - at, at, next));
    }
    at = next;
  }
}

}  // namespace usdt::elf
