// SPDX-License-Identifier: BSD-2-Clause
#include "program/parent_offsets.hpp"

#include "btf/types.hpp"

namespace usdt::backends {

expr::ParentOffsets find_parents() {
  const auto types = btf::Types::load();
  if (!types) return {};
  const auto find = [&](const char* member) { return (*types)->member_offset("task_struct", member).value_or(0); };
  return {.parent = find("real_parent"), .group = find("tgid")};
}

}  // namespace usdt::backends
