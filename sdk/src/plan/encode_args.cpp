// SPDX-License-Identifier: BSD-2-Clause
#include "plan/encode_args.hpp"

#include <algorithm>

#include "arch/arch.hpp"

namespace usdt::plan {
namespace {

void grow(std::uint32_t& most, std::size_t count) { most = std::max(most, static_cast<std::uint32_t>(count)); }

}  // namespace

EncodedSpec encode_args(std::vector<Arg>& args, Machine machine, const resolve::EncodeOptions& encoding,
                        const Wanted& wanted, AttachPlan& plan) {
  const arch::Arch& arch = arch::for_machine(machine);
  EncodedSpec spec;
  const std::span encodable = std::span<Arg>(args).first(std::min<std::size_t>(args.size(), USDT_MAX_ARGS));
  spec.args.reserve(encodable.size());
  for (Arg& arg : encodable) {
    spec.args.push_back(resolve::encode(arg, arch, encoding));
    if (!resolve::encode_steps(arg, arch, spec.args.back(), spec.steps))
      arg.location = Unreadable{.reason = "more steps to members than can be told"};
    if (arg.readable()) grow(plan.max_steps, arg.steps.size());
  }
  grow(plan.string_slots, assign_captures(spec.args, args, arch.word_size, wanted));
  grow(plan.max_args, spec.args.size());
  grow(plan.max_entries, spec.args.size() + spec.steps.size());
  return spec;
}

}  // namespace usdt::plan
