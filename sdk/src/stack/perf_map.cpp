// SPDX-License-Identifier: BSD-2-Clause
#include "stack/perf_map.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <map>

#include "sys/read.hpp"
#include "sys/regular_file.hpp"
#include "usdt/clock.hpp"

namespace usdt::stack {
namespace {

constexpr off_t kMostBytes = 16 << 20;
constexpr std::size_t kMostEntries = 1 << 18;
constexpr std::size_t kLongestName = 1024;
/// A map that has grown is read as a whole again, at most so often.
constexpr std::int64_t kPatienceNs = 100'000'000;

std::int64_t now_ns() { return static_cast<std::int64_t>(event_clock()); }

bool take_hex(std::string_view& line, std::uint64_t& value) {
  if (line.starts_with("0x")) line.remove_prefix(2);
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value, 16);
  const auto used = static_cast<std::size_t>(end - line.data());
  if (error != std::errc() || used == line.size() || line[used] != ' ') return false;
  line.remove_prefix(used + 1);
  return true;
}

/// Ranges that are apart from each other, by their start.
using Ranges = std::map<std::uint64_t, PerfMapEntry>;

/// Makes `entry` the one that counts in its range.
void put(Ranges& ranges, const PerfMapEntry& entry) {
  auto at = ranges.upper_bound(entry.start);
  if (at != ranges.begin() && std::prev(at)->second.last >= entry.start) --at;
  while (at != ranges.end() && at->second.start <= entry.last) {
    const PerfMapEntry old = at->second;
    at = ranges.erase(at);
    if (old.start < entry.start) {
      PerfMapEntry before = old;
      before.last = entry.start - 1;
      ranges.emplace(before.start, before);
    }
    if (old.last > entry.last) {
      PerfMapEntry behind = old;
      behind.start = entry.last + 1;
      at = ranges.emplace(behind.start, behind).first;
      break;
    }
  }
  ranges.emplace(entry.start, entry);
}

/// The last number of the line "NSpid:" of /proc/PID/status: what the process is called in its own pid namespace.
std::string own_number(const std::string& root) {
  const auto status = sys::read_text(root + "/status", 16384);
  if (!status) return {};
  std::string_view text = *status;
  constexpr std::string_view key = "\nNSpid:";
  const std::size_t at = text.find(key);
  if (at == text.npos) return {};
  text.remove_prefix(at + key.size());
  text = text.substr(0, text.find('\n'));
  return std::string(text.substr(text.find_last_of(" \t") + 1));
}

}  // namespace

std::vector<PerfMapEntry> parse_perf_map(std::string_view text) {
  Ranges ranges;
  std::size_t lines = 0;
  for (std::size_t at = 0; at < text.size() && lines < kMostEntries;) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    PerfMapEntry entry;
    std::uint64_t size = 0;
    if (take_hex(line, entry.start) && take_hex(line, size) && size > 0 && !line.empty()) {
      entry.last = entry.start + std::min(size - 1, UINT64_MAX - entry.start);
      entry.code = entry.start;
      entry.name = static_cast<std::uint32_t>(end - line.size());
      entry.length = static_cast<std::uint32_t>(std::min(line.size(), kLongestName));
      put(ranges, entry);
      ++lines;
    }
    at = end + 1;
  }
  std::vector<PerfMapEntry> entries;
  entries.reserve(ranges.size());
  for (const auto& [start, entry] : ranges) entries.push_back(entry);
  return entries;
}

const PerfMapEntry* find_entry(const std::vector<PerfMapEntry>& entries, std::uint64_t address) noexcept {
  const auto behind = std::ranges::upper_bound(entries, address, {}, &PerfMapEntry::start);
  if (behind == entries.begin()) return nullptr;
  const PerfMapEntry& entry = *std::prev(behind);
  return address <= entry.last ? &entry : nullptr;
}

PerfMap::PerfMap(const std::string& root) {
  const std::string number = own_number(root);
  struct stat st {};
  if (number.empty() || ::stat(root.c_str(), &st) != 0) return;
  owner_ = st.st_uid;
  name_ = fmt::format("perf-{}.map", number);
  directory_.reset(::open((root + "/root/tmp").c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

std::string_view PerfMap::judge(const struct stat& st) const noexcept {
  if (!S_ISREG(st.st_mode)) return "its perf map is no regular file";
  if (st.st_uid != 0 && st.st_uid != owner_) return "its perf map is another user's";
  if (st.st_size > kMostBytes) return "its perf map is larger than 16 MiB";
  return {};
}

void PerfMap::read_again() {
  const std::int64_t now = now_ns();
  struct stat st {};
  if (!directory_ || (read_at_ != 0 && now - read_at_ < kPatienceNs)) return;
  read_at_ = now;
  // A symbolic link would lead elsewhere than the process meant, whose root is another: the name itself is looked at.
  if (::fstatat(directory_.get(), name_.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return;
  why_not_ = judge(st);
  const bool same =
      st.st_size == size_ && st.st_mtim.tv_sec == written_.tv_sec && st.st_mtim.tv_nsec == written_.tv_nsec;
  if (!why_not_.empty() || same) return;
  const sys::RegularFile file = sys::open_regular(directory_.get(), name_.c_str());
  if (!file.fd || file.st.st_ino != st.st_ino || file.st.st_dev != st.st_dev) return;
  size_ = file.st.st_size;
  written_ = file.st.st_mtim;
  text_.resize(static_cast<std::size_t>(std::min(size_, kMostBytes)));
  text_.resize(sys::read_at(file.fd.get(), 0, std::as_writable_bytes(std::span(text_))));
  entries_ = parse_perf_map(text_);
}

std::optional<PerfMap::Found> PerfMap::find(std::uint64_t address) {
  // Code that is thrown away makes room for other code.
  read_again();
  const PerfMapEntry* entry = find_entry(entries_, address);
  if (entry == nullptr) return std::nullopt;
  return Found{std::string_view(text_).substr(entry->name, entry->length), address - entry->code};
}

}  // namespace usdt::stack
