// SPDX-License-Identifier: BSD-2-Clause
#include "event/hit_prices.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>

#include "arch/arch.hpp"
#include "backend/table.hpp"
#include "base/try.hpp"
#include "usdt/features.hpp"

namespace usdt::event {
namespace {

using features::TrappedInstruction;

/// Cost of a program without clocks, ns: docs/results/hit.md, reading a few values and writing a record.
constexpr double kUsualProgram = 300;

TrappedInstruction instruction_at(const FilePlace& place, const ElfFile& file, NopOptimisation nops) {
  std::array<std::uint8_t, 16> bytes{};
  const ssize_t n = ::pread(file.fd(), bytes.data(), bytes.size(), static_cast<off_t>(place.offset.value));
  const auto known = std::span(bytes).first(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  switch (arch::classify_site(file.machine(), known)) {
    case SiteClass::nop:
    case SiteClass::nop_nop5:
    case SiteClass::nop_nop10:
      return TrappedInstruction::nop;
    case SiteClass::nop5:
    case SiteClass::nop10:  // kernels that make no calls of them know only the short one
      return nops == NopOptimisation::none ? TrappedInstruction::single_step : TrappedInstruction::nop;
    case SiteClass::emulated:
      return TrappedInstruction::emulated;
    case SiteClass::single_step:
    case SiteClass::unknown:
      break;
  }
  return TrappedInstruction::single_step;
}

}  // namespace

Result<HitPrices> HitPrices::measure(const LoadedObject& object, const std::string& program) {
  HitPrices prices;
  const AttachPlan& plan = object.plan();
  const NopOptimisation nops = kernel_facts().nops;
  std::map<TrappedInstruction, double> measured;
  const auto price_at = [&](const FilePlace& place) -> Result<double> {
    const TrappedInstruction instruction = instruction_at(place, *plan.files[place.file].elf, nops);
    auto known = measured.find(instruction);
    if (known == measured.end()) {
      auto cost = TRY(features::trap_cost(instruction, backends::row_of(object.backend()).on_perf_event));
      known = measured.emplace(instruction, cost).first;
    }
    return known->second;
  };
  for (const PlannedSite& site : plan.sites) {
    const auto* place = std::get_if<FilePlace>(&site.point);
    if (place == nullptr) return fail(ErrorKind::not_supported, "what hits in the kernel cost is not measured");
    double sum = 0;
    // A return that is seen by a RET instruction has that one's price, and a call also that of its entry.
    if (!place->rets.empty()) {
      FilePlace ret = *place;
      ret.offset = place->rets.front();
      const auto price = TRY(price_at(ret));
      sum += price;
    }
    if (place->rets.empty() || plan.probes[site.probe].function == Moment::both) {
      const auto price = TRY(price_at(*place));
      sum += price;
    }
    prices.of_traps_.push_back(sum);
  }
  for (std::size_t copy = 0; copy < object.carriers().programs.size(); ++copy)
    if (const auto fd = object.program_fd(program, copy)) prices.programs_.push_back(*fd);
  return prices;
}

double HitPrices::of_programs(std::uint64_t hits) const {
  if (!clocks_.run()) return kUsualProgram * static_cast<double>(hits);
  double sum = 0;
  for (const int fd : programs_)
    if (const auto time = features::program_time(fd)) sum += static_cast<double>(time->nanoseconds);
  return sum;
}

}  // namespace usdt::event
