// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/machine.hpp"

#include "arch/arch.hpp"
#include "arch/host.hpp"

namespace usdt {
inline namespace v1 {

std::string_view to_string(Machine machine) noexcept { return arch::for_machine(machine).name; }

Machine host_machine() noexcept { return arch::kHostMachine; }

bool runs_here(Machine machine) noexcept {
  return machine == arch::kHostMachine || arch::for_machine(machine).kernel.guest_of == arch::kHostMachine;
}

unsigned address_size(Machine machine) noexcept { return arch::for_machine(machine).word_size; }

bool steps_returns(Machine machine) noexcept { return arch::for_machine(machine).kernel.steps_returns; }

}  // namespace v1
}  // namespace usdt
