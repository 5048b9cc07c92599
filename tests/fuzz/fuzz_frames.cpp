// SPDX-License-Identifier: BSD-2-Clause
// Any bytes as an ELF file that stacks go through: at addresses of its code, what runs there and where the caller is
// say what they find or why not, and no stack goes on for ever.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "dwarf/debug_info.hpp"
#include "dwarf/running.hpp"
#include "elf/elf_impl.hpp"
#include "locate/call_frames.hpp"

namespace {

using namespace usdt;

constexpr unsigned most_places = 64;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

void check_running(const dwarf::DebugInfo& info, VirtAddr at) {
  const auto running = dwarf::functions_at(info, at);
  for (std::size_t i = 0; i < running.size(); ++i)
    require(running[i].inlined == (i + 1 < running.size()), "the last one is the one whose code it is");
}

void check_frames(locate::CallFrames& frames, VirtAddr at) {
  locate::FrameRegisters registers;
  for (std::size_t i = 0; i < registers.values.size(); ++i) registers.values[i] = 0x7ffe0000 + 8 * i;
  const auto memory = [at](std::uint64_t address, unsigned) {
    return address % 3 == 0 ? std::nullopt : std::optional(at.value + address % 4096);
  };
  bool signal = false;
  for (unsigned depth = 0; depth < 16; ++depth)
    if (frames.step(VirtAddr(depth == 0 ? at.value : registers.pc), registers, memory, signal) !=
        locate::FrameStep::taken)
      break;
  (void)frames.base_at(at);
  (void)frames.is_outermost(at);
}

void check_file(const std::string& path) {
  const auto file = ElfFile::open(path, {.debug_dirs = {}});
  if (!file) return;
  auto frames = locate::CallFrames::open(*file);
  require(frames || !frames.error().message.empty(), "an error without a message");
  const auto info = dwarf::DebugInfo::open(*file);
  unsigned left = most_places;
  for (const elf::Section& section : elf::Inside::of(*file)->image.sections) {
    if ((section.flags & SHF_EXECINSTR) == 0) continue;
    for (std::uint64_t at = 0; at < section.size && left > 0; at += section.size / 8 + 1, --left) {
      if (frames) check_frames(*frames, VirtAddr(section.addr + at));
      if (info) check_running(*info, VirtAddr(section.addr + at));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int fd = ::memfd_create("fuzz_frames", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  require(fd >= 0 && ::ftruncate(fd, 0) == 0, "no file in memory");
  require(::pwrite(fd, data, size, 0) == static_cast<ssize_t>(size), "a short write to memory");
  check_file(path);
  return 0;
}
