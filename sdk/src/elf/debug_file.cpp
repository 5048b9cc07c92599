// SPDX-License-Identifier: BSD-2-Clause
// Finding the separate debug file. Search order and checks: GDB manual, "Debugging Information in Separate Files".
#include <fmt/format.h>

#include <algorithm>
#include <stop_token>

#include "base/try.hpp"
#include "elf/crc32.hpp"
#include "elf/debuginfod.hpp"
#include "elf/elf_impl.hpp"

namespace usdt::elf {
namespace {

namespace fs = std::filesystem;

/// The contents of .gnu_debuglink: a file name, and the CRC-32 of that file's contents.
struct DebugLink {
  std::string name;
  std::uint32_t crc = 0;
};

std::optional<DebugLink> debug_link(const File& file, const Image& image) {
  const Section* section = image.find(".gnu_debuglink");
  if (section == nullptr || section->size > 4096) return std::nullopt;
  const Bytes bytes = section_bytes(file, image, *section);
  const auto end = std::ranges::find(bytes, 0);
  const auto length = static_cast<std::uint64_t>(end - bytes.begin());
  const std::uint64_t crc_at = (length + 4) & ~3ULL;  // after the NUL, padded to 4 bytes
  if (length == 0 || !within(crc_at, 4, bytes.size())) return std::nullopt;
  DebugLink link{std::string(bytes.begin(), end), little(load<std::uint32_t>(bytes, crc_at))};
  // A name with a directory in it would lead out of the places searched.
  if (link.name.find('/') != std::string::npos) return std::nullopt;
  return link;
}

/// The CRC of the file's contents; nothing where `stop` was requested before its end. Takes as long as what is stored
/// of the file, not as its size: anybody can put a sparse file of terabytes where a debug file is looked for.
std::optional<std::uint32_t> crc_of(const File& file, const std::stop_token& stop) {
  Crc32 crc;
  std::vector<std::uint8_t> chunk(1 << 16);
  for (std::uint64_t at = 0; at < file.size();) {
    if (stop.stop_requested()) return std::nullopt;
    const std::uint64_t data = file.data_from(at);
    crc.add_zeros(data - at);
    const std::size_t size = file.read(data, chunk);
    crc.add(std::span(chunk).first(size));
    at = size == 0 ? file.size() : data + size;
  }
  return crc.value();
}

/// Opens a candidate; nothing unless it is an ELF file of the same machine and another inode.
std::optional<DebugFile> open_candidate(const OpenedFile& main, const fs::path& path) {
  auto file = File::open(path);
  if (!file || file->same_inode(main.file) || magic_of(*file, 0) != Magic::elf) return std::nullopt;
  auto image = read_image(*file, 0, file->size(), path.string());
  if (!image || image->machine != main.image.machine || image->type == ET_REL) return std::nullopt;
  return DebugFile{path, std::move(*file), std::move(*image)};
}

std::optional<DebugFile> by_build_id(const OpenedFile& main, const std::string& id) {
  if (id.size() < 4) return std::nullopt;
  for (const fs::path& dir : main.options.debug_dirs) {
    auto found = open_candidate(main, dir / ".build-id" / id.substr(0, 2) / (id.substr(2) + ".debug"));
    if (found && build_id(found->file, found->image) == id) return found;
  }
  return std::nullopt;
}

bool may_have_one(const OpenedFile& main) { return main.kind == ElfKind::executable || main.kind == ElfKind::dynamic; }

bool other_build(const OpenedFile& main, const DebugFile& candidate) {
  const std::string ours = build_id(main.file, main.image);
  const std::string theirs = build_id(candidate.file, candidate.image);
  return !ours.empty() && !theirs.empty() && ours != theirs;
}

std::optional<DebugFile> by_debug_link(const OpenedFile& main) {
  const auto link = debug_link(main.file, main.image);
  if (!link) return std::nullopt;
  std::error_code ignored;
  const fs::path dir = fs::weakly_canonical(main.path, ignored).parent_path();
  std::vector<fs::path> candidates = {dir / link->name, dir / ".debug" / link->name};
  for (const fs::path& root : main.options.debug_dirs) candidates.push_back(root / dir.relative_path() / link->name);
  for (const fs::path& path : candidates) {
    auto found = open_candidate(main, path);
    // A CRC is work, and another build's file cannot have the right one.
    if (!found || other_build(main, *found)) continue;
    if (crc_of(found->file, main.options.stop) == link->crc) return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<DebugFile> local_debug_file(const OpenedFile& main) {
  if (!may_have_one(main)) return std::nullopt;
  if (auto found = by_build_id(main, build_id(main.file, main.image))) return found;
  return by_debug_link(main);
}

Result<DebugFile> find_debug_file(const OpenedFile& main) {
  if (auto found = local_debug_file(main)) return *std::move(found);
  if (!main.options.debuginfod || !may_have_one(main)) return fail(ErrorKind::not_found, "there is no debug file");
  const std::string id = build_id(main.file, main.image);
  const auto path = TRY(fetch_debug_file(id, main.options));
  auto found = open_candidate(main, path);
  // It is kept where the environment says: perhaps where another user could write it.
  if (found && !found->file.is_trusted())
    return fail(ErrorKind::no_permission, fmt::format("debuginfod: {} can be written to by others", path.string()));
  if (found && build_id(found->file, found->image) == id) return *std::move(found);
  return fail(ErrorKind::malformed, fmt::format("debuginfod: {} is not of build {}", path.string(), id));
}

std::uint64_t shift_between(const Image& debug, const Image& main) noexcept {
  const Section* there = debug.find(".text");
  const Section* here = main.find(".text");
  return there == nullptr || here == nullptr ? 0 : here->addr - there->addr;
}

}  // namespace usdt::elf
