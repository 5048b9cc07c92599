// SPDX-License-Identifier: BSD-2-Clause
#include "stack/module.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "arch/instructions.hpp"
#include "dwarf/running.hpp"
#include "elf/code_reader.hpp"
#include "elf/elf_impl.hpp"

namespace usdt::stack {
namespace {

/// Addresses whose functions are remembered.
constexpr std::size_t kMostKnown = 1 << 14;
/// Text that all names of a file may demangle to, beyond what they are made of themselves.
constexpr std::size_t kDemangledText = 64 << 20;
/// Symbols before an address that are looked at: functions do not nest.
constexpr std::size_t kMostLooks = 64;
/// Bytes of a function without a size that are looked at: behind them all is its own, up to the next symbol.
constexpr std::uint64_t kMostFollowed = 1 << 20;
/// Symbols that runtimes export for debuggers: tools/gen-postmortem-metadata.py of V8, vmStructs.cpp of HotSpot.
constexpr std::string_view kV8Symbol("\0v8dbg_HeapObjectTag", 21), kHotspotSymbol("\0gHotSpotVMStructs", 19);

/// The better name of two symbols that have the same code: what others can call it by, and no internal one.
auto rank(const elf::FunctionEntry& entry) {
  const std::size_t underscores = std::min(entry.symbol.find_first_not_of('_'), entry.symbol.size());
  return std::tuple(entry.binding == STB_LOCAL, entry.binding == STB_WEAK, underscores, entry.symbol);
}

}  // namespace

Module::Module(ElfFile file, std::string path, const SymbolizerOptions& options)
    : file_(std::move(file)),
      path_(std::move(path)),
      options_(options),
      build_id_(file_.build_id()),
      demangler_(kDemangledText) {
  ::fstat(file_.fd(), &opened_);
}

bool Module::is_as_opened() const noexcept {
  struct stat now {};
  return ::fstat(file_.fd(), &now) == 0 && now.st_size == opened_.st_size &&
         now.st_mtim.tv_sec == opened_.st_mtim.tv_sec && now.st_mtim.tv_nsec == opened_.st_mtim.tv_nsec;
}

std::optional<VirtAddr> Module::address_of(FileOffset offset) const noexcept {
  // Mappings are of whole pages, and begin before the segment.
  for (const elf::Segment& segment : elf::Inside::of(file_)->image.segments)
    if (segment.type == PT_LOAD && (segment.flags & PF_X) != 0 && offset.value >= segment.offset &&
        offset.value - segment.offset < segment.filesz)
      return VirtAddr(segment.vaddr + (offset.value - segment.offset));
  return std::nullopt;
}

bool Module::may_return_to(VirtAddr address) const {
  if (!arch::knows_instructions(machine()) || address.value < arch::kLongestCall) return true;
  const elf::OpenedFile& opened = *elf::Inside::of(file_);
  const elf::Code code = elf::CodeReader(opened.file, opened.image).at(VirtAddr(address.value - arch::kLongestCall));
  const auto before = std::span(code.bytes.data).first(std::min<std::size_t>(code.bytes.size, arch::kLongestCall));
  return before.size() < arch::kLongestCall || arch::ends_with_call(machine(), before);
}

bool Module::returns_at_once(VirtAddr address) const {
  if (!arch::knows_instructions(machine())) return false;
  const elf::OpenedFile& opened = *elf::Inside::of(file_);
  const elf::Code code = elf::CodeReader(opened.file, opened.image).at(address);
  return arch::returns_at_once(machine(), std::span(code.bytes.data).first(code.bytes.size));
}

bool Module::returns_from_signal(VirtAddr address) {
  if (const auto known = signal_returns_.find(address.value); known != signal_returns_.end()) return known->second;
  if (signal_returns_.size() >= kMostKnown) signal_returns_.clear();
  const elf::OpenedFile& opened = *elf::Inside::of(file_);
  const elf::Code code = elf::CodeReader(opened.file, opened.image).at(address);
  const bool returns = arch::returns_from_signal(machine(), std::span(code.bytes.data).first(code.bytes.size));
  return signal_returns_[address.value] = returns;
}

/// Returns the end of a function that begins at `start`, and whose symbol has no size, at most `next`: behind a return
/// or a jump over which no branch of its own leads. Code behind that may be another function's, or nobody's.
std::uint64_t Module::end_of_code(std::uint64_t start, std::uint64_t next) {
  const auto [known, fresh] = ends_.try_emplace(start, next);
  if (!fresh || !arch::knows_instructions(machine())) return known->second;
  const elf::OpenedFile& opened = *elf::Inside::of(file_);
  elf::CodeReader reader(opened.file, opened.image);
  std::uint64_t furthest = start;
  for (std::uint64_t at = start; at < next && at - start < kMostFollowed;) {
    const elf::Code code = reader.at(VirtAddr(at));
    const arch::Instruction each =
        arch::decode_instruction(machine(), std::span(code.bytes.data).first(code.bytes.size));
    if (each.size == 0) return known->second = at;
    const bool switches = each.flow == arch::Flow::jump && !each.target;
    if (switches) return next;  // to places that only its data says
    const std::uint64_t target =
        each.target && each.flow != arch::Flow::call ? at + static_cast<std::uint64_t>(*each.target) : 0;
    if (target < next) furthest = std::max(furthest, target);  // what is further on is another's
    at += each.size;
    const bool leaves = each.flow == arch::Flow::ret || each.flow == arch::Flow::jump;
    if (leaves && at > furthest) return known->second = at;
  }
  return next;
}

void Module::read_symbols() {
  symbols_ = std::make_unique<elf::FunctionTable>(*elf::Inside::of(file_), options_.stop);
  std::ranges::sort(symbols_->entries, [](const elf::FunctionEntry& a, const elf::FunctionEntry& b) {
    return a.address != b.address ? a.address < b.address : rank(a) < rank(b);
  });
}

const elf::FunctionEntry* Module::symbol_at(VirtAddr lookup) {
  if (!symbols_) read_symbols();
  const auto& all = symbols_->entries;
  auto at = std::ranges::upper_bound(all, lookup.value, {}, &elf::FunctionEntry::address);
  const std::uint64_t next = at == all.end() ? UINT64_MAX : at->address;
  const std::uint64_t nearest = at == all.begin() ? 0 : std::prev(at)->address;
  const elf::FunctionEntry* found = nullptr;
  for (std::size_t looks = kMostLooks; at != all.begin() && looks > 0; --looks) {
    const elf::FunctionEntry& entry = *--at;
    if (found != nullptr && entry.address != found->address) break;
    // Assembly often gives no size: such a function reaches as far as its code, and never over the next one.
    const bool inside = entry.size == 0 ? entry.address == nearest && lookup.value < end_of_code(entry.address, next)
                                        : lookup.value - entry.address < entry.size;
    if (inside) found = &entry;  // of one address, the best name comes last here
  }
  return found;
}

std::string Module::demangled(std::string_view symbol) {
  const elf::Demangled name = demangler_.demangle(symbol);
  return std::string(name.name.empty() ? symbol : name.name);
}

const dwarf::DebugInfo* Module::debug_info() {
  if (!std::exchange(debug_asked_, true)) {
    if (auto opened = dwarf::DebugInfo::open(file_, options_.stop)) debug_.emplace(std::move(*opened));
  }
  return debug_ ? &*debug_ : nullptr;
}

locate::CallFrames* Module::call_frames() {
  if (!std::exchange(frames_asked_, true)) {
    if (auto opened = locate::CallFrames::open(file_)) call_frames_.emplace(std::move(*opened));
  }
  return call_frames_ ? &*call_frames_ : nullptr;
}

Runtime Module::runtime() {
  if (runtime_) return *runtime_;
  const elf::OpenedFile& opened = *elf::Inside::of(file_);
  const elf::Section* section = opened.image.find(".dynstr");
  const elf::Bytes bytes = section != nullptr ? elf::section_bytes(opened.file, opened.image, *section) : elf::Bytes();
  const std::string_view names(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  runtime_ = names.find(kV8Symbol) != names.npos        ? Runtime::v8
             : names.find(kHotspotSymbol) != names.npos ? Runtime::hotspot
                                                        : Runtime::none;
  return *runtime_;
}

const std::vector<Frame>& Module::functions_at(VirtAddr lookup) {
  if (const auto known = known_.find(lookup.value); known != known_.end()) return known->second;
  if (known_.size() >= kMostKnown) known_.clear();
  return known_.emplace(lookup.value, read(lookup)).first->second;
}

std::vector<Frame> Module::read(VirtAddr lookup) {
  std::vector<dwarf::RunningFunction> running;
  const elf::FunctionEntry* symbol = nullptr;
  FrameIssue issue = FrameIssue::file_changed;
  if (is_as_opened()) {
    symbol = symbol_at(lookup);
    if (const auto* debug = options_.lines ? debug_info() : nullptr) running = dwarf::functions_at(*debug, lookup);
    issue = FrameIssue::no_symbol;
  }
  if (running.empty()) running.emplace_back();
  std::vector<Frame> frames;
  for (dwarf::RunningFunction& function : running) {
    Frame& frame = frames.emplace_back();
    frame.module = path_;
    frame.build_id = build_id_;
    frame.inlined = function.inlined;
    frame.source = std::move(function.line.file);
    frame.line = function.line.line;
    if (!function.linkage_name.empty())
      frame.function = demangled(function.linkage_name);
    else if (!function.name.empty())
      frame.function = std::move(function.name);
    else if (symbol != nullptr)
      frame.function = demangled(symbol->symbol);
    // A part of a function that the compiler moved away has a symbol of its own, and is far from the entry.
    const std::optional<std::uint64_t> start = symbol != nullptr ? std::optional(symbol->address)
                                               : function.entry  ? std::optional(function.entry->value)
                                                                 : std::nullopt;
    if (start) frame.distance = lookup.value - *start;
    if (frame.function.empty()) frame.issue = issue;
  }
  return frames;
}

}  // namespace usdt::stack
