// SPDX-License-Identifier: BSD-2-Clause
#include "elf/go_program.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "arch/arch.hpp"

namespace usdt::elf {
namespace {

/// Sections of the runtime's table of functions, whose name depends on how the program is linked, and of facts about
/// the build.
constexpr std::array<std::string_view, 4> kSections{".gopclntab", ".data.rel.ro.gopclntab", ".go.buildinfo",
                                                    ".note.go.buildid"};

/// debug/buildinfo/buildinfo.go: 14 bytes of magic, flags at 15, and where those have bit 1, since 1.18, the version at
/// 32 behind its length.
std::string version_of(ByteView info) {
  constexpr std::string_view magic = "\xff Go buildinf:";
  constexpr std::size_t length_at = 32;
  constexpr std::uint8_t most_length = 127;
  if (info.size() <= length_at ||
      !std::ranges::equal(magic, info.first(magic.size()), {}, [](char c) { return static_cast<std::uint8_t>(c); }))
    return {};
  const std::uint8_t length = info[length_at];
  if ((info[15] & 2) == 0 || length > most_length || info.size() - length_at - 1 < length) return {};
  const ByteView text = info.subspan(length_at + 1, length);
  return {text.begin(), text.end()};
}

/// 19 of "go1.19.8"; 0: another form.
unsigned minor_of(std::string_view version) {
  constexpr std::string_view first = "go1.";
  unsigned minor = 0;
  if (version.starts_with(first))
    std::from_chars(version.data() + first.size(), version.data() + version.size(), minor);
  return minor;
}

}  // namespace

std::optional<GoProgram> go_program(const File& file, const Image& image) {
  if (std::ranges::none_of(kSections, [&](std::string_view name) { return image.find(name) != nullptr; }))
    return std::nullopt;
  GoProgram program;
  if (const Section* info = image.find(".go.buildinfo"))
    program.version = version_of(section_bytes(file, image, *info));
  const bool other_conventions = program.version.find("noregabi") != std::string::npos;  // "go1.18 X:noregabi"
  const unsigned first = arch::for_machine(image.machine).known_code.go_registers;
  program.by_registers = first != 0 && minor_of(program.version) >= first && !other_conventions;
  return program;
}

}  // namespace usdt::elf
