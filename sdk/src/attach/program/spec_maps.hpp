// SPDX-License-Identifier: BSD-2-Clause
// Tells a program that includes usdt.bpf.h, ours or libbpf's, about its plan. Private to attach/program.
#pragma once

#include "program/object_copy.hpp"
#include "usdt/bpf/constants.h"
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
/// Finds what programs for `plan` want to know of this kernel; costs the 3 ms of reading its BTF where an argument is
/// thread-local. Errors: those of sys::nested_pid_namespace().
[[nodiscard]] Result<usdt_kernel_constants> kernel_constants(const ObjectCopy& object, const AttachPlan& plan);
/// Before each copy is loaded: tells it how specs reach it, what the kernel is, and whose hits count
/// (LoadOptions::leave_out_self).
[[nodiscard]] Result<void> set_constants(const ObjectCopy& object, const AttachPlan& plan, const CarrierPlan& carriers,
                                         const PlannedProgram& program, const usdt_kernel_constants& kernel,
                                         bool leave_out_self);
/// After the load: writes the maps, each through one mapping, without a system call per entry.
[[nodiscard]] Result<void> fill_specs(const ObjectCopy& object, const AttachPlan& plan, const CarrierPlan& carriers);

}  // namespace usdt::backends
