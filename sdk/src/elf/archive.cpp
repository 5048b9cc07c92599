// SPDX-License-Identifier: BSD-2-Clause
// The ar format, System V/GNU and BSD (ar(5), binutils bfd/archive.c): "!<arch>\n", then members of a 60-byte text
// header and their contents, each starting at an even offset.
#include <ar.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "elf/elf_impl.hpp"

namespace usdt::elf {
namespace {

std::string_view trimmed(std::string_view field) noexcept {
  const auto end = field.find_last_not_of(' ');
  return end == std::string_view::npos ? std::string_view{} : field.substr(0, end + 1);
}

std::optional<std::uint64_t> decimal(std::string_view field) noexcept {
  field = trimmed(field);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc{} || end != field.data() + field.size()) return std::nullopt;
  return value;
}

template <std::size_t N>
std::string_view field_of(const char (&field)[N]) noexcept {
  return {field, N};
}

/// A member as its header gives it, before its name is looked up.
struct RawMember {
  std::string_view name;
  std::uint64_t start;
  std::uint64_t size;
};

class ArchiveReader {
 public:
  explicit ArchiveReader(const File& file) : file_(file) {}

  std::optional<ScanWarning> run(const std::function<bool(const Member&)>& visit) {
    std::uint64_t at = SARMAG;
    // A lone trailing newline is the padding of the last member.
    while (at + 1 < file_.size()) {
      ar_hdr header;
      const std::span raw(reinterpret_cast<std::uint8_t*>(&header), sizeof header);
      if (file_.read(at, raw) != sizeof header) return broken(at, "is cut off");
      if (field_of(header.ar_fmag) != ARFMAG) return broken(at, "does not end in ARFMAG");
      const auto size = decimal(field_of(header.ar_size));
      if (!size) return broken(at, "has no decimal size");
      const std::uint64_t start = at + sizeof header;
      if (!within(start, *size, file_.size())) return broken(at, fmt::format("claims {} bytes, more than left", *size));
      if (!take({trimmed(field_of(header.ar_name)), start, *size}, visit)) return std::nullopt;
      at = start + *size + (*size & 1);
    }
    return std::nullopt;
  }

 private:
  static ScanWarning broken(std::uint64_t at, std::string_view what) {
    return {FileOffset(at),
            fmt::format("archive member header at file offset {:#x} {}: the rest is not read", at, what)};
  }

  /// Returns false to end the walk.
  bool take(const RawMember& raw, const std::function<bool(const Member&)>& visit) {
    if (raw.name == "//") {
      long_names_ = file_.bytes(raw.start, std::min(raw.size, kMaxNames));
      return true;
    }
    if (raw.name == "/" || raw.name == "/SYM64/" || raw.name.starts_with("__.SYMDEF")) return true;
    if (raw.name.starts_with("#1/")) return take_bsd(raw, visit);
    return visit({name_of(raw.name), raw.start, raw.size});
  }

  /// BSD long names stand in front of the contents and count as part of them.
  bool take_bsd(const RawMember& raw, const std::function<bool(const Member&)>& visit) {
    const std::uint64_t length = std::min(decimal(raw.name.substr(3)).value_or(0), raw.size);
    const Bytes bytes = file_.bytes(raw.start, std::min(length, kMaxName));
    std::string name(bytes.begin(), bytes.end());
    name.resize(std::min(name.find('\0'), name.size()));
    return visit({std::move(name), raw.start + length, raw.size - length});
  }

  /// "name/" as it stands; "/123": at byte 123 of the "//" member, ended by "/\n".
  [[nodiscard]] std::string name_of(std::string_view field) const {
    if (!field.starts_with('/')) return std::string(field.substr(0, field.find('/')));
    const auto at = decimal(field.substr(1));
    if (!at || *at >= long_names_.size()) return std::string(field);
    std::string_view rest(reinterpret_cast<const char*>(long_names_.data()) + *at, long_names_.size() - *at);
    rest = rest.substr(0, std::min<std::size_t>(rest.find('\n'), kMaxName));
    if (rest.ends_with('/')) rest.remove_suffix(1);
    return std::string(rest);
  }

  // A member is called by a file's name without directories (NAME_MAX). Each site of a member keeps it.
  static constexpr std::uint64_t kMaxName = 255;
  static constexpr std::uint64_t kMaxNames = 64ULL << 20;
  const File& file_;
  Bytes long_names_;
};

}  // namespace

std::optional<ScanWarning> for_each_member(const File& file, const std::function<bool(const Member&)>& visit) {
  return ArchiveReader(file).run(visit);
}

Magic magic_of(const File& file, std::uint64_t at) {
  std::array<std::uint8_t, SARMAG> head{};
  const std::size_t size = file.read(at, head);
  const std::string_view text(reinterpret_cast<const char*>(head.data()), size);
  if (text.starts_with(std::string_view(ELFMAG, SELFMAG))) return Magic::elf;
  if (text == ARMAG) return Magic::archive;
  if (text == "!<thin>\n") return Magic::thin_archive;
  return Magic::other;
}

}  // namespace usdt::elf
