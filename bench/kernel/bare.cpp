// SPDX-License-Identifier: BSD-2-Clause
#include "bare.hpp"

#include <bpf/bpf.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "sys/probe_source.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"

namespace usdt::bench {
namespace {

Result<sys::UniqueFd> descriptor(int fd, const char* what) {
  if (fd < 0) return fail(os_failure(ErrorKind::io, what, -fd));
  return sys::UniqueFd(fd);
}

Result<sys::UniqueFd> load_empty(std::uint32_t type, std::uint32_t attach_type, std::uint32_t btf_id) {
  const std::array<bpf_insn, 2> code = {bpf_insn{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0},
                                        bpf_insn{BPF_JMP | BPF_EXIT, 0, 0, 0, 0}};
  sys::ProgLoad attr;
  attr.prog_type = type;
  attr.expected_attach_type = attach_type;
  attr.insn_cnt = code.size();
  attr.insns = reinterpret_cast<std::uintptr_t>(code.data());
  attr.license = reinterpret_cast<std::uintptr_t>("GPL");
  attr.attach_btf_id = btf_id;
  return descriptor(sys::syscalls().bpf(sys::kBpfProgLoadCmd, &attr, sizeof(attr)), "BPF_PROG_LOAD");
}

std::uint32_t tracing_type(Moment moment, bool multi) {
  if (moment == Moment::entry) return multi ? sys::kBpfAttachTraceFentryMulti : sys::kBpfAttachTraceFentry;
  if (moment == Moment::exit) return multi ? sys::kBpfAttachTraceFexitMulti : sys::kBpfAttachTraceFexit;
  return multi ? sys::kBpfAttachTraceFsessionMulti : sys::kBpfAttachTraceFsession;
}

Result<BareLinks> one_link(Result<sys::UniqueFd> program, const auto& create) {
  if (!program) return fail(program.error());
  auto link = descriptor(create(static_cast<std::uint32_t>(program->get())), "BPF_LINK_CREATE");
  if (!link) return fail(link.error());
  BareLinks out;
  out.links.push_back(std::move(*link));
  out.programs.push_back(std::move(*program));
  return out;
}

Result<BareLinks> kprobe_multi(KernelKind kind, Backend backend, const BareFunctions& functions) {
  const std::uint32_t type =
      backend == Backend::kprobe_session ? sys::kBpfAttachTraceKprobeSession : sys::kBpfAttachTraceKprobeMulti;
  return one_link(load_empty(sys::kBpfProgTypeKprobe, type, 0), [&](std::uint32_t program) {
    sys::LinkCreateKprobeMulti attr;
    attr.prog_fd = program;
    attr.attach_type = type;
    attr.flags = kind.moment == Moment::exit ? sys::kBpfFKprobeMultiReturn : 0;
    attr.cnt = static_cast<std::uint32_t>(functions.addresses.size());
    attr.addrs = reinterpret_cast<std::uintptr_t>(functions.addresses.data());
    return sys::syscalls().bpf(sys::kBpfLinkCreateCmd, &attr, sizeof(attr));
  });
}

Result<BareLinks> tracing_multi(KernelKind kind, const BareFunctions& functions) {
  const std::uint32_t type = tracing_type(kind.moment, true);
  return one_link(load_empty(sys::kBpfProgTypeTracing, type, 0), [&](std::uint32_t program) {
    sys::LinkCreateTracingMulti attr;
    attr.prog_fd = program;
    attr.attach_type = type;
    attr.ids = reinterpret_cast<std::uintptr_t>(functions.btf_ids.data());
    attr.cnt = static_cast<std::uint32_t>(functions.btf_ids.size());
    return sys::syscalls().bpf(sys::kBpfLinkCreateCmd, &attr, sizeof(attr));
  });
}

Result<BareLinks> tracing(KernelKind kind, const BareFunctions& functions) {
  BareLinks out;
  for (const std::uint32_t id : functions.btf_ids) {
    auto program = load_empty(sys::kBpfProgTypeTracing, tracing_type(kind.moment, false), id);
    if (!program) return fail(program.error());
    sys::RawTracepointOpen attr;
    attr.prog_fd = static_cast<std::uint32_t>(program->get());
    auto link = descriptor(sys::syscalls().bpf(sys::kBpfRawTracepointOpenCmd, &attr, 16), "a trampoline's link");
    if (!link) return fail(link.error());
    out.links.push_back(std::move(*link));
    out.programs.push_back(std::move(*program));
  }
  return out;
}

Result<BareLinks> perf_kprobe(KernelKind kind, const BareFunctions& functions) {
  auto source = sys::probe_source("kprobe");
  if (!source) return fail(source.error());
  auto program = load_empty(sys::kBpfProgTypeKprobe, 0, 0);
  if (!program) return fail(program.error());
  BareLinks out;
  for (const unsigned long address : functions.addresses) {
    perf_event_attr attr{};
    attr.size = sizeof(attr);
    attr.type = source->type;
    attr.config = kind.moment == Moment::exit ? std::uint64_t{1} << source->retprobe_bit : 0;
    attr.config2 = address;
    auto event = descriptor(sys::syscalls().perf_event_open(&attr, -1, 0, -1, 0), "perf_event_open");
    if (!event && event.error().os_error == EINVAL) continue;  // no kprobe there; the library refuses it alone, too
    if (!event) return fail(event.error());
    if (const int error = sys::syscalls().perf_event_set_bpf(event->get(), program->get()); error < 0)
      return fail(os_failure(ErrorKind::io, "PERF_EVENT_IOC_SET_BPF", -error));
    out.links.push_back(std::move(*event));
  }
  out.programs.push_back(std::move(*program));
  return out;
}

}  // namespace

Result<BareLinks> attach_bare(KernelKind kind, Backend backend, const BareFunctions& functions) {
  switch (backend) {
    case Backend::kprobe_multi:
    case Backend::kprobe_session:
      return kprobe_multi(kind, backend, functions);
    case Backend::tracing_multi:
      return tracing_multi(kind, functions);
    case Backend::tracing:
      return tracing(kind, functions);
    case Backend::perf_kprobe:
      return perf_kprobe(kind, functions);
    case Backend::automatic:
    case Backend::uprobe_multi:
    case Backend::uprobe_family:
    case Backend::uprobe_family_return:
    case Backend::perf_uprobe:
    case Backend::perf_uretprobe:
    case Backend::uprobe_return:
    case Backend::uprobe_session:
    case Backend::raw_tp:
    case Backend::tp_btf:
      break;
  }
  return fail(ErrorKind::invalid_argument, fmt::format("no bare {}", to_string(backend)));
}

}  // namespace usdt::bench
