// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/ask.hpp"

#include <cerrno>
#include <cstddef>
#include <span>

#include "kernel/small_program.hpp"
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

}  // namespace

std::uint64_t ask_address(const std::string& name) {
  if (name.empty() || name.size() > kLongestAsked) return 0;
  // A program that puts the name on its stack, calls bpf_kallsyms_lookup_name() (5.16) and leaves the address in its
  // context.
  constexpr std::uint32_t kallsyms_lookup_name = 179;
  const std::size_t size = name.size() + 1;
  const int text = -8 - static_cast<int>((size + 7) / 8 * 8);  // below the word for the address
  SmallProgram code;
  code.add(Op::move, 6, 1).put({name.c_str(), size}, text).add(Op::put_64, 10, 0, -8);
  code.add(Op::move, 1, 10).add(Op::add, 1, 0, 0, static_cast<std::uint32_t>(text));
  code.add(Op::set, 2, 0, 0, static_cast<std::uint32_t>(size)).add(Op::set, 3);
  code.add(Op::move, 4, 10).add(Op::add, 4, 0, 0, static_cast<std::uint32_t>(-8));
  code.add(Op::call, 0, 0, 0, kallsyms_lookup_name);
  code.add(Op::load_64, 1, 10, -8).add(Op::store_64, 6, 1).add(Op::exit);
  sys::ProgLoad as;
  as.prog_type = sys::kBpfProgTypeSyscall;
  as.prog_flags = sys::kBpfFSleepable;
  const sys::UniqueFd program = code.load(as);
  std::uint64_t address = 0;
  return program && run_program(program, std::as_writable_bytes(std::span(&address, 1))) ? address : 0;
}

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
  const std::uint64_t address = ask_address(name);
  return address == 0 ? std::nullopt : std::optional(address);
}

}  // namespace usdt::kernel
