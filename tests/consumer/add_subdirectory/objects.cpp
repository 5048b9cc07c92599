// SPDX-License-Identifier: BSD-2-Clause
// One header for each source of usdt_add_bpf().
#include <cstdlib>

#include "one.bpf.hpp"
#include "two.bpf.hpp"

const bool objects_are_elf = [] {
  for (const auto bytes : {one_object(), two_object()})
    if (bytes.size() < 64 || bytes[1] != std::byte{'E'}) std::abort();
  return true;
}();
