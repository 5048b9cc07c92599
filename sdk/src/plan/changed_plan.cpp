// SPDX-License-Identifier: BSD-2-Clause
#include "plan/changed_plan.hpp"

#include <utility>

namespace usdt::plan {

AttachPlan with_scope(AttachPlan plan, Scope scope) {
  plan.scope = std::move(scope);
  return plan;
}

AttachPlan without_files(AttachPlan plan, const std::set<Index<PlannedFile>>& files) {
  for (const Index<PlannedFile> number : files) {
    PlannedFile& file = plan.files[number];
    if (!file.elf) continue;
    file.machine = file.elf->machine();
    file.elf.reset();
  }
  return plan;
}

}  // namespace usdt::plan
