// SPDX-License-Identifier: BSD-2-Clause
#include "memory.hpp"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace usdt_agent {
namespace {

/// Unmaps the pages of the segments of one loaded object that nobody writes to: those are the file's, whatever happens.
int release_object(dl_phdr_info* object, std::size_t /*size*/, void* /*unused*/) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (int n = 0; n < object->dlpi_phnum; ++n) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[n];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) & ~(page - 1);
    const std::uintptr_t end = (object->dlpi_addr + segment.p_vaddr + segment.p_memsz) & ~(page - 1);
    // (The kernel maps a page again when it is used; a refusal changes nothing.)
    if (end > begin) static_cast<void>(::madvise(std::bit_cast<void*>(begin), end - begin, MADV_DONTNEED));
  }
  return 0;
}

}  // namespace

void keep_memory_small() {
  ::mallopt(M_ARENA_MAX, 1);  // the threads allocate little, and an arena each would stay
  // A batch does not go back to the system only to be asked for again; what planning took does.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 20);
}

void release_memory() {
  ::malloc_trim(0);
  ::dl_iterate_phdr(release_object, nullptr);
}

}  // namespace usdt_agent
