// SPDX-License-Identifier: BSD-2-Clause
#include "find/loaded_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "proc/file_id.hpp"
#include "proc/process_maps.hpp"
#include "sys/unique_fd.hpp"

namespace usdt::find {
namespace {

/// How far addresses of a process are from those of the file, by one mapping of its code.
std::optional<std::uint64_t> bias_of(const elf::Image& image, const proc::Mapping& mapping) {
  constexpr std::uint64_t page = 4096;  // or more: a mapping begins at one
  for (const elf::Segment& segment : image.segments) {
    if (segment.type != PT_LOAD) continue;
    const std::uint64_t begin = segment.offset / page * page;
    if (mapping.offset >= begin && mapping.offset < segment.offset + segment.filesz)
      return mapping.start.value - (segment.vaddr + mapping.offset - segment.offset);
  }
  return std::nullopt;
}

}  // namespace

std::optional<LoadedFile> LoadedFile::of(pid_t pid, const TargetFile& file, const elf::Image& image) {
  const auto id = proc::file_at(file.access);
  auto code = id ? proc::mapped_code(pid) : fail(ErrorKind::not_found, "no such file");
  if (!code) return std::nullopt;
  LoadedFile loaded;
  loaded.pid_ = pid;
  loaded.is64_ = image.is64;
  loaded.all_ = *std::move(code);
  std::map<std::filesystem::path, bool> is_this;
  for (const proc::MappedCode& each : loaded.all_) {
    if (each.file.path.empty()) continue;
    const auto [known, is_new] = is_this.try_emplace(each.file.access, false);
    if (is_new) known->second = proc::file_at(each.file.access) == id;
    if (known->second) loaded.own_.push_back(each.mapping);
  }
  const auto bias = loaded.own_.empty() ? std::nullopt : bias_of(image, loaded.own_.front());
  if (!bias) return std::nullopt;
  loaded.bias_ = *bias;
  return loaded;
}

bool LoadedFile::has(FileOffset offset) const noexcept {
  return std::ranges::any_of(own_, [offset](const proc::Mapping& each) {
    return each.offset <= offset.value && offset.value - each.offset < each.end.value - each.start.value;
  });
}

const proc::MappedCode* LoadedFile::at(ProcessAddr address) const noexcept {
  const auto found = std::ranges::find_if(all_, [address](const proc::MappedCode& each) {
    return each.mapping.start <= address && address < each.mapping.end;
  });
  return found == all_.end() ? nullptr : &*found;
}

std::optional<std::uint64_t> LoadedFile::word_at(VirtAddr address) const {
  const sys::UniqueFd memory(
      ::open(fmt::format("{}/mem", proc::directory_of(pid_).string()).c_str(), O_RDONLY | O_CLOEXEC));
  std::uint64_t word = 0;
  const std::size_t size = is64_ ? 8 : 4;
  if (memory.get() < 0 ||
      ::pread(memory.get(), &word, size, static_cast<off_t>(in_process(address).value)) != static_cast<ssize_t>(size))
    return std::nullopt;
  return elf::little(word);
}

}  // namespace usdt::find
