// SPDX-License-Identifier: BSD-2-Clause
#include "http/spool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "base/try.hpp"
#include "sys/regular_file.hpp"

namespace usdt::http {
namespace {

constexpr std::size_t kMostOfOne = 64U << 20;  ///< bytes of a batch
constexpr std::string_view kSuffix = ".batch", kFirstLine = "usdt-batch 1";

/// "00000000000000000012-512.batch": names in the order of numbers.
std::string name_of(std::uint64_t number, std::uint64_t events) {
  return fmt::format("{:020}-{}{}", number, events, kSuffix);
}

/// Bytes that a file takes from the disk, which gives whole blocks: batches are often small.
std::uint64_t on_disk(std::uint64_t bytes) {
  constexpr std::uint64_t block = 4096;
  return (bytes + block - 1) / block * block;
}

/// Number and events by the name of a file; nothing: it is no batch.
std::optional<std::pair<std::uint64_t, std::uint64_t>> parse_name(std::string_view name) {
  std::uint64_t number = 0, events = 0;
  const char* const end = name.data() + name.size();
  const auto first = std::from_chars(name.data(), end, number);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, events);
  if (second.ec != std::errc() || name != name_of(number, events)) return std::nullopt;
  if (number == UINT64_MAX) return std::nullopt;  // there would be no number behind it
  return std::pair(number, events);
}

/// Writes all of `text` to a new file; errno says why not.
bool write_file(int directory, const char* name, std::string_view text) {
  const sys::UniqueFd fd(
      ::openat(directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (!fd) return false;
  while (!text.empty()) {
    const ssize_t written = ::write(fd.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::string encode(const SpooledBatch& batch) {
  return fmt::format("{}\n{}\n{}\n{}\n{}", kFirstLine, batch.path, batch.type, batch.deflated.size(), batch.deflated);
}

/// Takes a line from the front of `rest`.
std::string_view take_line(std::string_view& rest) {
  const std::string_view line = rest.substr(0, rest.find('\n'));
  rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  return line;
}

std::optional<SpooledBatch> decode(std::string_view bytes) {
  if (take_line(bytes) != kFirstLine) return std::nullopt;
  SpooledBatch batch;
  batch.path = take_line(bytes);
  batch.type = take_line(bytes);
  const std::string_view size = take_line(bytes);
  if (size != std::to_string(bytes.size())) return std::nullopt;
  batch.deflated = bytes;
  return batch;
}

}  // namespace

Result<Spool> Spool::open(std::string directory, std::uint64_t most_bytes) {
  if (::mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return fail(os_failure(errno == EACCES ? ErrorKind::no_permission : ErrorKind::io, "make " + directory, errno));
  Spool spool(std::move(directory), most_bytes);
  spool.fd_ = sys::UniqueFd(::open(spool.directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!spool.fd_) return fail(os_failure(ErrorKind::io, "open " + spool.directory_, errno));
  if (::flock(spool.fd_.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorKind::limit, spool.directory_ + ": another process keeps its batches there");
  TRY(spool.find_files());
  return spool;
}

Result<void> Spool::find_files() {
  std::error_code error;
  for (auto each = std::filesystem::directory_iterator(directory_, error); !error && each != decltype(each)();
       each.increment(error)) {
    const auto named = parse_name(each->path().filename().native());
    std::error_code unknown;
    if (!named || !each->is_regular_file(unknown) || each->is_symlink(unknown)) continue;
    const std::uint64_t bytes = each->file_size(unknown);
    if (!unknown) files_.push_back({.number = named->first, .bytes = on_disk(bytes), .events = named->second});
  }
  if (error) return fail(os_failure(ErrorKind::io, "read " + directory_, error.value()));
  std::ranges::sort(files_, {}, &File::number);
  for (const File& file : files_) bytes_ += file.bytes, events_ += file.events;
  next_ = files_.empty() ? 0 : files_.back().number + 1;
  return {};
}

bool Spool::has_room() const noexcept {
  constexpr std::uint64_t large = 1U << 20;
  return bytes_ + std::min(large, most_bytes_ / 16) <= most_bytes_;
}

Result<void> Spool::put(const SpooledBatch& batch) {
  static constexpr const char* kUnfinished = "unfinished";
  const std::string bytes = encode(batch);
  const std::uint64_t room = on_disk(bytes.size());
  if (bytes_ + room > most_bytes_ || bytes.size() > kMostOfOne)
    return fail(ErrorKind::limit, fmt::format("the spool {} is full", directory_));
  const std::string name = name_of(next_, batch.events);
  if (!write_file(fd_.get(), kUnfinished, bytes) || ::renameat(fd_.get(), kUnfinished, fd_.get(), name.c_str()) != 0) {
    const int error = errno;
    static_cast<void>(::unlinkat(fd_.get(), kUnfinished, 0));
    return fail(os_failure(ErrorKind::io, "write to the spool " + directory_, error));
  }
  files_.push_back({.number = next_++, .bytes = room, .events = batch.events});
  bytes_ += room;
  events_ += batch.events;
  return {};
}

Result<SpooledBatch> Spool::front() const {
  if (files_.empty()) return fail(ErrorKind::not_found, "the spool is empty");
  const File& file = files_.front();
  const std::string path = directory_ + "/" + name_of(file.number, file.events);
  const auto bytes = TRY(sys::read_regular(path, kMostOfOne));
  auto batch = decode({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!batch) return fail(ErrorKind::malformed, path + " is damaged");
  batch->events = file.events;
  return std::move(*batch);
}

void Spool::pop() {
  if (files_.empty()) return;
  const File file = files_.front();
  static_cast<void>(::unlinkat(fd_.get(), name_of(file.number, file.events).c_str(), 0));
  bytes_ -= file.bytes;
  events_ -= file.events;
  files_.pop_front();
}

}  // namespace usdt::http
