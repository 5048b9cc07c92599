// SPDX-License-Identifier: BSD-2-Clause
// Tests a callback with fabricated events: no kernel, no privilege, no traced program.
#include <iostream>
#include <string>
#include <usdt/testing/event_builder.hpp>
#include <usdt/usdt.hpp>

namespace {

/// The code under test: what an application does with a hit.
std::string describe(const usdt::Event& event) {
  auto rows = event.arg<std::int32_t>(1);
  auto sql = event.text(0);
  if (!rows || !sql) return "unreadable";
  return std::string(sql->bytes) + " -> " + std::to_string(*rows) + " rows";
}

}  // namespace

int main() {
  const auto plan = usdt::testing::synthetic_plan("db", "query__done", usdt::Machine::x86_64, "8@%rdi -4@%esi", {0});
  const auto record =
      *usdt::testing::EventBuilder(plan).pid(42).arg(0, 0x1000).text(0, "select 1").arg(1, std::int32_t{1}).build();
  const auto event = usdt::Event::from(record, plan, usdt::testing::layout_of(plan));
  if (!event || describe(*event) != "select 1 -> 1 rows") {
    std::cerr << "not what was expected\n";
    return 1;
  }
  std::cout << describe(*event) << '\n';
  return 0;
}
