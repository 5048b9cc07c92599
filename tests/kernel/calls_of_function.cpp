// SPDX-License-Identifier: BSD-2-Clause
#include "calls_of_function.hpp"

#include <link.h>

#include <optional>

namespace usdt::calls {

long twice_and_one(long argument) {
  asm volatile("" : "+r"(argument));  // not known to the compiler, so that it is called and returns
  return 2 * argument + 1;
}

namespace {

#if defined(__aarch64__)
constexpr const char* kFirstArgument = "-8@x0";
#elif defined(__i386__)
constexpr const char* kFirstArgument = "-4@4(%esp)";
#else
constexpr const char* kFirstArgument = "-8@%rdi";
#endif

/// Where an address of this program is in its file.
struct Place {
  std::uint64_t address;
  std::uint64_t linked = 0;
  std::optional<std::uint64_t> offset;
};

int find_segment(dl_phdr_info* program, std::size_t, void* data) {
  auto& place = *static_cast<Place*>(data);
  place.linked = place.address - program->dlpi_addr;
  for (int i = 0; i < program->dlpi_phnum; ++i) {
    const auto& segment = program->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && place.linked - segment.p_vaddr < segment.p_filesz)
      place.offset = place.linked - segment.p_vaddr + segment.p_offset;
  }
  return 1;  // the program itself is the first
}

}  // namespace

ProbeFile file_with_function() {
  Place place{.address = reinterpret_cast<std::uintptr_t>(&twice_and_one), .offset = {}};
  ::dl_iterate_phdr(find_segment, &place);
  Site site;
  site.provider = "by_hand";
  site.name = "twice_and_one";
  site.args_text = kFirstArgument;
  site.pc = site.pc_adjusted = VirtAddr(place.linked);
  site.offset = FileOffset(place.offset.value());
  site.bytes.size = static_cast<std::uint8_t>(site.bytes.data.size());
  std::memcpy(site.bytes.data.data(), reinterpret_cast<const void*>(place.address), site.bytes.size);
  const std::string self = "/proc/self/exe";
  return {.target = {self, self, false},
          .elf = std::make_shared<const ElfFile>(std::move(*ElfFile::open(self))),
          .sites = {site},
          .warnings = {}};
}

Seen seen(const LoadedObject& object, const char* variable) {
  Seen value;
  std::memcpy(&value, object.global(variable), sizeof(value));
  return value;
}

}  // namespace usdt::calls
