// SPDX-License-Identifier: BSD-2-Clause
// Plans an attachment without making it: which sites would get a breakpoint and where, how many distinct argument specs
// they share, what is left out and why. A pure function of the files and of what is known of the kernel, so it can be
// tested like any other.
//
//   example_02_plan /usr/bin/python3.11 'python:gc__*'
#include <cinttypes>
#include <cstdio>
#include <usdt/usdt.hpp>

usdt::Result<usdt::AttachPlan> plan(const char* target, const char* pattern_text) {
  auto pattern = usdt::ProbePattern::parse(pattern_text);
  if (!pattern) return usdt::fail(pattern.error());
  auto files = usdt::resolve_target(target);
  if (!files) return usdt::fail(files.error());

  std::vector<usdt::ProbeFile> found;
  for (const usdt::TargetFile& file : *files) {
    auto probes = usdt::find_probes(file, {*pattern});
    if (!probes) return usdt::fail(probes.error().within(file.path.string()));
    if (!probes->sites.empty()) found.push_back(std::move(*probes));
  }
  return usdt::plan_attach({.files = found}, usdt::kernel_facts());
}

void print(const usdt::AttachPlan& plan) {
  std::printf("%zu sites, %zu distinct specs, %zu skipped\n", plan.sites.size(), plan.specs.size(),
              plan.skipped.size());
  for (const usdt::PlannedSite& site : plan.sites) {
    const usdt::PlannedProbe& probe = plan.probes[site.probe];
    const auto* place = std::get_if<usdt::FilePlace>(&site.point);  // what else there is: kernel functions, tracepoints
    if (place == nullptr) continue;
    std::printf("  %s:%s at file offset 0x%" PRIx64 ", %zu arguments\n", probe.provider.c_str(), probe.name.c_str(),
                place->offset.value, plan.args[site.args].size());
  }
  for (const usdt::SkippedSite& site : plan.skipped) {
    const usdt::PlannedProbe& probe = plan.probes[site.probe];
    std::printf("  %s:%s skipped: %s\n", probe.provider.c_str(), probe.name.c_str(), site.reason.c_str());
  }
}

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s TARGET PROVIDER:NAME\n", argv[0]);
    return 2;
  }
  const auto planned = plan(argv[1], argv[2]);
  if (!planned) {
    std::fprintf(stderr, "%s\n", planned.error().message.c_str());
    return 1;
  }
  print(*planned);
}
