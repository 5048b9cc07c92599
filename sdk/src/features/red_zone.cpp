// SPDX-License-Identifier: BSD-2-Clause
// A forked child calls the function; the probe's pid filter keeps every other process of the same file untouched.
#include "usdt/red_zone.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "features/measured_code.hpp"
#include "features/red_zone_child.hpp"
#include "features/trivial_program.hpp"
#include "sys/probe_source.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"
#include "sys/unique_fd.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using features::RedZoneChild;
using features::RedZoneCode;
using features::RedZoneOutcome;

/// An attached probe, or the call that failed and its errno.
struct Probe {
  sys::UniqueFd fd;
  std::string_view call;
  int os_error = 0;
};

Probe probe_by_link(const features::FilePlace& place, pid_t pid) {
  const int prog =
      features::load_trivial_program(features::kInsnMoveR0, {.attach_type = sys::kBpfAttachTraceUprobeMulti});
  if (prog < 0) return {{}, "BPF_PROG_LOAD", -prog};
  const sys::UniqueFd owner(prog);
  const int link = features::link_uprobe(prog, place, pid);
  return {sys::UniqueFd(link < 0 ? -1 : link), "BPF_LINK_CREATE", link < 0 ? -link : 0};
}

Probe probe_by_event(const features::FilePlace& place, pid_t pid) {
  const auto source = sys::probe_source("uprobe");
  if (!source) return {{}, "the uprobe event source", source.error().os_error};
  const int event = features::open_uprobe_event(source->type, place, pid);
  return {sys::UniqueFd(event < 0 ? -1 : event), "perf_event_open", event < 0 ? -event : 0};
}

Probe attach_probe(const features::FilePlace& place, pid_t pid) {
  const bool link = probe_feature(Feature::uprobe_multi).answer == Answer::yes;
  return link ? probe_by_link(place, pid) : probe_by_event(place, pid);
}

/// Errors about the instruction: ENOTSUPP from arch_uprobe_analyze_insn(), which perf events hand on as they are.
bool blames_instruction(int os_error) { return os_error == sys::kEnotsupp || os_error == EOPNOTSUPP; }

std::string errno_text(int os_error) { return os_error == sys::kEnotsupp ? "ENOTSUPP" : std::strerror(os_error); }

/// Classifies the changed bytes of the site; nothing if they are as compiled, so that no probe was there.
std::optional<CostClass> cost_of(const RedZoneOutcome& outcome, const RedZoneCode& code) {
  constexpr unsigned char int3 = 0xcc;
  if (std::equal(code.nop, code.nop + code.size, outcome.bytes.begin())) return std::nullopt;
  if (outcome.bytes[0] != int3) return CostClass::optimised;
  return outcome.stepped ? CostClass::single_step : CostClass::trap;
}

std::string bytes_text(const RedZoneOutcome& outcome, std::size_t size) {
  return fmt::format("{:02x}", fmt::join(outcome.bytes.begin(), outcome.bytes.begin() + size, " "));
}

/// A nop that this kernel is known to optimise, and here did not, shows nothing about the call it would be.
bool is_inconclusive(NopForm form, CostClass cost) {
  if (form == NopForm::nop || cost == CostClass::optimised) return false;
  const Feature feature = form == NopForm::nop5 ? Feature::nop5 : Feature::nop10;
  return probe_feature(feature).answer != Answer::no;
}

void judge(RedZoneTest& test, const RedZoneOutcome& outcome, const RedZoneCode& code) {
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
  RedZoneChild child(code, calls);
  if (child.pid() < 0) return test.detail = fmt::format("fork: {}", std::strerror(child.os_error())), test;
  const Probe probe = attach_probe(*place, child.pid());
  if (!probe.fd) {
    if (blames_instruction(probe.os_error)) test.cost = CostClass::refused;
    test.detail = fmt::format("{} from {}", errno_text(probe.os_error), probe.call);
    return test;
  }
  RedZoneOutcome outcome;
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
  if (!features::has_red_zone_code()) return tests;
  for (const NopForm form : {NopForm::nop, NopForm::nop5, NopForm::nop10}) tests.push_back(test_form(form, calls));
  return tests;
}

}  // namespace v1
}  // namespace usdt
