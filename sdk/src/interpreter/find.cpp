// SPDX-License-Identifier: BSD-2-Clause
#include "interpreter/find.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string_view>
#include <vector>

#include "elf/elf_impl.hpp"
#include "elf/symbols.hpp"
#include "proc/mapped_code.hpp"
#include "usdt/elf_file.hpp"

namespace usdt::interpreter {
namespace {

/// Mappings of one process whose files are called like an interpreter, and looked into. There are one or two.
constexpr std::size_t kMostLookedInto = 64;
constexpr const char* kUnknownVersion = "where this version keeps its functions is not known here";

/// What a file says of the interpreter in it: addresses as linked.
struct Places {
  std::uint64_t runtime = 0;
  std::uint64_t version = 0;  ///< 0: it is older than 3.11
  std::uint64_t code_type = 0;
};

std::uint64_t address_or_0(const elf::SymbolIndex& symbols, std::string_view name) {
  const auto address = symbols.has(name) ? std::optional(symbols.address(name)) : std::nullopt;
  return address && *address ? (*address)->value : 0;
}

bool is_called(const proc::MappedCode& code, std::string_view name) {
  const std::string file = code.file.path.filename().string();
  return !code.file.access.empty() && (file.starts_with(name) || file.starts_with("lib" + std::string(name)));
}

std::optional<Places> places_in(const ElfFile& file) {
  const elf::SymbolIndex symbols(file);
  Places places{.runtime = address_or_0(symbols, "_PyRuntime"),
                .version = address_or_0(symbols, "Py_Version"),
                .code_type = address_or_0(symbols, "PyCode_Type")};
  // Since 3.13 it has a section of its own, which needs no symbol.
  const elf::Section* section = elf::Inside::of(file)->image.find(".PyRuntime");
  if (places.runtime == 0 && section != nullptr) places.runtime = section->addr;
  return places.runtime != 0 ? std::optional(places) : std::nullopt;
}

/// How far the file's addresses are from those in the process: the mapping begins at a page, the segment within it.
std::optional<std::uint64_t> shift_of(const ElfFile& file, const proc::Mapping& mapping) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  for (const elf::Segment& segment : elf::Inside::of(file)->image.segments)
    if (segment.type == PT_LOAD && (segment.flags & PF_X) != 0 && segment.offset / page * page == mapping.offset)
      return mapping.start.value - segment.vaddr / page * page;
  return std::nullopt;
}

/// Whether the structures are where the layout says, as far as there are any yet: a thread has its interpreter.
bool fits(const Memory& memory, const CPythonLayout& layout, const usdt_interpreter& walk) {
  const auto interpreter = memory.value<std::uint64_t>(walk.interpreters);
  if (!interpreter) return false;
  if (*interpreter == 0) return true;  // it has just begun
  const auto thread = memory.value<std::uint64_t>(*interpreter + walk.interpreter_threads);
  if (!thread) return false;
  return *thread == 0 || memory.value<std::uint64_t>(*thread + layout.thread_interpreter) == interpreter;
}

Found python_in(const Places& places, std::uint64_t shift, const Memory& memory) {
  // Behind the mark of its table of offsets a later version has the number, too.
  const std::uint64_t version_at = places.version != 0 ? places.version : places.runtime + sizeof(std::uint64_t);
  const auto version = memory.value<std::uint64_t>(version_at + shift);
  if (!version) return {};  // the process ended
  Found found{.name = "CPython"};
  if (*version >> 24 != 3) {
    found.why_not = "its version cannot be read: it may be older than 3.11";
    return found;
  }
  found.name = fmt::format("CPython {}.{}", *version >> 24, *version >> 16 & 0xff);
  const std::uint64_t runtime = places.runtime + shift;
  auto layout = cpython_layout(static_cast<std::uint16_t>(*version >> 16), memory, runtime);
  if (!layout) {
    found.why_not = layout.error().message;
    return found;
  }
  found.walk = layout->walk;
  found.walk.check_at = version_at + shift;
  found.walk.check = *version;
  found.walk.interpreters = runtime + layout->interpreters;
  found.walk.holder = layout->holder != 0 ? runtime + layout->holder : 0;
  if (!fits(memory, *layout, found.walk)) {
    found.why_not = "its structures are not those of this version";
    return found;
  }
  found.python = *layout;
  if (places.code_type != 0) found.code_type = places.code_type + shift;
  return found;
}

/// A version at the beginning of a text that is as long as a word, or longer.
std::optional<std::uint16_t> version_in(std::uint64_t word) {
  unsigned major = 0, minor = 0;
  const std::string text(reinterpret_cast<const char*>(&word), sizeof(word));
  if (std::sscanf(text.c_str(), "%u.%u", &major, &minor) != 2 || major > UINT8_MAX || minor > UINT8_MAX)
    return std::nullopt;
  return static_cast<std::uint16_t>(major << 8 | minor);
}

/// Where a file has PHP's version, as it tells it to clients: the address of the number.
std::optional<std::uint64_t> php_version_in(const ElfFile& file) {
  constexpr std::string_view before = "X-Powered-By: PHP/";
  const elf::OpenedFile& opened = *elf::Inside::of(file);
  const elf::Section* section = opened.image.find(".rodata");
  if (section == nullptr) return std::nullopt;
  const elf::Bytes bytes = elf::section_bytes(opened.file, opened.image, *section);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t at = text.find(before);
  return at == std::string_view::npos ? std::nullopt : std::optional(section->addr + at + before.size());
}

Found php_in(std::uint64_t version_at, std::uint64_t globals, const Memory& memory) {
  const auto word = memory.value<std::uint64_t>(version_at);
  if (!word) return {};  // the process ended
  Found found{.name = "PHP"};
  const auto version = version_in(*word);
  if (!version) {
    found.why_not = "its version cannot be read";
    return found;
  }
  found.name = fmt::format("PHP {}.{}", *version >> 8, *version & 0xff);
  const PhpLayout* layout = php_layout(*version);
  if (layout == nullptr)
    found.why_not = kUnknownVersion;
  else if (globals == 0)
    found.why_not = "functions of builds with thread safety (ZTS) cannot be followed";
  if (!found.why_not.empty()) return found;
  found.php = layout;
  found.walk = layout->walk;
  found.walk.check_at = version_at;
  found.walk.check = *word;
  found.walk.holder = globals + layout->innermost;
  return found;
}

Found ruby_in(std::uint64_t version_at, const Memory& memory) {
  const auto word = memory.value<std::uint64_t>(version_at);
  if (!word) return {};  // the process ended
  Found found{.name = "Ruby"};
  const auto version = version_in(*word);
  if (!version) {
    found.why_not = "its version cannot be read";
    return found;
  }
  found.name = fmt::format("Ruby {}.{}", *version >> 8, *version & 0xff);
  found.ruby = ruby_layout(*version);
  if (found.ruby == nullptr) {
    found.why_not = kUnknownVersion;
    return found;
  }
  found.walk = found.ruby->walk;
  found.walk.check_at = version_at;
  found.walk.check = *word;
  return found;
}

std::optional<Found> python_of(const ElfFile& file, std::uint64_t shift, const Memory& memory) {
  const auto places = places_in(file);
  return places ? std::optional(python_in(*places, shift, memory)) : std::nullopt;
}

std::optional<Found> php_of(const ElfFile& file, std::uint64_t shift, const Memory& memory) {
  const auto version = php_version_in(file);
  if (!version) return std::nullopt;
  const std::uint64_t globals = address_or_0(elf::SymbolIndex(file), "executor_globals");
  return php_in(*version + shift, globals != 0 ? globals + shift : 0, memory);
}

std::optional<Found> ruby_of(const ElfFile& file, std::uint64_t shift, const Memory& memory) {
  const std::uint64_t version = address_or_0(elf::SymbolIndex(file), kRubyMark);
  if (version == 0) return std::nullopt;
  Found found = ruby_in(version + shift, memory);
  if (const elf::Section* data = elf::Inside::of(file)->image.find(".data"); data != nullptr) {
    found.data = data->addr + shift;
    found.data_size = data->size;
  }
  return found;
}

/// The interpreters by what their programs and libraries are called.
struct Interpreter {
  std::string_view name;
  std::optional<Found> (*find)(const ElfFile& file, std::uint64_t shift, const Memory& memory);
};
constexpr std::array kInterpreters{Interpreter{"python", python_of}, Interpreter{"php", php_of},
                                   Interpreter{"ruby", ruby_of}};

}  // namespace

Found find_interpreter(pid_t pid, const Memory& memory) {
  const auto code = proc::mapped_code(pid);
  if (!code) return {};
  std::size_t left = kMostLookedInto;
  for (const proc::MappedCode& each : *code) {
    const auto kind =
        std::ranges::find_if(kInterpreters, [&](const Interpreter& known) { return is_called(each, known.name); });
    if (kind == kInterpreters.end()) continue;
    if (left-- == 0) return {};
    const auto file = ElfFile::open(each.file.access, {.debug_dirs = {}});
    if (!file || !elf::Inside::of(*file)->image.is64) continue;
    const auto shift = shift_of(*file, each.mapping);
    if (!shift) continue;
    if (auto found = kind->find(*file, *shift, memory)) return std::move(*found);
  }
  return {};
}

}  // namespace usdt::interpreter
