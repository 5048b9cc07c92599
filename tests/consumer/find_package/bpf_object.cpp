// SPDX-License-Identifier: BSD-2-Clause
// The generated headers compile and hold ELF files.
#include <cstdlib>

#include "hits.bpf.hpp"
#include "libbpf_hits.bpf.hpp"

const bool objects_are_elf = [] {
  for (const auto bytes : {hits_object(), libbpf_hits_object()})
    if (bytes.size() < 64 || bytes[1] != std::byte{'E'}) std::abort();
  return true;
}();
