// SPDX-License-Identifier: BSD-2-Clause
// Which files have the debug information of a program.
#include "dwarf/debug_files.hpp"

#include <elfutils/libdwelf.h>
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "base/try.hpp"
#include "dwarf/unpack.hpp"
#include "elf/debug_package.hpp"

namespace usdt::dwarf {
namespace {

namespace fs = std::filesystem;

bool has_dwarf(const elf::Image& image) {
  return image.find(".debug_info") != nullptr || image.find(".zdebug_info") != nullptr;
}

std::string hex(const void* bytes, std::size_t size) {
  std::string text;
  for (const std::uint8_t byte : std::span(static_cast<const std::uint8_t*>(bytes), size))
    text += fmt::format("{:02x}", byte);
  return text;
}

/// The file that dwz shares, of the very build that `main` names; no handles where `main` names none.
Result<DwarfFile> open_shared(const DwarfFile& main, const elf::OpenedFile& opened) {
  const char* name = nullptr;
  const void* id_bytes = nullptr;
  const ssize_t id_size = dwelf_dwarf_gnu_debugaltlink(main.dwarf.get(), &name, &id_bytes);
  if (id_size <= 0 || name == nullptr) return DwarfFile{};
  const std::string id = hex(id_bytes, static_cast<std::size_t>(std::min<ssize_t>(id_size, 64)));
  std::vector<fs::path> candidates = {main.path.parent_path() / name};  // an absolute one stays as it is
  for (const fs::path& dir : opened.options.debug_dirs) {
    if (id.size() > 2) candidates.push_back(dir / ".build-id" / id.substr(0, 2) / (id.substr(2) + ".debug"));
    candidates.push_back(dir / ".dwz" / fs::path(name).filename());
  }
  for (const fs::path& path : candidates) {
    const auto file = elf::File::open(path);
    if (!file || elf::magic_of(*file, 0) != elf::Magic::elf) continue;
    const auto image = elf::read_image(*file, 0, file->size(), path.string());
    if (!image || elf::build_id(*file, *image) != id) continue;
    auto shared = open_dwarf(*file, *image, path);
    if (shared) return shared;
  }
  return fail(ErrorKind::not_found,
              fmt::format("{} refers to debug information in {} (build id {}), which is not there", main.path.string(),
                          name, id));
}

/// Lets units be read from a package beside the file or its debug file, where debuggers look for it.
Result<void> use_package(DwarfFile& main, const elf::OpenedFile& opened, SplitUnits& split) {
  for (fs::path path : {main.path, opened.path}) {
    path += ".dwp";
    const auto file = elf::File::open(path);
    if (!file && file.error().kind == ErrorKind::not_found) continue;
    if (!file) return fail(file.error());
    const auto image = TRY(elf::read_image(*file, 0, file->size(), path.string()));
    TRY(check_claims(*file, image, path));
    auto package = TRY(open_elf(*file, path));
    TRY(unpack_sections(package));
    return split.use(std::move(package), main);
  }
  return split.use({}, main);
}

Error no_debug_information(const elf::OpenedFile& opened, const Result<elf::DebugFile>& separate) {
  const std::string id = elf::build_id(opened.file, opened.image);
  const std::string package = elf::where_symbols_are(elf::package_of(opened.path), id);
  std::string text = fmt::format("{} has no debug information (DWARF), nor is there a separate file with it{}{}",
                                 opened.path.string(), package.empty() ? "" : ": ", package);
  if (!separate && opened.options.debuginfod) text += "; " + separate.error().message;
  return {ErrorKind::not_found, std::move(text)};
}

/// The separate debug file, of one that has no debug information itself. Errors: not_found, stopped.
Result<std::optional<elf::DebugFile>> find_separate(const elf::OpenedFile& opened, const StopToken& stop) {
  if (has_dwarf(opened.image)) return std::nullopt;
  auto found = elf::find_debug_file(opened);
  if (stop.stop_requested() || opened.options.stop.stop_requested())
    return fail(ErrorKind::stopped, "stopped while looking for debug information");
  if (!found || !has_dwarf(found->image)) return fail(no_debug_information(opened, found));
  return *std::move(found);
}

}  // namespace

Result<DebugFiles> DebugFiles::open(const ElfFile& file, const StopToken& stop) {
  const auto& opened = elf::Inside::of(file);
  if (file.kind() == ElfKind::relocatable || file.kind() == ElfKind::archive)
    return fail(ErrorKind::not_supported,
                fmt::format("{} is not linked: its functions have no addresses yet", opened->path.string()));
  auto separate = TRY(find_separate(*opened, stop));
  DebugFiles files{.opened = opened,
                   .debug_file = std::move(separate),
                   .arch = arch::for_machine(opened->image.machine),
                   .code = CodeRanges(opened->image)};
  const auto& debug = files.debug_file;
  const auto prepare = [&](DwarfFile& file_read) { return use_package(file_read, *opened, files.split); };
  auto main = TRY(debug ? open_dwarf(debug->file, debug->image, debug->path, prepare)
                        : open_dwarf(opened->file, opened->image, opened->path, prepare));
  files.main = std::move(main);
  auto shared = TRY(open_shared(files.main, *opened));
  files.shared = std::move(shared);
  if (files.shared.dwarf) dwarf_setalt(files.main.dwarf.get(), files.shared.dwarf.get());
  files.sections = files.main.sections();
  return files;
}

std::uint64_t DebugFiles::bytes_of_dies() const {
  return sections.bytes_of_dies() + (shared.elf ? shared.sections().bytes_of_dies() : 0);
}

CodeRanges::CodeRanges(const elf::Image& image) {
  for (const elf::Section& section : image.sections)
    if ((section.flags & SHF_EXECINSTR) != 0 && (section.flags & SHF_ALLOC) != 0 && section.size != 0)
      ranges_.emplace_back(section.addr, section.addr + (section.size - 1));
  if (ranges_.empty()) {
    for (const elf::Segment& segment : image.segments)
      if (segment.type == PT_LOAD && (segment.flags & PF_X) != 0 && segment.memsz != 0)
        ranges_.emplace_back(segment.vaddr, segment.vaddr + (segment.memsz - 1));
  }
  std::ranges::sort(ranges_);
}

bool CodeRanges::contains(VirtAddr address) const noexcept {
  const auto after =
      std::ranges::upper_bound(ranges_, address.value, {}, &std::pair<std::uint64_t, std::uint64_t>::first);
  return after != ranges_.begin() && address.value <= std::prev(after)->second;
}

}  // namespace usdt::dwarf
