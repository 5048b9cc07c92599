// SPDX-License-Identifier: BSD-2-Clause
// Which files have the debug information, and what they must be like to be given to libdw.
#include <elfutils/libdwelf.h>
#include <fmt/format.h>
#include <gelf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/no_memory.hpp"
#include "base/try.hpp"
#include "dwarf/budget.hpp"
#include "dwarf/die.hpp"
#include "dwarf/impl.hpp"
#include "dwarf/unpack.hpp"
#include "elf/debug_package.hpp"

namespace usdt::dwarf {
namespace {

namespace fs = std::filesystem;

/// libelf keeps some 200 bytes for each section that a header claims; real debug files have up to some ten thousand
/// (-ffunction-sections, before linking).
constexpr std::size_t most_sections = 200'000;
/// A file of at most so many bytes is copied; one that somebody else may change, of more.
constexpr std::uint64_t largest_copy = 64ULL << 20;
constexpr std::uint64_t largest_foreign_copy = 512ULL << 20;
/// A page, so that there are some behind a mapping too.
constexpr std::size_t zeros_behind = 4096;
/// What compressed sections may come to in all, and how much of them DEFLATE can make of a byte.
constexpr std::uint64_t largest_unpacked = 8ULL << 30;
constexpr std::uint64_t best_ratio = 1032;
/// Bytes of abbreviations that units may read in all, besides those for each byte of debug information.
constexpr std::uint64_t tables_at_first = 1U << 20;
/// The same of what functions may have in common: for the .dwo files of a program, whose sizes are not known here.
constexpr std::uint64_t reads_at_first = 1U << 25;
/// Bytes of code that inlined copies may make read, besides those of the file: some seconds' worth.
constexpr std::uint64_t code_at_first = 1U << 24;
/// Bytes of code that functions may make read for their results, besides those of the file. Each does so once, and
/// functions of compilers do not overlap: the bytes of the file are enough for them.
constexpr std::uint64_t results_at_first = 1U << 22;

/// What libdw allocates for a file before it reads any of it, and then some.
constexpr std::size_t work_of_libdw = 1U << 16;

bool has_dwarf(const elf::Image& image) {
  return image.find(".debug_info") != nullptr || image.find(".zdebug_info") != nullptr;
}

/// What `section` comes to if it is compressed; its size if not.
std::uint64_t unpacked_size(const elf::File& file, const elf::Image& image, const elf::Section& section) {
  const std::size_t head = image.is64 ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr);
  if ((section.flags & SHF_COMPRESSED) == 0 || section.size < head) return section.size;
  const elf::Bytes bytes = file.bytes(image.start + section.offset, head);
  if (bytes.size() < head) return section.size;
  return image.is64 ? elf::little(elf::load<Elf64_Chdr>(bytes, 0).ch_size)
                    : elf::little(elf::load<Elf32_Chdr>(bytes, 0).ch_size);
}

}  // namespace

/// libelf and libdw allocate what headers claim: claims no file can keep are refused before they see them.
Result<void> check_claims(const elf::File& file, const elf::Image& image, const fs::path& path) {
  const auto refuse = [&path](std::string_view what) {
    return fail(ErrorKind::limit, fmt::format("{}: {}: not read as debug information", path.string(), what));
  };
  if (image.sections.size() > most_sections) return refuse("more than 200000 sections");
  std::uint64_t total = 0;
  for (const elf::Section& section : image.sections) {
    if (section.type == SHT_NOBITS) continue;
    const std::uint64_t size = unpacked_size(file, image, section);
    if ((section.flags & SHF_COMPRESSED) != 0 && size / best_ratio > section.size)
      return refuse("a compressed section claims to come to more than compression can do");
    if ((section.flags & SHF_COMPRESSED) != 0) total += size;
    if (total > largest_unpacked) return refuse("compressed sections of more than 8 GB");
  }
  return {};
}

namespace {

/// libdw keeps abbreviations for each unit, in ten times their size: units of other people's files may all lead to the
/// same ones. Where a compiler or dwz shares them, they are a small part of what the units have.
Result<void> check_tables(const DwarfFile& opened) {
  const DebugSections sections = opened.sections();
  const Budget most(tables_at_first, sections.bytes_of_dies() + sections.abbrev.size());
  const auto total = bytes_of_all_tables(sections, most.left());
  if (total > most.left())
    return fail(ErrorKind::limit, fmt::format("{}: its units read the same abbreviations again and again: not read as "
                                              "debug information",
                                              opened.path.string()));
  return {};
}

}  // namespace

Result<DwarfFile> open_dwarf(const elf::File& file, const elf::Image& image, const fs::path& path,
                             const Prepare& prepare) {
  TRY(check_claims(file, image, path));
  auto opened = open_elf(file, path);
  if (!opened) return opened;
  TRY(unpack_sections(*opened));
  if (prepare) TRY(prepare(*opened));
  opened->dwarf.reset(dwarf_begin_elf(opened->elf.get(), DWARF_C_READ, nullptr));
  if (!opened->dwarf) {
    if (!has_memory_for(work_of_libdw)) return fail(no_memory());
    const char* why = dwarf_errmsg(-1);
    return fail(ErrorKind::malformed,
                fmt::format("{}: debug information cannot be read: {}", path.string(), why ? why : "no reason given"));
  }
  TRY(check_tables(*opened));
  return opened;
}

namespace {

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

}  // namespace

void Unmap::operator()(char* bytes) const noexcept { ::munmap(bytes, size); }

Result<FileBytes> FileBytes::read(const elf::File& file, const fs::path& path) {
  FileBytes bytes;
  bytes.size_ = file.size();
  const std::size_t with_zeros = bytes.size_ + zeros_behind;
  const bool may_map = file.is_trusted();  // another could cut it off while it is mapped
  if (!may_map && file.size() > largest_foreign_copy)
    return fail(ErrorKind::limit, fmt::format("{} can be changed by others, and is too large to be copied ({} MB)",
                                              path.string(), file.size() >> 20));
  if (!may_map || file.size() <= largest_copy) {
    bytes.copy_ = std::make_unique<char[]>(with_zeros);
    const std::span all(reinterpret_cast<std::uint8_t*>(bytes.copy_.get()), bytes.size_);
    if (file.read(0, all) != bytes.size_)
      return fail(ErrorKind::changed, fmt::format("{} became shorter while it was read", path.string()));
    return bytes;
  }
  void* room = ::mmap(nullptr, with_zeros, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return fail(os_failure(ErrorKind::limit, path.string() + " cannot be mapped", errno));
  bytes.mapped_ = {static_cast<char*>(room), Unmap{with_zeros}};
  if (::mmap(room, bytes.size_, PROT_READ, MAP_PRIVATE | MAP_FIXED, file.fd(), 0) == MAP_FAILED)
    return fail(os_failure(ErrorKind::io, path.string() + " cannot be mapped", errno));
  return bytes;
}

bool FileBytes::let_headers_change(Elf* elf) const noexcept {
  if (!mapped_) return true;
  GElf_Ehdr head;
  std::size_t count = 0;
  if (gelf_getehdr(elf, &head) == nullptr || elf_getshdrnum(elf, &count) != 0 || head.e_shoff >= size_) return false;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t first = head.e_shoff / page * page;
  const std::size_t end = std::min(size_, static_cast<std::size_t>(head.e_shoff) + count * head.e_shentsize);
  return ::mprotect(mapped_.get() + first, end - first, PROT_READ | PROT_WRITE) == 0;
}

void FileBytes::let_go() const noexcept {
  if (mapped_) ::madvise(mapped_.get(), size_, MADV_DONTNEED);
}

namespace {

/// Those whose names end with `suffix`.
DebugSections sections_in(Elf* elf, std::string_view suffix) {
  DebugSections found;
  const std::pair<std::string_view, SectionBytes*> wanted[] = {
      {".debug_info", &found.info},
      {".debug_types", &found.types},
      {".debug_abbrev", &found.abbrev},
      {".debug_str", &found.str},
      {".debug_line_str", &found.line_str},
      {".debug_addr", &found.addr},
      {".debug_str_offsets", &found.str_offsets},
      {".debug_ranges", &found.ranges},
      {".debug_rnglists", &found.rnglists},
      {".debug_aranges", &found.aranges},
      {".debug_loc", &found.loc},
      {".debug_loclists", &found.loclists},
  };
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return found;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS) continue;
    const char* text = elf_strptr(elf, names, header.sh_name);
    std::string name(text == nullptr ? "" : text);
    if (name.starts_with(".z")) name.erase(1, 1);
    if (!name.ends_with(suffix)) continue;
    name.resize(name.size() - suffix.size());
    for (const auto& [each, found_bytes] : wanted) {
      if (name != each || !found_bytes->empty()) continue;
      if (const Elf_Data* data = elf_getdata(section, nullptr); data != nullptr && data->d_buf != nullptr)
        *found_bytes = {static_cast<const std::uint8_t*>(data->d_buf), data->d_size};
    }
  }
  return found;
}

}  // namespace

DebugSections DwarfFile::sections() const { return sections_in(elf.get(), {}); }

const DebugSections& DebugInfo::Impl::sections_of(Dwarf* of) const {
  if (of == main.dwarf.get()) return sections();
  const auto [known, fresh] = other_sections.try_emplace(of);
  if (fresh) known->second = sections_in(dwarf_getelf(of), is_split(of) ? ".dwo" : "");
  return known->second;
}

Result<DwarfFile> open_elf(const elf::File& file, const fs::path& path) {
  static const unsigned version = elf_version(EV_CURRENT);
  if (version == EV_NONE) return fail(ErrorKind::not_supported, "libelf is of another version of ELF");
  auto bytes = TRY(FileBytes::read(file, path));
  DwarfFile opened{.path = path, .bytes = std::move(bytes), .changed_sections = {}, .elf = {}, .dwarf = {}};
  opened.elf.reset(elf_memory(opened.bytes.data(), opened.bytes.size()));
  if (opened.elf) return opened;
  const char* why = elf_errmsg(-1);
  return fail(ErrorKind::malformed, fmt::format("{}: {}", path.string(), why ? why : "no ELF file"));
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

Result<DebugInfo> DebugInfo::open(const ElfFile& file, const StopToken& stop) {
  const auto& opened = elf::Inside::of(file);
  if (file.kind() == ElfKind::relocatable || file.kind() == ElfKind::archive)
    return fail(ErrorKind::not_supported,
                fmt::format("{} is not linked: its functions have no addresses yet", opened->path.string()));
  std::optional<elf::DebugFile> separate;
  if (!has_dwarf(opened->image)) {
    auto found = elf::find_debug_file(*opened);
    if (stop.stop_requested() || opened->options.stop.stop_requested())
      return fail(ErrorKind::stopped, "stopped while looking for debug information");
    if (!found || !has_dwarf(found->image)) return fail(no_debug_information(*opened, found));
    separate = *std::move(found);
  }
  auto impl = std::make_shared<Impl>(opened, std::move(separate), stop);
  const auto& debug = impl->debug_file;
  const auto prepare = [&](DwarfFile& file_read) { return use_package(file_read, *opened, impl->split); };
  auto main = TRY(debug ? open_dwarf(debug->file, debug->image, debug->path, prepare)
                        : open_dwarf(opened->file, opened->image, opened->path, prepare));
  impl->main = std::move(main);
  auto shared = TRY(open_shared(impl->main, *opened));
  impl->shared = std::move(shared);
  if (impl->shared.dwarf) dwarf_setalt(impl->main.dwarf.get(), impl->shared.dwarf.get());
  const std::uint64_t of_shared = impl->shared.elf ? impl->shared.sections().bytes_of_dies() : 0;
  impl->list_entries.add(impl->main.bytes.size() * Budget::per_byte);
  impl->code_walks = Budget(code_at_first + opened->file.size(), 0);
  impl->result_walks = Budget(results_at_first + opened->file.size(), 0);
  const DebugSections sections = impl->main.sections();
  impl->names = ScopeNames(sections.bytes_of_dies() + of_shared, stop);
  impl->shared_reads = Budget(reads_at_first, sections.bytes_of_dies() + of_shared + sections.bytes_of_ranges());
  return DebugInfo(std::move(impl));
}

DebugInfo::DebugInfo(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
DebugInfo::DebugInfo(DebugInfo&&) noexcept = default;
DebugInfo& DebugInfo::operator=(DebugInfo&&) noexcept = default;
DebugInfo::~DebugInfo() = default;

const std::filesystem::path& DebugInfo::path() const noexcept { return impl_->main.path; }

}  // namespace usdt::dwarf
