// SPDX-License-Identifier: BSD-2-Clause
// One link for each kernel function or tracepoint: perf kprobes, fentry and its kin, raw tracepoints.
#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "base/try.hpp"
#include "link/kernel_backend.hpp"
#include "sys/descriptor_room.hpp"
#include "sys/probe_source.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"

namespace usdt::backends {
namespace {

/// A program for function `i`: the one there is, or a clone, which `owner` keeps until it is attached. Its descriptor
/// or the clone's error.
Result<int> program_for(const KernelProgram& program, const FunctionArrays& functions, std::size_t i,
                        sys::UniqueFd& owner) {
  if (!program.clone) return program.fd;
  auto clone = TRY(program.clone(functions.btf_ids[i], functions.cookies[i]));
  owner = std::move(clone);
  return owner.get();
}

/// So many programs refused one after the other, and none taken: it is the program, not the functions.
constexpr std::size_t kManyRefusals = 16;

/// True where what the kernel said of a program that was loaded for a function is of the program, whatever the
/// function.
bool concerns_the_program(const Error& refusal, const FileLinks& links) {
  const bool said_by_verifier = refusal.os_error == 0 || refusal.os_error == EACCES;
  return said_by_verifier || (links.fds.empty() && links.refused.size() + 1 >= kManyRefusals);
}

/// Attaches one after the other; `attach_one` gives 0 or an errno. Descriptors running out ends it.
template <class AttachOne>
Result<FileLinks> attach_each(const char* what, const KernelProgram& program, const FunctionArrays& functions,
                              const AttachOne& attach_one) {
  constexpr std::size_t spare = 256;
  sys::make_room_for(3 * functions.size() + spare);  // link, perf event, program
  FileLinks links;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    sys::UniqueFd owner;
    auto fd = program_for(program, functions, i, owner);
    int error = fd ? attach_one(*fd, i, links) : fd.error().os_error;
    if (!fd) {
      if (!links.first_refusal) links.first_refusal = fd.error().within(functions.names[i]);
      if (concerns_the_program(fd.error(), links)) return fail(*links.first_refusal);
    }
    if (error == EMFILE || error == ENFILE)
      return fail(os_failure(ErrorKind::limit, fmt::format("{}: {} of {}", what, i + 1, functions.size()), error));
    if (error == EPERM || error == EACCES || error == ENOSYS) return fail(os_failure(ErrorKind::io, what, error));
    if (error)
      links.refused.push_back({i, error});
    else if (owner)
      links.programs.push_back(std::move(owner));
  }
  return links;
}

}  // namespace

Result<FileLinks> attach_perf_kprobe(const KernelProgram& program, const FunctionArrays& functions) {
  auto source = TRY(sys::probe_source("kprobe"));
  return attach_each("perf kprobe", program, functions, [&](int prog_fd, std::size_t i, FileLinks& links) {
    perf_event_attr attr{};
    attr.size = sizeof(attr);
    attr.type = source.type;
    attr.config = program.returns ? std::uint64_t{1} << source.retprobe_bit : 0;
    // By address where it is known: of functions with one name, this one.
    const bool by_address = functions.addresses[i] != 0;
    attr.config1 = by_address ? 0 : reinterpret_cast<std::uintptr_t>(functions.names[i].c_str());
    attr.config2 = functions.addresses[i];
    sys::AttachedFd event;
    const int fd = sys::syscalls().perf_event_open(&attr, -1, 0, -1, 0);
    if (fd < 0) return -fd;
    event.reset(fd);
    return link_perf_event(prog_fd, std::move(event), program.has_cookies ? functions.cookies[i] : 0, links);
  });
}

Result<FileLinks> attach_tracing(const KernelProgram& program, const FunctionArrays& functions) {
  return attach_each("trampoline link", program, functions, [&](int prog_fd, std::size_t i, FileLinks& links) {
    if (!program.has_cookies) {  // before 5.19; as raw tracepoints without a name
      sys::RawTracepointOpen attr;
      attr.prog_fd = static_cast<std::uint32_t>(prog_fd);
      const int fd = sys::syscalls().bpf(sys::kBpfRawTracepointOpenCmd, &attr, 16);
      if (fd < 0) return -fd;
      links.fds.emplace_back(fd);
      return 0;
    }
    sys::LinkCreateTracing attr;
    attr.prog_fd = static_cast<std::uint32_t>(prog_fd);
    attr.attach_type = program.type.attach_type;
    attr.cookie = functions.cookies[i];
    const int fd = sys::syscalls().bpf(sys::kBpfLinkCreateCmd, &attr, sizeof(attr));
    if (fd < 0) return -fd;
    links.fds.emplace_back(fd);
    return 0;
  });
}

Result<FileLinks> attach_raw_tp(const KernelProgram& program, const FunctionArrays& functions) {
  return attach_each("raw tracepoint", program, functions, [&](int prog_fd, std::size_t i, FileLinks& links) {
    sys::RawTracepointOpen attr;
    attr.name = reinterpret_cast<std::uintptr_t>(functions.names[i].c_str());
    attr.prog_fd = static_cast<std::uint32_t>(prog_fd);
    attr.cookie = program.has_cookies ? functions.cookies[i] : 0;
    const int fd = sys::syscalls().bpf(sys::kBpfRawTracepointOpenCmd, &attr, program.has_cookies ? sizeof(attr) : 16);
    if (fd < 0) return -fd;
    links.fds.emplace_back(fd);
    return 0;
  });
}

}  // namespace usdt::backends
