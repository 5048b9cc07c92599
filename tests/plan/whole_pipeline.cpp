// SPDX-License-Identifier: BSD-2-Clause
#include "whole_pipeline.hpp"

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "usdt/carrier.hpp"
#include "usdt/cookie.hpp"
#include "usdt/cost.hpp"
#include "usdt/plan.hpp"

namespace usdt::test {
namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

PlanOptions plan_options(std::uint32_t variant) {
  PlanOptions options;
  options.allow_unsafe_nop5 = (variant & 4) != 0;
  if ((variant & 8) != 0) options.texts.numbers = {0, 1, 255};
  if ((variant & 16) != 0) options.user_cookie_of = [](const PointName& point) { return point.address % 3; };
  return options;
}

CarrierOptions carrier_options(std::uint32_t variant) {
  CarrierOptions options;
  options.carrier = static_cast<Carrier>((variant >> 5) % 5);
  options.attach_cookies = options.carrier != Carrier::ip_hash && (variant & 256) == 0;
  options.site_numbers = (variant & 512) == 0;
  options.max_programs = 1 + (variant >> 10) % 64;
  return options;
}

void check_spec(const EncodedSpec& spec) {
  require(spec.args.size() <= USDT_MAX_ARGS, "more arguments than a spec can have");
  for (const usdt_arg_spec& arg : spec.args) {
    require(arg.kind <= USDT_ARG_ADDR, "an argument of no kind");
    const bool sized = arg.size == 1 || arg.size == 2 || arg.size == 4 || arg.size == 8;
    require(sized || arg.kind == USDT_ARG_UNREADABLE, "a readable argument of an odd size");
  }
}

void check_plan(const AttachPlan& plan, const ProbeFile& file) {
  require(plan.sites.size() + plan.skipped.size() == file.sites.size(), "a site is neither planned nor skipped");
  require(plan.groups.size() == 1 && plan.groups.front().sites.size() == plan.sites.size(), "a site in no group");
  for (const PlannedSite& site : plan.sites) {
    require(plan.probes.contains(site.probe), "a site of no probe");
    require(plan.specs.contains(site.spec), "a site without a spec");
    require(plan.args.contains(site.args), "a site without its arguments");
  }
  for (const SkippedSite& site : plan.skipped) require(!site.reason.empty(), "a site skipped for no reason");
  for (const EncodedSpec& spec : plan.specs) check_spec(spec);
}

void check_carriers(const CarrierPlan& carriers, const AttachPlan& plan) {
  std::vector<bool> linked(plan.sites.size());
  for (const PlannedLink& link : carriers.links) {
    require(carriers.programs.contains(link.program), "a link of no program");
    require(link.sites.size() == link.offsets.size() && link.sites.size() == link.cookies.size() &&
                link.sites.size() == link.ref_ctr_offsets.size(),
            "a link's arrays differ in length");
    for (std::size_t i = 0; i < link.sites.size(); ++i) {
      require(!linked.at(link.sites[i].value), "a site in two links");
      linked[link.sites[i].value] = true;
      require(link.offsets[i] == std::get<FilePlace>(plan.sites[link.sites[i]].point).offset.value,
              "a link at another place than its site");
    }
  }
  require(std::vector<bool>(plan.sites.size(), true) == linked, "a site in no link");
  require(!carriers.describe().empty(), "carriers without words");
}

}  // namespace

PipelineRun run_pipeline(const std::string& path, std::uint32_t variant) {
  auto found = find_probes({path, path}, {}, {.debug_dirs = {}});
  if (!found) {
    require(!found.error().message.empty(), "an error without a message");
    return {.sites = 0, .planned = 0, .error = found.error().message};
  }
  Selection selection;  // which is given the file: memory is measured, and the braces of a list would copy it twice
  selection.files.push_back(std::move(*found));
  const ProbeFile& file = selection.files.front();
  PipelineRun run{.sites = file.sites.size(), .planned = 0, .error = {}};
  const PlanOptions options = plan_options(variant);
  const KernelFacts kernel{.nops = static_cast<NopOptimisation>(variant % 3), .abilities = {}};
  for (const Site& site : file.sites)
    require(!site_cost(site, *file.elf, kernel, options).text.empty(), "a cost without words");
  const auto plan = plan_attach(selection, kernel, options);
  if (!plan) {
    require(!plan.error().message.empty(), "an error without a message");
    run.error = plan.error().message;
    return run;
  }
  run.planned = plan->sites.size();
  check_plan(*plan, file);
  const auto carriers = plan_carriers(*plan, carrier_options(variant));
  if (carriers) {
    check_carriers(*carriers, *plan);
  } else {
    run.error = carriers.error().message;
    require(!run.error.empty(), "an error without a message");
  }
  return run;
}

}  // namespace usdt::test
