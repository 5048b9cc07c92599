// SPDX-License-Identifier: BSD-2-Clause
#include "elf/code_reader.hpp"

#include <algorithm>

#include "arch/arch.hpp"

namespace usdt::elf {

Code CodeReader::at(VirtAddr address) {
  Code code;
  code.offset = code_offset(image_, address);
  if (!code.offset) return code;
  const std::uint64_t most = std::min<std::uint64_t>(code.bytes.data.size(), code_bytes_from(image_, address));
  code.bytes.size = static_cast<std::uint8_t>(
      read(code.offset->value, std::span(code.bytes.data).first(static_cast<std::size_t>(most))));
  if (code.bytes.size != 0) {
    code.site_class = arch::classify_site(image_.machine, std::span(code.bytes.data).first(code.bytes.size));
  }
  return code;
}

std::size_t CodeReader::read(std::uint64_t offset, std::span<std::uint8_t> out) {
  if (filled_ == 0 || offset < start_ || offset - start_ >= kBlock) {
    start_ = offset / kBlock * kBlock;
    filled_ = file_.read(start_, block_);
  }
  const std::uint64_t skip = offset - start_;
  if (skip >= filled_) return 0;
  const std::size_t size = std::min<std::size_t>(out.size(), filled_ - skip);
  std::copy_n(block_.begin() + static_cast<std::ptrdiff_t>(skip), size, out.begin());
  return size;
}

}  // namespace usdt::elf
