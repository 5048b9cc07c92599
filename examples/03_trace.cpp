// SPDX-License-Identifier: BSD-2-Clause
// Traces probes with the stock program and prints their values: 03_trace PROBE [SECONDS], as root.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>
#include <usdt/usdt.hpp>

namespace {

void print(const usdt::Event& event) {
  std::cout << event.pid() << ' ' << event.probe().name;
  for (std::size_t n = 0; n < event.arg_count(); ++n) {
    // A value, or the reason there is none: never a made-up number.
    std::visit(
        [](const auto& value) {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, usdt::ArgError>)
            std::cout << " <" << value.reason << '>';
          else
            std::cout << ' ' << value;
        },
        event.value(n));
  }
  std::cout << '\n';
}

usdt::Result<void> run(const char* probe, std::chrono::seconds time) {
  auto patterns = usdt::parse_patterns({probe});
  if (!patterns) return usdt::fail(patterns.error());
  auto selection = usdt::select(*patterns);
  if (!selection) return usdt::fail(selection.error());
  auto plan = usdt::plan_attach(*selection, usdt::kernel_facts(*patterns));
  if (!plan) return usdt::fail(plan.error());

  std::stop_source stop;
  std::jthread timer([&] {
    std::this_thread::sleep_for(time);
    stop.request_stop();
  });
  auto counts = usdt::trace(*plan, stop.get_token(), print);
  if (!counts) return usdt::fail(counts.error());
  for (const auto each : plan->probes.indices()) {
    const usdt::ProbeCounts& counted = (*counts)[each.value];
    std::cerr << plan->probes[each].name << ": " << counted.hits << " hits, " << counted.ring_full << " lost\n";
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: 03_trace PROBE [SECONDS]\n";
    return 2;
  }
  const auto done = run(argv[1], std::chrono::seconds(argc > 2 ? std::atoi(argv[2]) : 5));
  if (!done) std::cerr << done.error().message << '\n';
  return done ? 0 : 1;
}
