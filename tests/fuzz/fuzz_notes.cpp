// SPDX-License-Identifier: BSD-2-Clause
// Any bytes as an ELF file or archive, held in memory: everything that reads one says what it finds or why not.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "elf/functions.hpp"
#include "elf/symbols.hpp"
#include "usdt/elf_file.hpp"

namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

void check_site(const usdt::Site& site, std::size_t file_size) {
  require(!site.name.empty(), "a site without a name");
  require(site.name.find('\0') == std::string::npos, "a NUL inside a name");
  require(!site.offset || site.offset->value < file_size, "a site beyond the end of the file");
  require(site.bytes.size <= site.bytes.data.size(), "more bytes than there is room for");
  require(site.offset || site.bytes.size == 0, "bytes without a place");
  require(site.has_semaphore || !site.semaphore_offset, "a place of no semaphore");
}

void check_functions(const usdt::ElfFile& file, std::size_t file_size) {
  const std::array names = {usdt::elf::FunctionName("*"), usdt::elf::FunctionName("a::b*(int)")};
  const auto functions = usdt::elf::find_functions(file, names);
  if (!functions) return require(!functions.error().message.empty(), "an error without a message");
  for (const usdt::Function& function : *functions) {
    require(!function.symbol.empty() && !function.name.empty(), "a function without a name");
    require(names[0].matches(function), "a function that was not asked for");
    require(!function.offset || function.offset->value < file_size, "a function beyond the end of the file");
    require(function.bytes.size <= function.bytes.data.size(), "more bytes than there is room for");
  }
}

void check_file(const std::string& path, std::size_t size) {
  const auto file = usdt::ElfFile::open(path, {.debug_dirs = {}});
  if (!file) return require(!file.error().message.empty(), "an error without a message");
  const auto scan = file->scan();
  require(scan.has_value(), "an opened file that cannot be scanned");
  for (const usdt::Site& site : scan->sites) check_site(site, size);
  for (const usdt::ScanWarning& warning : scan->warnings) require(!warning.message.empty(), "a warning without words");
  (void)file->build_id();
  const usdt::elf::SymbolIndex symbols(*file);
  (void)symbols.address("main");
  (void)symbols.got_slot("main");
  (void)symbols.global_offset_table();
  (void)symbols.compilers();
  check_functions(*file, size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int fd = ::memfd_create("fuzz_notes", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  require(fd >= 0 && ::ftruncate(fd, 0) == 0, "no file in memory");
  require(::pwrite(fd, data, size, 0) == static_cast<ssize_t>(size), "a short write to memory");
  check_file(path, size);
  return 0;
}
