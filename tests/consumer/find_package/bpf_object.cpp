// SPDX-License-Identifier: BSD-2-Clause
// The generated header compiles and holds an ELF file.
#include <cstdlib>

#include "hits.bpf.hpp"

const bool object_is_elf = [] {
  const auto bytes = hits_object();
  if (bytes.size() < 64 || bytes[1] != std::byte{'E'}) std::abort();
  return true;
}();
