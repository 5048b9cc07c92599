// SPDX-License-Identifier: BSD-2-Clause
// A forked child calls the function; the probe's pid filter keeps every other process of the same file untouched.
#include "usdt/red_zone.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "features/red_zone_code.hpp"
#include "features/trivial_program.hpp"
#include "sys/probe_source.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"
#include "sys/unique_fd.hpp"

namespace usdt {
namespace {

using features::RedZoneCode;

constexpr std::size_t longest_nop = 10;

/// What the child tells. Small enough for a pipe to take it at once.
struct Outcome {
  std::uint32_t overwritten = 0;
  bool stepped = false;  ///< it has the page in which the kernel runs single-stepped instructions
  std::array<unsigned char, longest_nop> bytes{};
};

/// The "[uprobes]" mapping is made at the first hit that is single-stepped (xol_add_vma(), kernel/events/uprobes.c).
/// In the child of a process that may have threads: system calls only.
bool has_step_page() {
  const int fd = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  static constexpr std::string_view name = "[uprobes]\n";
  std::array<char, 4096> buffer;
  std::size_t kept = 0;
  bool found = false;
  for (ssize_t n = 0; fd >= 0 && (n = ::read(fd, buffer.data() + kept, buffer.size() - kept)) > 0;) {
    const std::string_view text(buffer.data(), kept + static_cast<std::size_t>(n));
    found = found || text.find(name) != text.npos;
    kept = std::min(text.size(), name.size() - 1);
    std::memmove(buffer.data(), text.data() + text.size() - kept, kept);
  }
  if (fd >= 0) ::close(fd);
  return found;
}

/// The child's whole life: waits for the word that the probe is attached, calls, tells.
[[noreturn]] void run_child(const RedZoneCode& code, std::uint32_t calls, int from_parent, int to_parent) {
  char word = 0;
  if (::read(from_parent, &word, 1) != 1) ::_exit(1);
  Outcome outcome;
  for (std::uint32_t i = 0; i < calls; ++i) {
    if (code.function(std::uint64_t{i} * 0x123456789) != 0) ++outcome.overwritten;
  }
  // What the compiler sees as constant bytes the kernel has changed.
  for (std::size_t i = 0; i < code.size; ++i)
    outcome.bytes[i] = static_cast<const volatile unsigned char*>(code.nop)[i];
  outcome.stepped = has_step_page();
  ::_exit(::write(to_parent, &outcome, sizeof(outcome)) == sizeof(outcome) ? 0 : 1);
}

/// A forked child that waits to call the function. Ended with this object.
class Child {
 public:
  Child(const RedZoneCode& code, std::uint32_t calls) {
    std::array<int, 2> down{-1, -1}, up{-1, -1};
    if (::pipe2(down.data(), O_CLOEXEC) == 0 && ::pipe2(up.data(), O_CLOEXEC) == 0) pid_ = ::fork();
    if (pid_ == 0) {
      ::close(down[1]);
      run_child(code, calls, down[0], up[1]);
    }
    if (pid_ < 0) os_error_ = errno;
    to_child_.reset(down[1]);
    from_child_.reset(up[0]);
    for (const int end : {down[0], up[1]}) {
      if (end >= 0) ::close(end);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    to_child_.reset();  // one that still waits for the word ends
    while (pid_ > 0 && ::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
  }

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Of the fork that failed.
  [[nodiscard]] int os_error() const noexcept { return os_error_; }

  /// False if the child died of it.
  [[nodiscard]] bool call(Outcome& outcome) {
    ssize_t n = ::write(to_child_.get(), "g", 1);
    while (n == 1 || (n < 0 && errno == EINTR)) n = ::read(from_child_.get(), &outcome, sizeof(outcome));
    return n == sizeof(outcome);
  }

 private:
  pid_t pid_ = -1;
  int os_error_ = 0;
  sys::UniqueFd to_child_, from_child_;
};

/// An attached probe, or the call that failed and its errno.
struct Probe {
  sys::UniqueFd fd;
  std::string_view call;
  int os_error = 0;
};

Probe probe_by_link(const features::FilePlace& place, pid_t pid) {
  const int prog =
      features::load_trivial_program(features::insn_move_r0, {.attach_type = sys::bpf_attach_trace_uprobe_multi});
  if (prog < 0) return {{}, "BPF_PROG_LOAD", -prog};
  const sys::UniqueFd owner(prog);
  sys::LinkCreateUprobeMulti attr;
  attr.prog_fd = static_cast<std::uint32_t>(prog);
  attr.path = reinterpret_cast<std::uintptr_t>(place.path.c_str());
  attr.offsets = reinterpret_cast<std::uintptr_t>(&place.offset);
  attr.cnt = 1;
  attr.pid = static_cast<std::uint32_t>(pid);
  const int link = sys::syscalls().bpf(sys::bpf_link_create_cmd, &attr, sizeof(attr));
  return {sys::UniqueFd(link < 0 ? -1 : link), "BPF_LINK_CREATE", link < 0 ? -link : 0};
}

Probe probe_by_event(const features::FilePlace& place, pid_t pid) {
  const auto source = sys::probe_source("uprobe");
  if (!source) return {{}, "the uprobe event source", source.error().os_error};
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = source->type;
  attr.config1 = reinterpret_cast<std::uintptr_t>(place.path.c_str());
  attr.config2 = place.offset;
  const int event = sys::syscalls().perf_event_open(&attr, pid, -1, -1, 0);
  return {sys::UniqueFd(event < 0 ? -1 : event), "perf_event_open", event < 0 ? -event : 0};
}

Probe attach_probe(const features::FilePlace& place, pid_t pid) {
  const bool link = probe_feature(Feature::uprobe_multi).answer == Answer::yes;
  return link ? probe_by_link(place, pid) : probe_by_event(place, pid);
}

/// Errors about the instruction: ENOTSUPP from arch_uprobe_analyze_insn(), which perf events hand on as they are.
bool blames_instruction(int os_error) { return os_error == sys::enotsupp || os_error == EOPNOTSUPP; }

std::string errno_text(int os_error) { return os_error == sys::enotsupp ? "ENOTSUPP" : std::strerror(os_error); }

/// What the bytes of the site have become; nothing if they are as compiled, so that no probe was there.
std::optional<CostClass> cost_of(const Outcome& outcome, const RedZoneCode& code) {
  constexpr unsigned char int3 = 0xcc;
  if (std::equal(code.nop, code.nop + code.size, outcome.bytes.begin())) return std::nullopt;
  if (outcome.bytes[0] != int3) return CostClass::optimised;
  return outcome.stepped ? CostClass::single_step : CostClass::trap;
}

std::string bytes_text(const Outcome& outcome, std::size_t size) {
  return fmt::format("{:02x}", fmt::join(outcome.bytes.begin(), outcome.bytes.begin() + size, " "));
}

/// A nop that this kernel is known to optimise, and here did not, shows nothing about the call it would be.
bool is_inconclusive(NopForm form, CostClass cost) {
  if (form == NopForm::nop || cost == CostClass::optimised) return false;
  const Feature feature = form == NopForm::nop5 ? Feature::nop5 : Feature::nop10;
  return probe_feature(feature).answer != Answer::no;
}

void judge(RedZoneTest& test, const Outcome& outcome, const RedZoneCode& code) {
  test.cost = cost_of(outcome, code);
  test.overwritten = outcome.overwritten;
  if (outcome.overwritten != 0) {
    test.intact = Answer::no;
  } else if (!test.cost) {
    test.detail = "the kernel took the probe, but put no breakpoint into the code";
    return;
  } else if (is_inconclusive(test.form, *test.cost)) {
    test.detail = fmt::format("this kernel may optimise {}, but did not do so here", to_string(test.form));
    return;
  } else {
    test.intact = Answer::yes;
  }
  test.detail = fmt::format("the site became {}", bytes_text(outcome, code.size));
}

RedZoneTest test_form(NopForm form, std::uint32_t calls) {
  RedZoneTest test;
  test.form = form;
  const RedZoneCode code = features::red_zone_code(form);
  const auto place = features::file_place(code.nop);
  if (!place) return test.detail = place.error().message, test;
  Child child(code, calls);
  if (child.pid() < 0) return test.detail = fmt::format("fork: {}", std::strerror(child.os_error())), test;
  const Probe probe = attach_probe(*place, child.pid());
  if (!probe.fd) {
    if (blames_instruction(probe.os_error)) test.cost = CostClass::refused;
    test.detail = fmt::format("{} from {}", errno_text(probe.os_error), probe.call);
    return test;
  }
  Outcome outcome;
  if (!child.call(outcome)) return test.detail = "the child died with the probe attached", test;
  test.calls = calls;
  judge(test, outcome, code);
  return test;
}

}  // namespace

std::string_view to_string(NopForm form) noexcept {
  return form == NopForm::nop ? "nop" : form == NopForm::nop5 ? "nop5" : "nop10";
}

std::vector<RedZoneTest> test_red_zone(std::uint32_t calls) {
  std::vector<RedZoneTest> tests;
  if (!features::has_red_zone_code) return tests;
  for (const NopForm form : {NopForm::nop, NopForm::nop5, NopForm::nop10}) tests.push_back(test_form(form, calls));
  return tests;
}

}  // namespace usdt
