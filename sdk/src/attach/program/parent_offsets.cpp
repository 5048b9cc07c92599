// SPDX-License-Identifier: BSD-2-Clause
#include "program/parent_offsets.hpp"

#include "btf/types.hpp"
#include "sys/pid_namespace.hpp"

namespace usdt::backends {

expr::ParentOffsets find_parents() {
  // The kernel has no helper that gives the number of another task in a namespace.
  const auto nested = sys::nested_pid_namespace();
  if (!nested || *nested) return {};
  const auto types = btf::Types::load();
  if (!types) return {};
  const auto find = [&](const char* member) { return (*types)->member_offset("task_struct", member).value_or(0); };
  return {.parent = find("real_parent"), .group = find("tgid")};
}

}  // namespace usdt::backends
