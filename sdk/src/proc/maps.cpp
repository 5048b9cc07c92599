// SPDX-License-Identifier: BSD-2-Clause
#include "proc/maps.hpp"

#include <charconv>
#include <optional>

namespace usdt::proc {
namespace {

/// Takes fields off the front of one line; after the first that does not fit everything fails.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  template <class T>
  T number(int base) {
    T value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
    ok_ = ok_ && error == std::errc();
    if (ok_) rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  void expect(char c) {
    ok_ = ok_ && rest_.starts_with(c);
    if (ok_) rest_.remove_prefix(1);
  }
  std::string_view take(std::size_t n) {
    ok_ = ok_ && rest_.size() >= n;
    if (!ok_) return {};
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

/// The kernel escapes the newline and nothing else (fs/proc/task_mmu.c: seq_path(m, path, "\n")).
std::string unescape(std::string_view text) {
  static constexpr std::string_view kNewline = "\\012";
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with(kNewline)) {
      out += '\n';
      at += kNewline.size();
    } else {
      out += text[at++];
    }
  }
  return out;
}

std::optional<Mapping> parse_line(std::string_view line) {
  LineReader in(line);
  Mapping m;
  m.start = ProcessAddr(in.number<std::uint64_t>(16));
  in.expect('-');
  m.end = ProcessAddr(in.number<std::uint64_t>(16));
  in.expect(' ');
  const std::string_view perms = in.take(4);
  in.expect(' ');
  m.offset = in.number<std::uint64_t>(16);
  in.expect(' ');
  m.major = in.number<std::uint32_t>(16);
  in.expect(':');
  m.minor = in.number<std::uint32_t>(16);
  in.expect(' ');
  m.inode = in.number<std::uint64_t>(10);
  if (!in.ok()) return std::nullopt;
  m.executable = perms[2] == 'x';
  // The path is padded with blanks to a column and may itself hold any; it never starts with one.
  const std::string_view rest = in.rest();
  if (const auto path = rest.find_first_not_of(' '); path != rest.npos) m.path = unescape(rest.substr(path));
  return m;
}

}  // namespace

std::vector<Mapping> parse_maps(std::string_view text) {
  std::vector<Mapping> out;
  while (!text.empty()) {
    const auto end = text.find('\n');
    if (auto mapping = parse_line(text.substr(0, end))) out.push_back(std::move(*mapping));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return out;
}

}  // namespace usdt::proc
