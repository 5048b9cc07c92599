// SPDX-License-Identifier: BSD-2-Clause
// Thread-local symbols: offsets in a module's block, and where that block is.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "arch/arch.hpp"
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

/// From the thread pointer to the start of the program's block ("ELF Handling For Thread-Local Storage", Drepper;
/// variant II: tlsoffset of the first module is its size, rounded up to its alignment; variant I: it is what the C
/// library has there first, rounded likewise). Written for a segment that does not start aligned as well, which then is
/// placed with the same misalignment (glibc 2.36 csu/libc-tls.c, elf/dl-tls.c).
Result<std::uint64_t> program_block(const Image& image) {
  const auto tls = std::ranges::find(image.segments, PT_TLS, &Segment::type);
  if (tls == image.segments.end()) return fail(ErrorKind::not_found, "the file has no thread-local segment (PT_TLS)");
  const std::uint64_t align = std::max<std::uint64_t>(tls->align, 1);
  if (!std::has_single_bit(align)) {
    return fail(ErrorKind::malformed, fmt::format("PT_TLS is aligned to {:#x}, which is no power of 2", align));
  }
  const arch::ThreadBlocks& blocks = arch::for_machine(image.machine).thread_blocks;
  if (!blocks.before) return (blocks.reserve + align - 1) / align * align + (tls->vaddr & (align - 1));
  const std::uint64_t padding = (0 - tls->vaddr - tls->memsz) & (align - 1);
  return 0 - tls->memsz - padding;
}

}  // namespace

Result<std::uint64_t> ThreadOffsets::in_block(std::string_view name) const {
  if (symbols_.impl_->opened->image.type == ET_REL) {
    return fail(ErrorKind::not_supported,
                fmt::format("symbol '{}' has no place before the relocatable object is linked", name));
  }
  if (const NameEntry* entry = symbols_.impl_->index().find(name)) return offset_of(name, *entry);
  return fail(symbols_.impl_->not_found(name));
}

Result<std::uint64_t> ThreadOffsets::from_pointer(std::string_view name) const {
  auto offset = in_block(name);
  if (!offset) return offset;
  if (!symbols_.is_program()) {
    return fail(ErrorKind::not_supported,
                fmt::format("thread-local symbol '{}' of a library has its distance from the thread pointer only at "
                            "run time",
                            name));
  }
  const auto block = program_block(symbols_.impl_->opened->image);
  if (!block) return block;
  return *block + *offset;
}

/// GNU ld, gold and lld make local-dynamic code of a program local-exec: they replace the call of __tls_get_addr() by a
/// load of the thread pointer, and the offsets with it ("ELF Handling For Thread-Local Storage", linker optimizations;
/// seen with binutils 2.40 and lld 14, --no-relax or not). mold 1.10 leaves the offsets alone and subtracts the block's
/// size from the thread pointer.
Result<std::uint64_t> ThreadOffsets::from_base(std::string_view name) const {
  if (!symbols_.is_program()) return in_block(name);
  const SymbolIndex::Compilers marks = symbols_.compilers();
  if (marks.other_linker || (!marks.gcc && !marks.clang)) {
    return fail(ErrorKind::not_supported,
                fmt::format("thread-local symbol '{}' counts from a base that the program's linker chose: .comment "
                            "does not name one that is known",
                            name));
  }
  return from_pointer(name);
}

}  // namespace usdt::elf
