// SPDX-License-Identifier: BSD-2-Clause
#include "find/loaded_file.hpp"

#include <algorithm>
#include <map>

#include "proc/process_memory.hpp"

namespace usdt::find {
namespace {

/// How far addresses of a process are from those of the file, by one mapping of its code. A page of the file may be of
/// several segments (lld), of which each has a mapping of its own.
std::optional<std::uint64_t> bias_of(const elf::Image& image, const proc::Mapping& mapping) {
  const std::uint64_t end = mapping.offset + (mapping.end.value - mapping.start.value);
  for (const elf::Segment& segment : image.segments) {
    if (segment.type != PT_LOAD || (segment.flags & PF_X) == 0) continue;
    if (segment.offset < end && mapping.offset < segment.offset + segment.filesz)
      return mapping.start.value - (segment.vaddr + mapping.offset - segment.offset);
  }
  return std::nullopt;
}

}  // namespace

std::optional<LoadedCode> LoadedCode::of(pid_t pid) {
  auto code = proc::mapped_code(pid);
  if (!code) return std::nullopt;
  LoadedCode loaded;
  loaded.pid_ = pid;
  loaded.all_ = *std::move(code);
  std::map<std::filesystem::path, std::optional<proc::FileId>> known;
  for (std::size_t n = 0; n < loaded.all_.size(); ++n) {
    const TargetFile& file = loaded.all_[n].file;
    if (file.path.empty()) continue;
    const auto [id, is_new] = known.try_emplace(file.access);
    if (is_new) id->second = proc::file_at(file.access);
    if (id->second) loaded.of_file_[*id->second].push_back(n);
  }
  return loaded;
}

std::vector<proc::Mapping> LoadedCode::of_file(proc::FileId file) const {
  std::vector<proc::Mapping> own;
  const auto found = of_file_.find(file);
  if (found == of_file_.end()) return own;
  for (const std::size_t n : found->second) own.push_back(all_[n].mapping);
  return own;
}

const proc::MappedCode* LoadedCode::at(ProcessAddr address) const noexcept {
  const auto found = std::ranges::find_if(all_, [address](const proc::MappedCode& each) {
    return each.mapping.start <= address && address < each.mapping.end;
  });
  return found == all_.end() ? nullptr : &*found;
}

std::optional<LoadedFile> LoadedFile::of(const LoadedCode& code, const TargetFile& file, const elf::Image& image) {
  const auto id = proc::file_at(file.access);
  if (!id) return std::nullopt;
  LoadedFile loaded;
  loaded.pid_ = code.pid();
  loaded.is64_ = image.is64;
  loaded.own_ = code.of_file(*id);
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

std::optional<std::uint64_t> LoadedFile::word_at(VirtAddr address) const {
  const auto memory = proc::ProcessMemory::open(pid_);
  return memory ? memory->word_at(in_process(address), is64_ ? 8 : 4) : std::nullopt;
}

}  // namespace usdt::find
