// SPDX-License-Identifier: BSD-2-Clause
// What a program that includes usdt.bpf.h, ours or libbpf's, wants to know of its plan. Private to attach/.
#pragma once

#include "attach/object_copy.hpp"
#include "usdt/carrier.hpp"
#include "usdt/plan.hpp"

namespace usdt::backends {

/// Errors: invalid_argument (the plan has kernel functions, the object's programs are compiled for USDT sites only).
[[nodiscard]] Result<void> check_sources(const ObjectCopy& object, const AttachPlan& plan);
/// The carrier to plan for, which may be automatic still: programs compiled with libbpf's header have only the table.
/// Errors: not_supported (the program, or the kernel without attach cookies, has not the one that is wanted).
[[nodiscard]] Result<Carrier> carrier_for(const ObjectCopy& object, Carrier wanted, bool attach_cookies);
/// Before the first copy of the program is loaded: sizes the maps. Errors: invalid_argument (the object does not
/// include usdt.bpf.h, or one of another version).
[[nodiscard]] Result<void> size_specs(const ObjectCopy& object, const AttachPlan& plan, const CarrierPlan& carriers);
/// Before each copy is loaded: the constants that tell it how specs reach it.
[[nodiscard]] Result<void> set_spec_constants(const ObjectCopy& object, const AttachPlan& plan,
                                              const CarrierPlan& carriers, const PlannedProgram& program);
/// After the load: writes the maps, each through one mapping, without a system call per entry.
[[nodiscard]] Result<void> fill_specs(const ObjectCopy& object, const AttachPlan& plan, const CarrierPlan& carriers);

}  // namespace usdt::backends
