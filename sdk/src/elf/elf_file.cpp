// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/elf_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <new>

#include "base/no_memory.hpp"
#include "base/try.hpp"
#include "elf/descriptions.hpp"
#include "elf/elf_impl.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using elf::File;
using elf::Image;
using elf::Magic;
using elf::Member;
using elf::OpenedFile;

/// "\"#!/b\"" where it is text, "89 50 4e 47" where it is not.
std::string first_bytes(const File& file) {
  std::array<std::uint8_t, 4> head{};
  const std::span bytes = std::span(head).first(file.read(0, head));
  const bool text = std::ranges::all_of(bytes, [](std::uint8_t b) { return b >= ' ' && b <= '~'; });
  if (text) return fmt::format("\"{}\"", std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  return fmt::format("{:02x}", fmt::join(bytes, " "));
}

ElfKind kind_of(const Image& image) noexcept {
  if (image.type == ET_REL) return ElfKind::relocatable;
  if (image.is_debug_file()) return ElfKind::debug;
  return image.type == ET_EXEC ? ElfKind::executable : ElfKind::dynamic;
}

std::string member_label(const std::filesystem::path& path, const Member& member) {
  return fmt::format("{}({})", path.string(), member.name);
}

/// The first ELF member of an archive stands for the machine of all.
Result<Image> first_member(const File& file, const std::filesystem::path& path) {
  std::optional<Result<Image>> first;
  const auto broken = elf::for_each_member(file, [&](const Member& member) {
    if (elf::magic_of(file, member.start) != Magic::elf) return true;
    if (!first || !*first) first = elf::read_image(file, member.start, member.size, member_label(path, member));
    return !first->has_value();
  });
  if (first) return std::move(*first);
  if (broken) return fail(ErrorKind::malformed, fmt::format("{}: {}", path.string(), broken->message));
  return fail(ErrorKind::not_supported, fmt::format("{}: an archive without ELF members", path.string()));
}

ScanResult scan_archive(const OpenedFile& opened) {
  ScanResult result;
  elf::Warnings warnings(result.warnings);
  const auto broken = elf::for_each_member(opened.file, [&](const Member& member) {
    if (opened.options.stop.stop_requested()) return false;
    if (elf::magic_of(opened.file, member.start) != Magic::elf) return true;
    const auto image = elf::read_image(opened.file, member.start, member.size, member.name);
    if (!image) {
      warnings.set_prefix({});
      warnings.add(member.start, image.error().message);
      return true;
    }
    warnings.set_prefix(member.name + ": ");
    const std::size_t before = result.sites.size();
    elf::collect_notes(opened.file, *image, result.sites, warnings, opened.options.stop);
    for (std::size_t i = before; i < result.sites.size(); ++i) result.sites[i].member = member.name;
    return true;
  });
  warnings.set_prefix({});
  if (broken) warnings.add(broken->where.value, broken->message);
  return result;
}

/// Address of .stapsdt.base as linked, 0 where the section headers do not tell.
std::uint64_t base_address(const Image& image) noexcept {
  const elf::Section* section = image.find(".stapsdt.base");
  return section == nullptr ? 0 : section->addr;
}

ScanResult scan_object(const OpenedFile& opened) {
  ScanResult result;
  elf::Warnings warnings(result.warnings);
  std::uint64_t base = base_address(opened.image);
  elf::collect_notes(opened.file, opened.image, result.sites, warnings, opened.options.stop);
  elf::add_descriptions(opened.file, opened.image, result.sites, warnings, opened.options.stop);
  if (result.sites.empty()) {
    if (const auto debug = elf::local_debug_file(opened)) {
      warnings.set_prefix(debug->path.string() + ": ");
      elf::collect_notes(debug->file, debug->image, result.sites, warnings, opened.options.stop);
      elf::add_descriptions(debug->file, debug->image, result.sites, warnings, opened.options.stop);
      if (!result.sites.empty()) result.debug_file = debug->path;
      if (base == 0) base = base_address(debug->image);
    }
  }
  elf::place_sites(opened.file, opened.image, base, result.sites);
  return result;
}

}  // namespace

Result<ElfFile> ElfFile::open(const std::filesystem::path& path, const OpenOptions& options) try {
  auto file = File::open(path);
  if (!file) return fail(file.error());
  const std::string label = path.string();
  if (file->size() == 0) return fail(ErrorKind::malformed, fmt::format("{}: empty file", label));
  const Magic magic = elf::magic_of(*file, 0);
  if (magic == Magic::thin_archive) {
    return fail(ErrorKind::not_supported,
                fmt::format("{}: a thin archive, which holds no code: list its member files instead", label));
  }
  if (magic == Magic::other) {
    const std::string first = first_bytes(*file);
    const bool script = first.starts_with("\"#!");
    return fail(ErrorKind::malformed,
                fmt::format("{}: not an ELF file or archive: begins with {}{}", label, first,
                            script ? ", a script: what is to be traced is in the programs that it starts" : ""));
  }
  const bool archive = magic == Magic::archive;
  auto image = TRY(archive ? first_member(*file, path) : elf::read_image(*file, 0, file->size(), label));
  const ElfKind kind = archive ? ElfKind::archive : kind_of(image);
  OpenedFile opened{path, std::move(*file), kind, std::move(image), options};
  return ElfFile(std::make_unique<Impl>(Impl{std::make_shared<const OpenedFile>(std::move(opened))}));
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

ElfFile::ElfFile(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
ElfFile::ElfFile(ElfFile&&) noexcept = default;
ElfFile& ElfFile::operator=(ElfFile&&) noexcept = default;
ElfFile::~ElfFile() = default;

const std::filesystem::path& ElfFile::path() const noexcept { return impl_->opened->path; }
Machine ElfFile::machine() const noexcept { return impl_->opened->image.machine; }
ElfKind ElfFile::kind() const noexcept { return impl_->opened->kind; }
std::string ElfFile::build_id() const { return elf::build_id(impl_->opened->file, impl_->opened->image); }
int ElfFile::fd() const noexcept { return impl_->opened->file.fd(); }
bool ElfFile::unchanged() const noexcept { return impl_->opened->file.unchanged(); }
bool ElfFile::is_unwritten() const noexcept { return impl_->opened->file.is_unwritten(); }

Result<ScanResult> ElfFile::scan() const try {
  const OpenedFile& opened = *impl_->opened;
  ScanResult result = kind() == ElfKind::archive ? scan_archive(opened) : scan_object(opened);
  if (opened.options.stop.stop_requested()) {
    return fail(ErrorKind::stopped, fmt::format("{}: not read to the end", opened.path.string()));
  }
  return result;
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

}  // namespace v1
}  // namespace usdt
