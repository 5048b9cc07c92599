// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/machine.hpp"

namespace usdt {
inline namespace v1 {

std::string_view to_string(Machine machine) noexcept {
  switch (machine) {
    case Machine::x86_64:
      return "x86_64";
    case Machine::i386:
      return "i386";
    case Machine::aarch64:
      return "aarch64";
  }
  return "unknown";
}

bool runs_here(Machine machine) noexcept {
#if defined(__x86_64__)
  return machine == Machine::x86_64 || machine == Machine::i386;
#elif defined(__aarch64__)
  return machine == Machine::aarch64;
#else
  return machine == Machine::i386;
#endif
}

}  // namespace v1
}  // namespace usdt
