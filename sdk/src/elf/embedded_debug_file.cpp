// SPDX-License-Identifier: BSD-2-Clause
// .gnu_debugdata: an ELF file packed by xz, with the symbols that are not in .dynsym (GDB manual, "MiniDebugInfo").
#include <lzma.h>

#include <algorithm>

#include "elf/elf_impl.hpp"

namespace usdt::elf {
namespace {

// Unpacking the output of xz -9 needs 65 MiB. However much a header claims, only the part that is used becomes memory.
constexpr std::uint64_t kDecoderMemory = 80ULL << 20;
// Symbol tables are packed to between a third and a sixth of their size; of zeroes xz packs 7,000 into one.
constexpr std::uint64_t kRatio = 12;
// Besides, symbols are a tenth of what they are for.
constexpr std::uint64_t kOfSmallFiles = 1 << 16;

/// Unpacks `packed`; returns nothing where it is no complete xz stream, or one of more than `most` bytes.
std::optional<Bytes> unpack(ByteView packed, std::uint64_t most) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, kDecoderMemory, 0) != LZMA_OK) return std::nullopt;
  Bytes out(std::min(kRatio * packed.size(), most));
  stream.next_in = packed.data();
  stream.avail_in = packed.size();
  stream.next_out = out.data();
  stream.avail_out = out.size();
  const lzma_ret end = lzma_code(&stream, LZMA_FINISH);
  out.resize(stream.total_out);
  lzma_end(&stream);
  if (end != LZMA_STREAM_END) return std::nullopt;
  return out;
}

}  // namespace

std::optional<DebugFile> embedded_debug_file(const OpenedFile& main) {
  const Section* section = main.image.find(".gnu_debugdata");
  if (section == nullptr) return std::nullopt;
  const auto bytes = unpack(section_bytes(main.file, main.image, *section), main.file.stored() + kOfSmallFiles);
  if (!bytes) return std::nullopt;
  auto file = File::in_memory(*bytes);
  if (!file) return std::nullopt;
  auto image = read_image(*file, 0, file->size(), main.path.string());
  if (!image || image->machine != main.image.machine) return std::nullopt;
  return DebugFile{main.path, std::move(*file), std::move(*image)};
}

}  // namespace usdt::elf
