// SPDX-License-Identifier: BSD-2-Clause
// Links of many kernel functions: kprobe_multi (5.18), kprobe_session (6.10), tracing_multi (7.2). All or nothing, and
// the kernel does not say which function it refused.
#include <algorithm>
#include <cerrno>
#include <functional>
#include <utility>

#include "link/kernel_backend.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"

namespace usdt::backends {
namespace {

/// True for errors that no single function causes. A trampoline with too many programs is E2BIG, a name that is gone
/// ENOENT or ESRCH, a return value that does not fit EOPNOTSUPP.
bool concerns_all_functions(int os_error) noexcept {
  static constexpr int whole[] = {EPERM, EACCES, EBADF, ENOMEM, EMFILE, ENFILE, ENOSYS, EINTR};
  return std::find(std::begin(whole), std::end(whole), os_error) != std::end(whole);
}

/// A link of functions [first, first + count), or a negative errno.
using Attempt = std::function<int(std::size_t first, std::size_t count)>;

/// Halves what is refused. Functions are not at odds with each other, so what is attached stays as a link of its own.
class Splitter {
 public:
  explicit Splitter(const Attempt& attempt) : attempt_(attempt) {}

  /// Returns 0, or the errno that ends the whole attachment.
  int attach(std::size_t first, std::size_t count) {
    if (count == 0) return 0;
    const int fd = hopeless() ? -last_error_ : attempt_(first, count);
    if (fd >= 0) {
      links.fds.emplace_back(fd, count);
      return 0;
    }
    if (concerns_all_functions(-fd)) return -fd;
    last_error_ = -fd;
    if (count == 1 || hopeless()) {
      for (std::size_t i = first; i < first + count; ++i) links.refused.push_back({i, -fd});
      return 0;
    }
    if (const int error = attach(first, count / 2)) return error;
    return attach(first + count / 2, count - count / 2);
  }

  FileLinks links;

 private:
  /// So many refused one by one and not one attached: it is not for a function's sake.
  [[nodiscard]] bool hopeless() const { return links.fds.empty() && links.refused.size() >= 32; }

  const Attempt& attempt_;
  int last_error_ = 0;
};

Result<FileLinks> attach_all(const char* what, std::size_t count, const Attempt& attempt) {
  Splitter splitter(attempt);
  if (const int error = splitter.attach(0, count)) return fail(os_failure(ErrorKind::io, what, error));
  return std::move(splitter.links);
}

}  // namespace

Result<FileLinks> attach_kprobe_multi(const KernelProgram& program, const FunctionArrays& functions) {
  // By address nothing needs to be looked up: a tenth of the time by name.
  const bool by_address =
      std::all_of(functions.addresses.begin(), functions.addresses.end(), [](std::uint64_t a) { return a != 0; });
  std::vector<unsigned long> words;  // of the kernel, which is as wide as we are
  words.reserve(functions.size());
  for (std::size_t i = 0; i < functions.size(); ++i)
    words.push_back(by_address ? static_cast<unsigned long>(functions.addresses[i])
                               : reinterpret_cast<std::uintptr_t>(functions.names[i].c_str()));
  return attach_all("kprobe_multi link", functions.size(), [&](std::size_t first, std::size_t count) {
    sys::LinkCreateKprobeMulti attr;
    attr.prog_fd = static_cast<std::uint32_t>(program.fd);
    attr.attach_type = program.type.attach_type;
    attr.flags = program.returns ? sys::kBpfFKprobeMultiReturn : 0;
    attr.cnt = static_cast<std::uint32_t>(count);
    (by_address ? attr.addrs : attr.syms) = reinterpret_cast<std::uintptr_t>(words.data() + first);
    attr.cookies = reinterpret_cast<std::uintptr_t>(functions.cookies.data() + first);
    return sys::syscalls().bpf(sys::kBpfLinkCreateCmd, &attr, sizeof(attr));
  });
}

Result<FileLinks> attach_tracing_multi(const KernelProgram& program, const FunctionArrays& functions) {
  return attach_all("tracing_multi link", functions.size(), [&](std::size_t first, std::size_t count) {
    sys::LinkCreateTracingMulti attr;
    attr.prog_fd = static_cast<std::uint32_t>(program.fd);
    attr.attach_type = program.type.attach_type;
    attr.ids = reinterpret_cast<std::uintptr_t>(functions.btf_ids.data() + first);
    attr.cookies = reinterpret_cast<std::uintptr_t>(functions.cookies.data() + first);
    attr.cnt = static_cast<std::uint32_t>(count);
    return sys::syscalls().bpf(sys::kBpfLinkCreateCmd, &attr, sizeof(attr));
  });
}

}  // namespace usdt::backends
