// SPDX-License-Identifier: BSD-2-Clause
#include "ours.hpp"

#include <algorithm>
#include <kernel_hand.bpf.hpp>
#include <kernel_ours.bpf.hpp>
#include <utility>

namespace usdt::bench {

KernelSelection only_of(const KernelSelection& all, std::string_view prefix) {
  KernelSelection out = all;
  std::erase_if(out.entries, [&](const KernelSelection::Entry& entry) { return to_string(entry.kind) != prefix; });
  out.refused.clear();
  return out;
}

Result<AttachPlan> plan_for(const KernelSelection& selection, const Attaching& attaching,
                            const KernelAbilities& abilities) {
  PlanOptions options;
  options.kernel_backend = attaching.backend;
  return plan_attach({.kernel = selection}, {.abilities = abilities}, options);
}

Result<OurProgram> OurProgram::load(AttachPlan plan, const Spec& spec) {
  auto object = BpfObject::open(spec.by_hand ? kernel_hand_object() : kernel_ours_object());
  if (!object) return fail(object.error());
  if (auto set = object->set_constant("bench_reads", spec.reads); !set) return fail(set.error());
  auto loaded = object->load(std::move(plan), {.carrier = spec.carrier});
  if (!loaded) return fail(loaded.error());
  return OurProgram(std::move(*loaded), spec.program);
}

Result<void> OurProgram::attach() {
  auto link = object_.attach(program_);
  if (!link) return fail(link.error());
  link_ = std::move(*link);
  return {};
}

std::uint64_t OurProgram::global(std::string_view name) {
  const void* value = object_.global(name);
  return value ? *static_cast<const volatile std::uint64_t*>(value) : 0;
}

}  // namespace usdt::bench
