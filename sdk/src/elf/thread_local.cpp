// SPDX-License-Identifier: BSD-2-Clause
// Thread-local symbols: offsets in a module's block, and where that block is.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "elf/symbols_impl.hpp"

namespace usdt::elf {
namespace {

Result<std::uint64_t> offset_of(std::string_view name, const NameEntry& entry) {
  if (entry.thread_offsets.count > 1) return fail(ambiguous(name, entry.thread_offsets, "thread-local offsets"));
  if (!entry.thread_local_storage) {
    return fail(ErrorKind::not_supported, fmt::format("symbol '{}' is not thread-local", name));
  }
  if (entry.thread_offsets.count == 0) {
    return fail(ErrorKind::not_supported,
                fmt::format("thread-local symbol '{}' is undefined here: it lives in another file", name));
  }
  if (entry.addresses.count != 0 || entry.ifunc || entry.absolute) {
    return fail(ErrorKind::invalid_argument,
                fmt::format("symbol '{}' names several things, one thread-local at offset {:#x}: which one is meant "
                            "cannot be told",
                            name, entry.thread_offsets.first));
  }
  return entry.thread_offsets.first;
}

/// From the thread pointer to the start of the program's block (variant II of "ELF Handling For Thread-Local Storage",
/// Drepper: tlsoffset of the first module is its size, rounded up to its alignment). Written for a segment that does
/// not start aligned as well, which then is placed with the same misalignment (glibc 2.36 csu/libc-tls.c,
/// elf/dl-tls.c).
Result<std::uint64_t> program_block(const Image& image) {
  const auto tls = std::ranges::find(image.segments, PT_TLS, &Segment::type);
  if (tls == image.segments.end()) return fail(ErrorKind::not_found, "the file has no thread-local segment (PT_TLS)");
  const std::uint64_t align = std::max<std::uint64_t>(tls->align, 1);
  if (!std::has_single_bit(align)) {
    return fail(ErrorKind::malformed, fmt::format("PT_TLS is aligned to {:#x}, which is no power of 2", align));
  }
  const std::uint64_t padding = (0 - tls->vaddr - tls->memsz) & (align - 1);
  return 0 - tls->memsz - padding;
}

}  // namespace

/// DF_1_PIE is younger than position-independent programs (binutils 2.26); libc.so.6 names an interpreter, too.
bool SymbolIndex::is_program() const noexcept {
  const Image& image = impl_->opened->image;
  if (image.type != ET_DYN) return image.type == ET_EXEC;
  if ((impl_->dynamic().flags_1.value_or(0) & DF_1_PIE) != 0) return true;
  const bool interpreted = std::ranges::find(image.segments, PT_INTERP, &Segment::type) != image.segments.end();
  return interpreted && !impl_->dynamic().soname;
}

Result<std::uint64_t> SymbolIndex::thread_offset(std::string_view name) const {
  if (impl_->opened->image.type == ET_REL) {
    return fail(ErrorKind::not_supported,
                fmt::format("symbol '{}' has no place before the relocatable object is linked", name));
  }
  if (const NameEntry* entry = impl_->index().find(name)) return offset_of(name, *entry);
  return fail(impl_->not_found(name));
}

Result<std::uint64_t> SymbolIndex::thread_pointer_offset(std::string_view name) const {
  auto offset = thread_offset(name);
  if (!offset) return offset;
  if (!is_program()) {
    return fail(ErrorKind::not_supported,
                fmt::format("thread-local symbol '{}' of a library has its distance from the thread pointer only at "
                            "run time",
                            name));
  }
  const auto block = program_block(impl_->opened->image);
  if (!block) return block;
  return *block + *offset;
}

/// GNU ld, gold and lld make local-dynamic code of a program local-exec: they replace the call of __tls_get_addr() by a
/// load of the thread pointer, and the offsets with it ("ELF Handling For Thread-Local Storage", linker optimizations;
/// seen with binutils 2.40 and lld 14, --no-relax or not). mold 1.10 leaves the offsets alone and subtracts the block's
/// size from the thread pointer.
Result<std::uint64_t> SymbolIndex::thread_base_offset(std::string_view name) const {
  if (!is_program()) return thread_offset(name);
  const Compilers marks = compilers();
  if (marks.other_linker || (!marks.gcc && !marks.clang)) {
    return fail(ErrorKind::not_supported,
                fmt::format("thread-local symbol '{}' counts from a base that the program's linker chose: .comment "
                            "does not name one that is known",
                            name));
  }
  return thread_pointer_offset(name);
}

}  // namespace usdt::elf
