// SPDX-License-Identifier: BSD-2-Clause
#include "backend/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace usdt {
inline namespace v1 {

const BackendInfo& backend_info(Backend backend) noexcept {
  static constexpr BackendInfo automatic{.name = "automatic", .since = {}, .decided_by = backends::kOfFiles};
  return backend == Backend::automatic ? automatic : backends::row_of(backend).info;
}

std::string_view to_string(Backend backend) noexcept { return backend_info(backend).name; }

Result<Backend> backend_by_name(std::string_view name) {
  if (name == to_string(Backend::automatic)) return Backend::automatic;
  std::vector<std::string_view> names{to_string(Backend::automatic)};
  for (const backends::BackendRow& row : backends::kBackends) {
    if (row.info.name == name) return row.backend;
    if (row.of_family) continue;
    names.push_back(row.info.name);
  }
  return fail(ErrorKind::not_found, fmt::format("no backend '{}': there are {}", name, fmt::join(names, ", ")));
}

std::vector<Backend> choosable_backends() {
  std::vector<Backend> all;
  for (const backends::BackendRow& row : backends::kBackends) {
    if (!row.of_family && (row.info.points != PointKind::file || row.moments.entry)) all.push_back(row.backend);
  }
  return all;
}

bool is_kernel(Backend backend) noexcept { return backend_info(backend).points != PointKind::file; }

}  // namespace v1
}  // namespace usdt
