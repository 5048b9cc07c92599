// SPDX-License-Identifier: BSD-2-Clause
// Attaches a BPF program of our own to probes (id, customer, ...) and reads its typed records: 04_own_program PROBE, as
// root.
#include <chrono>
#include <iostream>
#include <thread>
#include <usdt/usdt.hpp>

#include "own_program.bpf.hpp"  // made by usdt_add_bpf()
#include "own_program.h"

namespace {

usdt::Result<usdt::ConsumeStats> watch(const char* probe, const std::stop_token& stop) {
  auto pattern = usdt::ProbePattern::parse(probe);
  if (!pattern) return usdt::fail(pattern.error());
  auto selection = usdt::select({*pattern});
  if (!selection) return usdt::fail(selection.error());
  auto plan = usdt::plan_attach(*selection, usdt::kernel_facts(), {.user_cookie = 7});
  if (!plan) return usdt::fail(plan.error());

  auto object = usdt::BpfObject::open(own_program_object());
  if (!object) return usdt::fail(object.error());
  auto loaded = object->load(std::move(*plan));
  if (!loaded) return usdt::fail(loaded.error());
  auto link = loaded->attach("on_hit");
  if (!link) return usdt::fail(link.error());

  return usdt::consume<order>(*loaded, "events", stop, [](const order& o) {
    std::cout << "order " << o.id << " by " << o.customer << " in process " << o.pid << " (cookie " << o.cookie
              << ")\n";
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: 04_own_program PROBE\n";
    return 2;
  }
  std::stop_source stop;
  std::jthread timer([&] {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    stop.request_stop();
  });
  const auto stats = watch(argv[1], stop.get_token());
  if (!stats) std::cerr << stats.error().message << '\n';
  return stats ? 0 : 1;
}
