// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/moved_code.hpp"

#include <fmt/format.h>

#include <utility>

#include "find/moved_code.hpp"

namespace usdt {
inline namespace v1 {

std::vector<std::string> moved_code(const AttachPlan& plan, std::span<const pid_t> pids) {
  std::vector<std::vector<find::CodePlace>> places(plan.files.size());
  for (const PlannedSite& site : plan.sites) {
    const auto* place = std::get_if<FilePlace>(&site.point);
    const PlannedProbe& probe = plan.probes[site.probe];
    if (place == nullptr || site.span || !plan.files[place->file].elf) continue;
    places[place->file.value].push_back(
        {.offset = place->offset,
         .pc = place->pc,
         .name = probe.function ? probe.name : fmt::format("{}:{}", probe.provider, probe.name)});
  }
  std::vector<std::string> said;
  for (const pid_t pid : pids) {
    const auto code = find::LoadedCode::of(pid);
    if (!code) continue;
    for (const Index<PlannedFile> number : plan.files.indices()) {
      const PlannedFile& file = plan.files[number];
      if (!file.elf || places[number.value].empty()) continue;
      if (std::string text = find::moved_text(*code, file.target, *file.elf, places[number.value]); !text.empty())
        said.push_back(std::move(text));
    }
  }
  return said;
}

}  // namespace v1
}  // namespace usdt
