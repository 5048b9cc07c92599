// SPDX-License-Identifier: BSD-2-Clause
// glibc tells debuggers how its structures are laid out, by constants called _thread_db_STRUCT_FIELD: three words, of
// which the first is the field's size in bits and the last its offset in bytes (nptl_db/db_info.c). What is found by
// them here is what nptl_db/td_thr_tlsbase.c finds.
#include "find/thread_variable.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "arch/arch.hpp"
#include "base/try.hpp"
#include "elf/elf_impl.hpp"
#include "elf/symbols.hpp"
#include "find/loaded_file.hpp"
#include "proc/process_memory.hpp"

namespace usdt::find {

/// What is known of a file.
struct ThreadVariableFinder::File {
  explicit File(ElfFile opened) : elf(std::move(opened)), symbols(elf) {}
  [[nodiscard]] const elf::Image& image() const { return elf::Inside::of(elf)->image; }

  ElfFile elf;
  elf::SymbolIndex symbols;
  std::optional<std::uint64_t> offset =
      {};  ///< of the variable: a program's from the thread pointer, else in its block
};

namespace {

constexpr std::size_t kMostListed = 4096;  // of one process
constexpr std::size_t kMostParts = 4096;   // of glibc's list of modules, which has 64 in each

bool begins_with_any(const std::string& name, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view each) { return name.starts_with(each); });
}

/// The C library, and the library of threads of glibc before 2.34, have the constants; the dynamic linker the list.
bool has_part_in_finding(const TargetFile& target) {
  return begins_with_any(target.path.filename().string(),
                         {"libc.so", "libc-", "libpthread", "ld-linux", "ld-", "ld.so"});
}

const elf::Segment* segment_of(const elf::Image& image, std::uint32_t type) {
  const auto found = std::ranges::find(image.segments, type, &elf::Segment::type);
  return found == image.segments.end() ? nullptr : &*found;
}

/// A program's variable, from the thread pointer.
usdt_thread_variable at_distance(std::uint64_t offset, bool is64) {
  return {.offset = offset,
          .generation = 0,
          .module = 0,
          .vector_at = 0,
          .entry_size = 0,
          .word_size = static_cast<__u8>(is64 ? 8 : 4),
          .rseq = 0};
}

Error unreadable(std::string_view what) {
  return {ErrorKind::io, fmt::format("the process's {} cannot be read", what)};
}

}  // namespace

/// The libraries of one process, as its dynamic linker lists them (<link.h>).
class ThreadVariableFinder::Libraries {
 public:
  struct Library {
    std::uint64_t map = 0;      ///< its struct link_map
    std::uint64_t dynamic = 0;  ///< where its dynamic section is
  };

  Libraries(proc::ProcessMemory memory, LoadedCode code, bool is64)
      : memory_(std::move(memory)), code_(std::move(code)), size_(is64 ? 8 : 4) {}

  /// Adds a file of the process.
  void add(const TargetFile& target, std::shared_ptr<const File> file) {
    auto loaded = LoadedFile::of(code_, target, file->image());
    if (loaded) files_.push_back({std::move(file), *std::move(loaded)});
  }

  [[nodiscard]] Result<usdt_thread_variable> find(std::string_view name) const;
  /// Returns usdt_thread_variable::rseq, which glibc tells since 2.35 (its manual, "Restartable Sequences").
  [[nodiscard]] std::uint64_t rseq() const;

 private:
  struct Loaded {
    std::shared_ptr<const File> file;
    LoadedFile place;
  };
  struct Field {
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;
  };

  [[nodiscard]] std::optional<std::uint64_t> word(std::uint64_t address) const {
    return memory_.word_at(ProcessAddr(address), size_);
  }
  [[nodiscard]] std::optional<ProcessAddr> address_of(std::string_view symbol) const;
  [[nodiscard]] Result<Field> field(std::string_view name) const;
  [[nodiscard]] Result<std::vector<Library>> list() const;
  [[nodiscard]] std::optional<std::uint64_t> first_library() const;
  [[nodiscard]] Result<std::uint64_t> generation_of(std::uint64_t module, std::uint64_t map) const;
  [[nodiscard]] Result<usdt_thread_variable> place(const File& file, const Library& library) const;

  proc::ProcessMemory memory_;
  LoadedCode code_;
  std::size_t size_;  ///< of a word
  std::vector<Loaded> files_;
};

std::optional<ProcessAddr> ThreadVariableFinder::Libraries::address_of(std::string_view symbol) const {
  for (const Loaded& each : files_) {
    if (!each.file->symbols.has(symbol)) continue;
    if (const auto address = each.file->symbols.address(symbol)) return each.place.in_process(*address);
  }
  return std::nullopt;
}

/// The size is 0 where the C library has not registered the areas, or not yet.
std::uint64_t ThreadVariableFinder::Libraries::rseq() const {
  const auto offset = address_of("__rseq_offset"), size = address_of("__rseq_size");
  if (!offset || !size || memory_.word_at(*size, 4).value_or(0) == 0) return 0;
  return memory_.word_at(*offset, size_).value_or(0);
}

Result<ThreadVariableFinder::Libraries::Field> ThreadVariableFinder::Libraries::field(std::string_view name) const {
  const auto at = address_of(fmt::format("_thread_db_{}", name));
  if (!at)
    return fail(ErrorKind::not_supported,
                "a library has it, and this process's C library does not tell where it keeps those of libraries");
  const auto bits = memory_.word_at(*at, 4), offset = memory_.word_at(ProcessAddr(at->value + 8), 4);
  if (!bits || !offset) return fail(unreadable("C library"));
  return Field{*bits / 8, *offset};
}

/// Of struct r_debug, which the dynamic section of the program points to: the list begins in its second word.
std::optional<std::uint64_t> ThreadVariableFinder::Libraries::first_library() const {
  constexpr std::size_t most = 1024;  // entries of a dynamic section
  for (const Loaded& each : files_) {
    const elf::Segment* dynamic =
        each.file->symbols.is_program() ? segment_of(each.file->image(), PT_DYNAMIC) : nullptr;
    if (dynamic == nullptr) continue;
    std::uint64_t at = each.place.in_process(VirtAddr(dynamic->vaddr)).value;
    for (std::size_t n = 0; n < most; ++n, at += 2 * size_) {
      const auto tag = word(at);
      if (!tag || *tag == DT_NULL) break;
      if (*tag != DT_DEBUG) continue;
      const auto debug = word(at + size_);
      return debug ? word(*debug + size_) : std::nullopt;
    }
  }
  return std::nullopt;
}

Result<std::vector<ThreadVariableFinder::Libraries::Library>> ThreadVariableFinder::Libraries::list() const {
  std::vector<Library> all;
  auto map = first_library();
  if (!map) return fail(unreadable("list of libraries"));
  while (*map != 0 && all.size() < kMostListed) {
    const auto dynamic = word(*map + 2 * size_), next = word(*map + 3 * size_);
    if (!dynamic || !next) return fail(unreadable("list of libraries"));
    all.push_back({*map, *dynamic});
    map = next;
  }
  return all;
}

/// The list's parts have a length, the next part, and so many pairs of a generation and a library.
Result<std::uint64_t> ThreadVariableFinder::Libraries::generation_of(std::uint64_t module, std::uint64_t map) const {
  const auto linker = address_of("_rtld_global");
  if (!linker) return fail(ErrorKind::not_supported, "its dynamic linker has no list of modules");
  const Field list = TRY(field("rtld_global__dl_tls_dtv_slotinfo_list"));
  const Field pairs = TRY(field("dtv_slotinfo_list_slotinfo"));
  const Field generation = TRY(field("dtv_slotinfo_gen")), of = TRY(field("dtv_slotinfo_map"));
  auto part = word(linker->value + list.offset);
  std::uint64_t first = 0;
  for (std::size_t n = 0; part && *part != 0 && n < kMostParts; ++n) {
    const auto length = word(*part);
    if (!length) break;
    if (module - first >= *length) {
      first += *length;
      part = word(*part + size_);
      continue;
    }
    const std::uint64_t pair = *part + pairs.offset + (module - first) * pairs.bytes;
    const auto found = word(pair + generation.offset), library = word(pair + of.offset);
    if (found && library == map) return *found;
    break;
  }
  return fail(unreadable("list of modules"));
}

Result<usdt_thread_variable> ThreadVariableFinder::Libraries::place(const File& file, const Library& library) const {
  const arch::ThreadBlocks& blocks = arch::for_machine(file.image().machine).thread_blocks;
  const Field module_at = TRY(field("link_map_l_tls_modid")), offset_at = TRY(field("link_map_l_tls_offset"));
  const auto module = word(library.map + module_at.offset), offset = word(library.map + offset_at.offset);
  if (!module || !offset) return fail(unreadable("list of libraries"));
  usdt_thread_variable variable{.offset = *file.offset,
                                .generation = 0,
                                .module = 0,
                                .vector_at = *blocks.vector,
                                .entry_size = 0,
                                .word_size = static_cast<__u8>(size_),
                                .rseq = 0};
  // 0 and -1: the block is at no fixed distance, or must not be (NO_TLS_OFFSET, FORCED_DYNAMIC_TLS_OFFSET of glibc).
  const std::uint64_t forced = size_ == 8 ? UINT64_MAX : UINT32_MAX;
  if (*offset != 0 && *offset != forced) {
    variable.offset += blocks.before ? 0 - *offset : *offset;
    return variable;
  }
  const Field entry = TRY(field("dtv_dtv"));
  if (*module == 0 || *module > UINT32_MAX || entry.bytes < size_ || entry.bytes > UINT8_MAX)
    return fail(unreadable("list of libraries"));
  variable.module = static_cast<__u32>(*module);
  variable.entry_size = static_cast<__u8>(entry.bytes);
  variable.generation = TRY(generation_of(*module, library.map));
  return variable;
}

Result<usdt_thread_variable> ThreadVariableFinder::Libraries::find(std::string_view name) const {
  for (const Library& library : TRY(list())) {
    for (const Loaded& each : files_) {
      const elf::Segment* dynamic = segment_of(each.file->image(), PT_DYNAMIC);
      if (each.file->offset && dynamic != nullptr &&
          each.place.in_process(VirtAddr(dynamic->vaddr)).value == library.dynamic)
        return place(*each.file, library);
    }
  }
  return fail(ErrorKind::not_found, fmt::format("the library with '{}' is not loaded yet", name));
}

std::shared_ptr<const ThreadVariableFinder::File> ThreadVariableFinder::read_file(const TargetFile& target) const {
  auto elf = ElfFile::open(target.access);
  if (!elf) return nullptr;
  const bool has_part = has_part_in_finding(target) || elf::Inside::of(*elf)->image.entry != 0;
  const bool has_variables = segment_of(elf::Inside::of(*elf)->image, PT_TLS) != nullptr;
  if (!has_variables && !has_part) return nullptr;
  auto file = std::make_shared<File>(*std::move(elf));
  if (!has_variables) return file;  // whose symbols nobody asks for, perhaps
  if (!file->symbols.has(name_)) {
    const bool is_library = !library_with_.empty() && !file->symbols.is_program() && file->symbols.has(library_with_);
    if (is_library) file->offset = 0;
    return is_library || has_part ? file : nullptr;
  }
  const elf::ThreadOffsets offsets(file->symbols);
  const auto offset = file->symbols.is_program() ? offsets.from_pointer(name_) : offsets.in_block(name_);
  if (offset) file->offset = *offset;
  return offset || has_part ? file : nullptr;
}

std::shared_ptr<const ThreadVariableFinder::File> ThreadVariableFinder::file_at(const TargetFile& target) {
  struct stat st {};
  if (::stat(target.access.c_str(), &st) != 0) return nullptr;
  const Version version{st.st_dev, st.st_ino, st.st_ctim.tv_sec, st.st_ctim.tv_nsec};
  if (const auto known = files_.find(version); known != files_.end()) return known->second;
  if (files_.size() >= kMostFiles || open_ >= kMostOpen) {
    files_.clear();
    open_ = 0;
  }
  auto file = read_file(target);
  if (file) ++open_;
  return files_[version] = std::move(file);
}

Result<usdt_thread_variable> ThreadVariableFinder::find(pid_t pid) {
  const std::vector<TargetFile> targets = TRY(files_of_process(pid));
  std::vector<std::pair<const TargetFile*, std::shared_ptr<const File>>> files;
  std::optional<usdt_thread_variable> in_program;
  bool in_library = false, is_late = false;
  for (const TargetFile& target : targets) {
    auto file = file_at(target);
    if (!file) continue;
    const elf::Image& image = file->image();
    const arch::ThreadBlocks& blocks = arch::for_machine(image.machine).thread_blocks;
    if (file->offset && !blocks.vector)
      return fail(ErrorKind::not_supported, "programs in the kernel do not know this machine's thread pointer");
    is_late |= blocks.late;
    if (file->offset && file->symbols.is_program()) {
      in_program = at_distance(*file->offset, image.is64);
      if (!is_late) return *in_program;
    }
    in_library |= file->offset.has_value();
    files.emplace_back(&target, std::move(file));
  }
  if (!in_program && !in_library)
    return fail(ErrorKind::not_found, fmt::format("no file of process {} has a thread-local '{}'", pid, name_));
  auto memory = proc::ProcessMemory::open(pid);
  if (!memory && in_program) return *in_program;
  if (!memory) return fail(memory.error());
  auto code = LoadedCode::of(pid);
  if (!code) return fail(ErrorKind::not_found, fmt::format("process {} has ended", pid));
  Libraries libraries(*std::move(memory), *std::move(code), files.front().second->image().is64);
  for (auto& [target, file] : files) libraries.add(*target, std::move(file));
  auto variable = in_program ? Result<usdt_thread_variable>(*in_program) : libraries.find(name_);
  if (variable && is_late) variable->rseq = libraries.rseq();
  return variable;
}

}  // namespace usdt::find
