// SPDX-License-Identifier: BSD-2-Clause
#include "stack/perf_map.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <ctime>
#include <span>
#include <utility>

#include "sys/read.hpp"
#include "sys/regular_file.hpp"
#include "usdt/clock.hpp"

namespace usdt::stack {
namespace {

constexpr off_t kMostBytes = 16 << 20;
constexpr std::size_t kLongestName = 1024;
/// A map that is another one now is read from its beginning, at most so often, and for a part of the time.
constexpr std::uint64_t kPatienceNs = 100'000'000, kTimes = 9;
/// Times of files are those of the last tick of the kernel's clock, of which there are at least 100 in a second; so are
/// beginnings of processes.
constexpr std::uint64_t kTickNs = 10'000'000;
/// What is compared of a map that has grown: the last bytes of what was there before.
constexpr std::size_t kCompared = 4096;
constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kLatestSecond = 8'000'000'000;  ///< of the time of day, in ns less than 2^63

bool take_hex(std::string_view& line, std::uint64_t& value) {
  if (line.starts_with("0x")) line.remove_prefix(2);
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value, 16);
  const auto used = static_cast<std::size_t>(end - line.data());
  if (error != std::errc() || used == line.size() || line[used] != ' ') return false;
  line.remove_prefix(used + 1);
  return true;
}

/// Returns the last number of the line "NSpid:" of /proc/PID/status: what the process is called in its own pid
/// namespace.
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

/// Returns when the process began, on event_clock(): the 22nd field of /proc/PID/stat, in ticks since the machine was
/// started, suspended time included. 0: not known.
std::uint64_t beginning_of(const std::string& root) {
  const auto stat = sys::read_text(root + "/stat", 4096);
  if (!stat) return 0;
  std::string_view text = *stat;
  text.remove_prefix(std::min(text.rfind(')') + 1, text.size()));  // names of programs may have anything
  for (int field = 2; field < 22; ++field) text.remove_prefix(std::min(text.find(' '), text.size() - 1) + 1);
  std::uint64_t ticks = 0;
  std::from_chars(text.data(), text.data() + text.size(), ticks);
  struct timespec now {};
  const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  if (ticks == 0 || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  const std::uint64_t age = static_cast<std::uint64_t>(now.tv_sec) * kSecondNs +
                            static_cast<std::uint64_t>(now.tv_nsec) - ticks * (kSecondNs / per_second);
  const std::uint64_t clock = event_clock();
  return age < clock ? clock - age : 0;
}

/// Returns when a file was written last, on event_clock(), within a tick before that.
std::uint64_t time_of_writing(const struct stat& st, std::int64_t wall_offset) {
  // Whoever has the file can give it any time.
  const std::int64_t seconds = std::clamp<std::int64_t>(st.st_mtim.tv_sec, 0, kLatestSecond);
  const std::int64_t wall = seconds * static_cast<std::int64_t>(kSecondNs) + st.st_mtim.tv_nsec;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(wall - wall_offset, 0));
}

bool is_one_file(const struct stat& a, const struct stat& b) { return a.st_ino == b.st_ino && a.st_dev == b.st_dev; }

bool is_as_read(const struct stat& a, const struct stat& b) {
  return is_one_file(a, b) && a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

std::optional<std::size_t> add_lines(std::string_view text, std::size_t at, Period made, std::size_t& lines,
                                     CodeHistory& history) {
  for (std::size_t end = text.find('\n', at); end != text.npos; end = text.find('\n', at)) {
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    CodeRange code{.made = made};
    std::uint64_t size = 0;
    if (!take_hex(line, code.start) || !take_hex(line, size) || size == 0 || line.empty()) continue;
    if (++lines > kMostPerfMapLines) return std::nullopt;
    code.last = code.start + std::min(size - 1, UINT64_MAX - code.start);
    code.code = code.start;
    code.name = static_cast<std::uint32_t>(end - line.size());
    code.length = static_cast<std::uint32_t>(std::min(line.size(), kLongestName));
    history.put(code);
  }
  return at;
}

PerfMap::PerfMap(const std::string& root, bool growing) : growing_(growing) {
  const std::string number = own_number(root);
  struct stat st {};
  if (number.empty() || ::stat(root.c_str(), &st) != 0) return;
  owner_ = st.st_uid;
  began_at_ = beginning_of(root);
  name_ = fmt::format("perf-{}.map", number);
  directory_.reset(::open((root + "/root/tmp").c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

std::string_view PerfMap::judge(const struct stat& st, std::int64_t wall_offset) const noexcept {
  if (!S_ISREG(st.st_mode)) return "its perf map is no regular file";
  if (st.st_uid != 0 && st.st_uid != owner_) return "its perf map is another user's";
  if (st.st_size > kMostBytes) return "its perf map is larger than 16 MiB";
  // Numbers of processes are used again, and nobody removes these files.
  if (time_of_writing(st, wall_offset) + 2 * kTickNs < began_at_)
    return "its perf map is of an earlier process of its number";
  return {};
}

void PerfMap::forget() {
  text_.clear();
  parsed_ = lines_ = 0;
  history_.clear();
  size_ = -1;
}

/// Whether the file is what was read, and more behind that.
bool PerfMap::has_grown(const struct stat& st) {
  if (!growing_ || size_ < 0 || st.st_size <= size_) return false;
  const std::string_view known = std::string_view(text_).substr(text_.size() - std::min(text_.size(), kCompared));
  std::array<char, kCompared> there{};
  const auto room = std::span(there).first(known.size());
  return sys::read_at(file_.get(), text_.size() - known.size(), std::as_writable_bytes(room)) == known.size() &&
         std::ranges::equal(room, known);
}

/// False: the file was taken away or replaced meanwhile, and nothing is known of what is there now.
bool PerfMap::read(const struct stat& seen, std::int64_t wall_offset) {
  if (!file_ || !is_one_file(seen, read_)) {
    sys::RegularFile file = sys::open_regular(directory_.get(), name_.c_str());
    if (!file.fd || !is_one_file(file.st, seen)) return false;
    forget();
    file_ = std::move(file.fd);
  }
  struct stat st {};
  if (::fstat(file_.get(), &st) != 0 || st.st_size > kMostBytes) return false;
  const std::uint64_t now = event_clock();
  if (!has_grown(st)) {
    forget();
    renewed_at_ = now;
  }
  written_at_ = time_of_writing(st, wall_offset);
  const Period made{growing_ ? looked_at_ : 0, std::clamp(written_at_ + kTickNs, looked_at_, event_clock())};
  const std::size_t known = text_.size();
  text_.resize(static_cast<std::size_t>(st.st_size));
  const std::size_t got = sys::read_at(file_.get(), known, std::as_writable_bytes(std::span(text_).subspan(known)));
  text_.resize(known + got);
  read_ = st;
  size_ = static_cast<off_t>(text_.size());
  const auto next = add_lines(text_, parsed_, made, lines_, history_);
  parsed_ = next.value_or(text_.size());
  if (!next) why_not_ = "its perf map has more than 262144 lines";
  if (renewed_at_ == now) patience_ = std::max(kPatienceNs, kTimes * (event_clock() - now));
  return true;
}

void PerfMap::look(std::uint64_t time) {
  if (!directory_ || (looked_at_ != 0 && time <= looked_at_)) return;
  const ClockReading now = read_clocks();
  struct stat st {};
  // A symbolic link would lead elsewhere than the process meant, whose root is another: the name itself is looked at.
  const bool is_there = ::fstatat(directory_.get(), name_.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 ||
                        (file_ && ::fstat(file_.get(), &st) == 0);
  if (is_there && (size_ < 0 || !is_as_read(st, read_))) {
    const bool is_another = size_ >= 0 && (st.st_size <= size_ || !is_one_file(st, read_));
    if (is_another && now.event_clock - renewed_at_ < patience_) return;
    why_not_ = judge(st, now.wall_offset);
    if (why_not_.empty() && !read(st, now.wall_offset)) return;
  }
  looked_at_ = now.event_clock;
}

std::optional<PerfMap::Found> PerfMap::find(std::uint64_t address, Period when) {
  look(when.until);
  if (!why_not_.empty()) return std::nullopt;
  const CodeHistory::Found found = history_.find(address, when, text_);
  if (found.code == nullptr) return std::nullopt;
  const std::string_view text = text_;
  Found answer{.name = text.substr(found.code->name, found.code->length), .distance = address - found.code->code};
  if (found.other != nullptr) answer.other = text.substr(found.other->name, found.other->length);
  answer.uncertain = found.uncertain || when.until > looked_at_;  // it was not read to the end of that time
  if (!growing_) answer.listed_at = read_.st_mtim.tv_sec;
  return answer;
}

}  // namespace usdt::stack
