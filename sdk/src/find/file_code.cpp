// SPDX-License-Identifier: BSD-2-Clause
#include "find/file_code.hpp"

#include <span>

#include "arch/arch.hpp"
#include "arch/instructions.hpp"
#include "arch/patch_room.hpp"
#include "elf/unwinding.hpp"

namespace usdt::find {

FileCode::FileCode(const ElfFile& elf, const StopToken& stop)
    : elf_(elf),
      stop_(stop),
      reader_(elf::Inside::of(elf)->file, elf::Inside::of(elf)->image),
      go_(elf::go_program(elf::Inside::of(elf)->file, elf::Inside::of(elf)->image)) {}

bool FileCode::is_plain_program() {
  if (!plain_)
    plain_ = !go_ && elf::is_program_that_looks_at_no_caller(elf::Inside::of(elf_)->file, image()) &&
             !may_be_left_by_exceptions() && !may_switch_stacks();
  return *plain_;
}

elf::ReturnAddresses& FileCode::return_addresses() {
  if (!return_addresses_) return_addresses_.emplace(elf_, pieces());
  return *return_addresses_;
}

bool FileCode::may_be_left_by_exceptions() {
  if (!unwinds_) unwinds_ = elf::may_unwind(elf::Inside::of(elf_)->file, image());
  return *unwinds_;
}

bool FileCode::may_switch_stacks() {
  if (!switches_) switches_ = elf::may_switch_stacks(elf::Inside::of(elf_)->file, image());
  return *switches_;
}

const elf::FunctionPieces& FileCode::pieces() {
  if (!pieces_) pieces_.emplace(elf_, stop_);
  return *pieces_;
}

void place(FileCode& file, FunctionPoint& point, VirtAddr pc) {
  point.pc = pc;
  const elf::Code code = file.at(pc);
  point.offset = code.offset;
  point.bytes = code.bytes;
  point.site_class = code.site_class;
}

void place_at_start(FileCode& file, FunctionPoint& point, VirtAddr address) {
  place(file, point, address);
  const auto bytes = [&point] { return std::span(point.bytes.data.data(), point.bytes.size); };
  if (const std::uint8_t pad = arch::landing_pad(file.machine(), bytes()); pad != 0) {
    place(file, point, address + pad);
    // (Behind it may be an instruction that takes no breakpoint.)
    if (arch::uprobe_refusal(file.machine(), bytes()).empty())
      address = address + pad;
    else
      place(file, point, address);
  }
  // Code that is patched at run time is no place for a breakpoint.
  if (const std::uint8_t room = arch::patch_room(file.machine(), bytes()); room != 0)
    place(file, point, address + room);
}

std::uint8_t patch_room_before(FileCode& file, VirtAddr pc) {
  if (pc.value < arch::kLongestPatchRoom) return 0;
  const elf::Code code = file.at(VirtAddr(pc.value - arch::kLongestPatchRoom));
  return arch::patch_room(file.machine(), std::span(code.bytes.data).first(code.bytes.size));
}

bool repeats(const FileCode& file, const FunctionPoint& point) {
  const Machine machine = file.machine();
  const std::span bytes(point.bytes.data.data(), point.bytes.size);
  return arch::knows_instructions(machine) && !bytes.empty() && arch::decode_instruction(machine, bytes).repeats;
}

}  // namespace usdt::find
