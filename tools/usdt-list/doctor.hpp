// SPDX-License-Identifier: BSD-2-Clause
// usdt-list --doctor: what the running kernel offers, and which nops may be probed on it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "flags.hpp"
#include "print.hpp"
#include "usdt/usdt.hpp"

namespace usdt_list {

/// Whether tracing uses sites of one nop.
struct Verdict {
  usdt::NopForm form = usdt::NopForm::nop;
  bool known = true;  ///< false: the self-test could not tell
  bool used = true;   ///< usdt-trace attaches to a site of this nop alone
  std::string text;   ///< "this kernel overwrites the red zone (999 of 1000 calls): they are not used (...)"
};

/// Everything asked, before any of it is shown.
struct Diagnosis {
  std::string release;  ///< of the kernel
  std::string machine;
  std::vector<usdt::FeatureState> features;
  usdt::Result<void> privilege;       ///< of the backend taken
  usdt::Result<void> perf_privilege;  ///< of perf uprobes
  usdt::Result<usdt::Backend> backend = usdt::Backend::automatic;
  std::vector<usdt::Right> rights;
  std::optional<usdt::BpfToken> token;
  std::vector<usdt::RedZoneTest> red_zone;
  std::vector<Verdict> verdicts;
};

/// Asks the kernel and runs the self-test, which takes a tenth of a second or two.
[[nodiscard]] Diagnosis diagnose();

/// Returns what the planner does with a nop after the result of its test.
[[nodiscard]] Verdict judge(const usdt::RedZoneTest& test, usdt::NopOptimisation nops);

/// Prints one page for people.
void print_diagnosis(const Diagnosis& diagnosis, usdt::io::Stream& out);
/// Prints one object a line: kernel, features, privilege, backend, rights, token, red_zone and verdict for each nop.
void print_diagnosis_json(const Diagnosis& diagnosis, usdt::io::Stream& out);

/// Runs the whole command. Returns kFound if every verdict is known, else kTrouble.
[[nodiscard]] int run_doctor(Format format);

}  // namespace usdt_list
