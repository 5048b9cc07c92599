// SPDX-License-Identifier: BSD-2-Clause
#include "doctor.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

#include "common/report.hpp"
#include "exit_code.hpp"

namespace usdt_list {
namespace {

using usdt::Answer;
using usdt::CostClass;
using usdt::NopForm;
using usdt::NopOptimisation;

/// As site_cost() and place() decide for a site of this nop alone.
bool is_used(NopForm form, NopOptimisation nops) {
  if (form == NopForm::nop5) return nops != NopOptimisation::nop5;
  return form == NopForm::nop || nops == NopOptimisation::nop10;
}

std::string refused_text(NopForm form) {
  return form == NopForm::nop10 ? "this kernel takes no probe on them: `nop,nop10` sites are traced on the leading nop"
                                : "this kernel takes no probe on them";
}

std::string overwritten_text(const usdt::RedZoneTest& test, bool used) {
  const std::string what =
      fmt::format("this kernel overwrites the red zone ({} of {} calls)", test.overwritten, test.calls);
  if (used) return what + ": DO NOT TRACE programs with such sites, and please report this kernel";
  return what + ": they are not used" + (test.form == NopForm::nop5 ? " (see usdt-trace --allow-unsafe-nop5)" : "");
}

std::string intact_text(const usdt::RedZoneTest& test, bool used) {
  if (!used) return "safe here, though not used: the kernel is of a kind that may overwrite the red zone";
  return test.cost == CostClass::optimised ? "safe, and a hit is a call in place of a breakpoint" : "safe";
}

}  // namespace

Verdict judge(const usdt::RedZoneTest& test, NopOptimisation nops) {
  Verdict verdict{test.form, true, is_used(test.form, nops), {}};
  if (test.cost == CostClass::refused) {
    verdict.used = false;
    verdict.text = refused_text(test.form);
  } else if (test.intact == Answer::no) {
    verdict.text = overwritten_text(test, verdict.used);
  } else if (test.intact == Answer::yes) {
    verdict.text = intact_text(test, verdict.used);
  } else {
    verdict.known = false;
    verdict.text = fmt::format("could not tell ({}): they are {}used", test.detail, verdict.used ? "" : "not ");
  }
  return verdict;
}

Diagnosis diagnose() {
  Diagnosis all;
  utsname name{};
  if (::uname(&name) == 0) {
    all.release = name.release;
    all.machine = name.machine;
  }
  all.features = usdt::probe_features();
  all.privilege = usdt::check_privilege();
  all.perf_privilege = usdt::check_privilege(usdt::Backend::perf_uprobe);
  all.backend = usdt::choose_backend();
  all.rights = usdt::list_rights();
  all.token = usdt::find_bpf_token();
  all.red_zone = usdt::test_red_zone();
  for (const usdt::RedZoneTest& test : all.red_zone) all.verdicts.push_back(judge(test, usdt::nop_optimisation()));
  return all;
}

int run_doctor(Format format) {
  const Diagnosis diagnosis = diagnose();
  usdt::io::Stream out(STDOUT_FILENO);
  format == Format::json ? print_diagnosis_json(diagnosis, out) : print_diagnosis(diagnosis, out);
  if (out.flush() != usdt::io::Stream::Flushed::all) return output_failed(out);
  return std::ranges::all_of(diagnosis.verdicts, &Verdict::known) ? kFound : kTrouble;
}

}  // namespace usdt_list
