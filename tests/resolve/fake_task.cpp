// SPDX-License-Identifier: BSD-2-Clause
#include "fake_task.hpp"

#include <gtest/gtest.h>

#include "parsers/args.hpp"
#include "resolve/resolver.hpp"

namespace usdt::test {

void FakeTask::set(std::string_view name, std::uint64_t value) {
  words.at(static_cast<std::size_t>(arch.find(name)->pt_regs_word)) = value;
}

void FakeTask::store(std::uint64_t address, std::uint64_t value, unsigned size) {
  for (unsigned i = 0; i < size; ++i) memory[address + i] = static_cast<std::uint8_t>(value >> (8 * i));
}

std::optional<std::uint64_t> FakeTask::load(std::uint64_t address, unsigned size) const {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < size; ++i) {
    const auto byte = memory.find(address + i);
    if (byte == memory.end()) return std::nullopt;
    value |= static_cast<std::uint64_t>(byte->second) << (8 * i);
  }
  return value;
}

std::uint64_t FakeTask::address(const usdt_arg_spec& spec) const {
  std::uint64_t sum = spec.value;
  if ((spec.flags & USDT_ARG_IP) != 0) sum += words[static_cast<std::size_t>(arch.ip_word)];
  if (spec.reg != USDT_REG_NONE) sum += words.at(spec.reg);
  if (spec.index != USDT_REG_NONE) {
    std::uint64_t index = words.at(spec.index);
    if ((spec.flags & USDT_ARG_INDEX_U32) != 0) index = static_cast<std::uint32_t>(index);
    if ((spec.flags & USDT_ARG_INDEX_S32) != 0) {
      index = static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(index)));
    }
    sum += index << spec.shift;
  }
  if ((spec.flags & USDT_ARG_THREAD) != 0) sum += thread_pointer;
  return (spec.flags & USDT_ARG_ADDR32) != 0 ? static_cast<std::uint32_t>(sum) : sum;
}

std::optional<std::uint64_t> FakeTask::read(const usdt_arg_spec& spec) const {
  std::optional<std::uint64_t> raw;
  switch (spec.kind) {
    case USDT_ARG_CONST:
      return spec.value;
    case USDT_ARG_REG:
      raw = words.at(spec.reg) >> spec.shift;
      if ((spec.flags & USDT_ARG_PAIR) != 0) raw = static_cast<std::uint32_t>(*raw) | words.at(spec.index) << 32;
      break;
    case USDT_ARG_MEM:
      raw = load(address(spec), spec.size);
      break;
    case USDT_ARG_ADDR:
      raw = address(spec);
      break;
  }
  if (!raw) return raw;
  const unsigned unused = 64 - 8U * spec.size;
  const std::uint64_t top = *raw << unused;
  return (spec.flags & USDT_ARG_SIGNED) != 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(top) >> unused)
                                             : top >> unused;
}

Resolved resolve_text(std::string_view text, Machine machine, const elf::SymbolIndex* symbols, VirtAddr pc) {
  const std::vector<ParsedArg> parsed = parsers::parse_args(text, machine);
  EXPECT_EQ(parsed.size(), 1U) << text;
  const arch::Arch& arch = arch::for_machine(machine);
  Arg arg = resolve::resolve_arg(parsed.empty() ? ParsedArg{} : parsed.front(), arch, symbols);
  const usdt_arg_spec encoded = resolve::encode(arg, arch, {.site = pc, .breakpoint = pc});
  return {std::move(arg), encoded};
}

}  // namespace usdt::test
