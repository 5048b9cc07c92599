// SPDX-License-Identifier: BSD-2-Clause
// Any bytes as a file to trace: scan, plan, carriers. The first four bytes are not the file's: they choose the kernel,
// the options and the carrier.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/plan/whole_pipeline.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int fd = ::memfd_create("fuzz_plan", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  std::uint32_t variant = 0;
  if (size < sizeof(variant)) return 0;
  std::memcpy(&variant, data, sizeof(variant));
  data += sizeof(variant);
  size -= sizeof(variant);
  if (fd < 0 || ::ftruncate(fd, 0) != 0 || ::pwrite(fd, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  (void)usdt::test::run_pipeline(path, variant);
  return 0;
}
