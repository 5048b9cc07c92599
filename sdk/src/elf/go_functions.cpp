// SPDX-License-Identifier: BSD-2-Clause
#include "elf/go_functions.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace usdt::elf {
namespace {

constexpr std::uint32_t kGo116 = 0xfffffffa;
constexpr std::uint32_t kGo118 = 0xfffffff0;
constexpr std::uint32_t kGo120 = 0xfffffff1;
constexpr std::uint64_t kWords = 8;  // behind the magic and four bytes
constexpr std::size_t kLongestGoName = std::size_t{64} << 10;

/// Words of the header, and what they say.
class Table {
 public:
  Table(ByteView bytes, const Image& image) : bytes_(bytes), image_(image) {}

  /// Nothing: it is not understood.
  [[nodiscard]] std::optional<std::vector<GoFunction>> functions() {
    if (!read_header()) return std::nullopt;
    std::vector<GoFunction> found;
    std::uint64_t names = 0;
    for (std::uint64_t i = 0; i < count_; ++i) {
      const auto begin = entry(2 * i);
      const auto end = entry(2 * i + 2);
      const auto at = entry(2 * i + 1);
      const auto name = begin && end && at && *end >= *begin ? name_at(*at) : std::nullopt;
      if (!name) return std::nullopt;
      // Names that share their bytes may be more in all than there is.
      names += name->size();
      if (names > bytes_.size()) return std::nullopt;
      if (*end > *begin) found.push_back({*begin, *end - *begin, *name});
    }
    if (!find_code(found)) return std::nullopt;
    return found;
  }

 private:
  [[nodiscard]] std::optional<std::uint64_t> number(std::uint64_t at, unsigned size) const {
    if (!within(at, size, bytes_.size())) return std::nullopt;
    return load_word(bytes_, at, size == 8);
  }

  bool read_header() {
    const auto magic = number(0, 4);
    if (!magic || bytes_.size() < kWords) return false;
    word_ = bytes_[7];
    if ((*magic != kGo116 && *magic != kGo118 && *magic != kGo120) || word_ != (image_.is64 ? 8U : 4U)) return false;
    by_offset_ = *magic != kGo116;
    std::vector<std::uint64_t> words;
    for (std::uint64_t i = 0; i < (by_offset_ ? 8U : 7U); ++i) {
      const auto word = number(kWords + i * word_, word_);
      if (!word) return false;
      words.push_back(*word);
    }
    count_ = words[0];
    text_ = by_offset_ ? words[2] : 0;
    names_ = words[by_offset_ ? 3 : 2];
    table_ = words.back();
    size_ = by_offset_ ? 4 : word_;
    return table_ <= bytes_.size() && names_ <= bytes_.size() && count_ < (bytes_.size() - table_) / (2 * size_);
  }

  /// A word of the table of functions: where one begins, then where more of it is; at last where all end.
  [[nodiscard]] std::optional<std::uint64_t> entry(std::uint64_t index) const {
    return number(table_ + index * size_, size_);
  }

  [[nodiscard]] std::optional<std::string_view> name_at(std::uint64_t function) const {
    if (function > bytes_.size()) return std::nullopt;
    const auto offset = number(table_ + function + size_, 4);
    if (!offset || *offset >= bytes_.size() - names_) return std::nullopt;
    const ByteView rest = bytes_.subspan(names_ + *offset);
    const ByteView text = rest.first(std::min(rest.size(), kLongestGoName));
    const void* end = std::memchr(text.data(), 0, text.size());
    if (end == nullptr) return std::nullopt;
    const auto* begin = reinterpret_cast<const char*>(text.data());
    return std::string_view(begin, static_cast<std::size_t>(static_cast<const char*>(end) - begin));
  }

  /// Makes addresses of distances. Since Go 1.27 the header does not say from where: it is the section of code where
  /// Go's linker made the program, which then starts at the runtime's own function.
  bool find_code(std::vector<GoFunction>& found) const {
    if (!by_offset_) return true;
    std::uint64_t text = text_;
    const Section* section = image_.find(".text");
    if (text == 0) {
      const auto start = std::ranges::find_if(found, [&](const GoFunction& each) {
        return section != nullptr && each.name.starts_with("_rt0_") && section->addr + each.address == image_.entry;
      });
      if (start == found.end()) return false;
      text = section->addr;
    }
    for (GoFunction& each : found) each.address = image_.wrap(each.address + text);
    return true;
  }

  ByteView bytes_;
  const Image& image_;
  unsigned word_ = 8;
  unsigned size_ = 4;
  bool by_offset_ = true;
  std::uint64_t count_ = 0;
  std::uint64_t text_ = 0;
  std::uint64_t names_ = 0;
  std::uint64_t table_ = 0;
};

}  // namespace

GoFunctions::GoFunctions(const File& file, const Image& image) {
  for (const std::string_view name : {".gopclntab", ".data.rel.ro.gopclntab"}) {
    const Section* section = image.find(name);
    if (section == nullptr) continue;
    auto bytes = std::make_shared<const Bytes>(section_bytes(file, image, *section));
    if (auto found = Table(*bytes, image).functions()) {
      functions_ = *std::move(found);
      bytes_ = std::move(bytes);
      return;
    }
  }
}

}  // namespace usdt::elf
