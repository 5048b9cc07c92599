// SPDX-License-Identifier: BSD-2-Clause
// Any bytes as what a process says of its threads: it is read or refused, and what is read is no larger than the bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "proc/process_context.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto context = usdt::proc::parse_process_context({reinterpret_cast<const char*>(data), size});
  if (!context) return 0;
  std::size_t bytes = context->schema.size();
  for (const std::string& key : context->keys) bytes += key.size();
  if (bytes > size || context->keys.size() > usdt::proc::kMostContextKeys) std::abort();
  return 0;
}
