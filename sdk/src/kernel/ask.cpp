// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/ask.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include "sys/probe_source.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"
#include "sys/unique_fd.hpp"

namespace usdt::kernel {
namespace {

/// Longer names would not fit the program's stack of 512 bytes.
constexpr std::size_t kLongestAsked = 255;

/// The errno of a kprobe one byte behind the beginning of `name`; 0: there may be one.
int refusal_within(const std::string& name) {
  static const auto source = sys::probe_source("kprobe");
  if (!source) return ENOENT;
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = source->type;
  attr.disabled = 1;
  attr.config1 = reinterpret_cast<std::uintptr_t>(name.c_str());
  attr.config2 = 1;
  const int fd = sys::syscalls().perf_event_open(&attr, -1, 0, -1, 0);
  const sys::UniqueFd owner(fd);
  return fd < 0 ? -fd : 0;
}

std::uint64_t instruction(std::uint8_t code, std::uint8_t to, std::uint8_t from, std::int16_t offset,
                          std::uint32_t immediate) {
  return std::uint64_t{immediate} << 32 | std::uint64_t{static_cast<std::uint16_t>(offset)} << 16 |
         std::uint64_t{from} << 12 | std::uint64_t{to} << 8 | code;
}

/// A program (BPF_PROG_TYPE_SYSCALL, 5.14) that puts the name on its stack, calls bpf_kallsyms_lookup_name() (5.16) and
/// leaves the address in its context.
std::vector<std::uint64_t> lookup_program(const std::string& name) {
  enum : std::uint8_t {
    store_64 = 0x7b,
    load_64 = 0x79,
    put_64 = 0x7a,
    move = 0xbf,
    set = 0xb7,
    add = 0x07,
    wide = 0x18
  };
  constexpr std::uint32_t kallsyms_lookup_name = 179;
  const std::size_t size = name.size() + 1;
  const auto room = static_cast<std::int16_t>((size + 7) / 8 * 8);
  const auto text = static_cast<std::int16_t>(-8 - room);  // below the word for the address
  std::vector<std::uint64_t> code = {instruction(move, 6, 1, 0, 0)};
  for (std::int16_t at = 0; at < room; at = static_cast<std::int16_t>(at + 8)) {
    std::uint64_t letters = 0;
    std::memcpy(&letters, name.c_str() + at, std::min<std::size_t>(8, size - static_cast<std::size_t>(at)));
    code.push_back(instruction(wide, 2, 0, 0, static_cast<std::uint32_t>(letters)));
    code.push_back(instruction(0, 0, 0, 0, static_cast<std::uint32_t>(letters >> 32)));
    code.push_back(instruction(store_64, 10, 2, static_cast<std::int16_t>(text + at), 0));
  }
  for (const std::uint64_t one :
       {instruction(put_64, 10, 0, -8, 0), instruction(move, 1, 10, 0, 0),
        instruction(add, 1, 0, 0, static_cast<std::uint32_t>(text)),
        instruction(set, 2, 0, 0, static_cast<std::uint32_t>(size)), instruction(set, 3, 0, 0, 0),
        instruction(move, 4, 10, 0, 0), instruction(add, 4, 0, 0, static_cast<std::uint32_t>(-8)),
        instruction(0x85, 0, 0, 0, kallsyms_lookup_name), instruction(load_64, 1, 10, -8, 0),
        instruction(store_64, 6, 1, 0, 0), instruction(0x95, 0, 0, 0, 0)})
    code.push_back(one);
  return code;
}

/// Of the first symbol of this name; 0: none, or not to be had.
std::uint64_t address_of(const std::string& name) {
  const std::vector<std::uint64_t> code = lookup_program(name);
  static constexpr char license[] = "Dual BSD/GPL";
  sys::ProgLoad load;
  load.prog_type = sys::bpf_prog_type_syscall;
  load.prog_flags = sys::bpf_f_sleepable;
  load.insns = reinterpret_cast<std::uintptr_t>(code.data());
  load.insn_cnt = static_cast<std::uint32_t>(code.size());
  load.license = reinterpret_cast<std::uintptr_t>(license);
  const sys::UniqueFd program(sys::syscalls().bpf(sys::bpf_prog_load_cmd, &load, sizeof(load)));
  if (!program) return 0;
  std::uint64_t address = 0;
  sys::ProgTestRun run;
  run.prog_fd = static_cast<std::uint32_t>(program.get());
  run.ctx_size_in = sizeof(address);
  run.ctx_in = reinterpret_cast<std::uintptr_t>(&address);
  if (sys::syscalls().bpf(sys::bpf_prog_test_run_cmd, &run, sizeof(run)) < 0 || run.retval != 0) return 0;
  return address;
}

}  // namespace

bool tells_functions_apart() {
  // Several files of the kernel's own tracing have one of this name (kernel/trace/ftrace.c, trace.c, trace_printk.c).
  return refusal_within("t_next") == EADDRNOTAVAIL;
}

std::optional<std::uint64_t> ask_function(const std::string& name) {
  if (name.empty() || name.size() > kLongestAsked || name.find(':') != name.npos) return std::nullopt;
  // In this order the kernel says ENOENT (no such function), EADDRNOTAVAIL (several), EINVAL (ftrace cannot trace it,
  // or it is on the blacklist: __register_trace_kprobe(), check_kprobe_address_safe()) and, in
  // arch/x86/kernel/kprobes/core.c, EILSEQ: no instruction begins one byte behind the beginning of a function, which is
  // a nop or endbr64.
  if (refusal_within(name) != EILSEQ) return std::nullopt;
  const std::uint64_t address = address_of(name);
  return address == 0 ? std::nullopt : std::optional(address);
}

}  // namespace usdt::kernel
