// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <vector>

#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"

namespace usdt::test {

/// A kernel made of lambdas. Descriptors it hands out are real ones (of /dev/null), so that closing them is checked
/// too.
class FakeKernel : public sys::Syscalls {
 public:
  std::function<int(const sys::ProgLoad&)> prog_load = [](const sys::ProgLoad&) { return descriptor(); };
  std::function<int(const sys::LinkCreateUprobeMulti&)> link_multi = [](const auto&) { return descriptor(); };
  std::function<int(const sys::LinkCreatePerfEvent&)> link_perf = [](const auto&) { return descriptor(); };
  std::function<int(const sys::LinkCreateKprobeMulti&)> link_kprobes = [](const auto&) { return descriptor(); };
  std::function<int(const sys::LinkCreateTracingMulti&)> link_trampolines = [](const auto&) { return descriptor(); };
  std::function<int(const sys::LinkCreateTracing&)> link_tracing = [](const auto&) { return descriptor(); };
  std::function<int(const sys::RawTracepointOpen&, unsigned)> open_tracepoint = [](const auto&, unsigned) {
    return descriptor();
  };
  std::function<int(const perf_event_attr&, pid_t)> open_event = [](const perf_event_attr&, pid_t) {
    return descriptor();
  };
  std::function<int(int, int)> set_bpf = [](int, int) { return 0; };
  int uprobe_result = -ENOSYS;

  static int descriptor() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

  int bpf(int cmd, void* attr, unsigned size) override {
    if (cmd == sys::kBpfProgLoadCmd) return prog_load(*static_cast<sys::ProgLoad*>(attr));
    if (cmd == sys::kBpfRawTracepointOpenCmd) {
      sys::RawTracepointOpen open;
      std::memcpy(&open, attr, size);
      return open_tracepoint(open, size);
    }
    if (cmd != sys::kBpfLinkCreateCmd) return -EINVAL;
    switch (const auto* multi = static_cast<sys::LinkCreateUprobeMulti*>(attr); multi->attach_type) {
      case sys::kBpfAttachTraceUprobeMulti:
        return link_multi(*multi);
      case sys::kBpfAttachTraceKprobeMulti:
      case sys::kBpfAttachTraceKprobeSession:
        return link_kprobes(*static_cast<sys::LinkCreateKprobeMulti*>(attr));
      case sys::kBpfAttachTraceFentryMulti:
      case sys::kBpfAttachTraceFexitMulti:
      case sys::kBpfAttachTraceFsessionMulti:
        return link_trampolines(*static_cast<sys::LinkCreateTracingMulti*>(attr));
      case sys::kBpfAttachTraceFentry:
      case sys::kBpfAttachTraceFexit:
        return link_tracing(*static_cast<sys::LinkCreateTracing*>(attr));
      default:
        return link_perf(*static_cast<sys::LinkCreatePerfEvent*>(attr));
    }
  }
  int perf_event_open(perf_event_attr* attr, pid_t pid, int, int, unsigned long) override {
    return open_event(*attr, pid);
  }
  int perf_event_set_bpf(int event_fd, int prog_fd) override { return set_bpf(event_fd, prog_fd); }
  int uprobe() override { return uprobe_result; }
};

}  // namespace usdt::test
