// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/symbol_lists.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>

#include "base/symbol_name.hpp"
#include "sys/read.hpp"
#include "sys/unique_fd.hpp"

namespace usdt::kernel {
namespace {

// KSYM_NAME_LEN since 6.1 (b8a94bfb3395); longer words are garbage.
constexpr std::size_t kLongestName = 512;

/// The instruction that ftrace rewrites: on x86 the first, or that behind endbr64 (4 bytes), on arm64 the one that
/// saves the link register, perhaps behind `bti c` (4 or 8).
constexpr std::uint64_t kCallWithin = 9;

/// Takes fields off one line. What is missing is empty or absent, so the caller asks once, at the end.
class Fields {
 public:
  explicit Fields(std::string_view line) noexcept : at_(line.data()), end_(line.data() + line.size()) {}

  std::optional<std::uint64_t> hex() noexcept {
    std::uint64_t value = 0;
    const char* start = at_;
    for (; at_ != end_; ++at_) {
      const unsigned digit = hex_digit(*at_);
      if (digit > 15) break;
      value = value << 4 | digit;
    }
    if (at_ == start || at_ - start > 16) return std::nullopt;
    return value;
  }
  bool skip(char c) noexcept {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  bool skip(std::string_view text) noexcept {
    if (!rest().starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  char any() noexcept { return at_ == end_ ? '\0' : *at_++; }
  /// Printable characters up to a blank; empty if something else ends them, or there are too many.
  std::string_view word() noexcept {
    const char* start = at_;
    while (at_ != end_ && *at_ > ' ' && *at_ < '\x7f') ++at_;
    const bool ended = at_ == end_ || *at_ == ' ' || *at_ == '\t';
    const auto size = static_cast<std::size_t>(at_ - start);
    return ended && size <= kLongestName ? std::string_view(start, size) : std::string_view();
  }
  /// `[MODULE]` behind a blank; empty where nothing is.
  std::optional<std::string_view> module() noexcept {
    if (at_ == end_) return std::string_view();
    ++at_;
    if (!skip('[')) return std::nullopt;
    std::string_view name = word();
    const std::size_t close = name.find(']');
    if (close == name.npos || close == 0) return std::nullopt;
    return name.substr(0, close);
  }
  [[nodiscard]] std::string_view rest() const noexcept { return {at_, static_cast<std::size_t>(end_ - at_)}; }

 private:
  static unsigned hex_digit(char c) noexcept {
    if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
    if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
    return 16;
  }

  const char* at_;
  const char* end_;
};

template <class F>
void for_each_line(std::string_view text, F&& take) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    take(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
}

/// Whether the symbol only marks where a section begins or ends; the first function of it shares that address.
bool is_marker(std::string_view name) noexcept {
  return name.ends_with("_text_start") || name.ends_with("_text_end") || name == "_text" || name == "_stext" ||
         name == "_etext";
}

/// Code made at run time, which has a symbol but no source: kernel/kallsyms.c's get_ksymbol_bpf() and its like.
bool is_generated(std::string_view module) noexcept { return module == "bpf" || module.starts_with("__builtin__"); }

struct CodeSymbol {
  std::string_view name;
  std::uint64_t address;
  std::string_view module;
};

/// A line of /proc/kallsyms, if it is of code.
std::optional<CodeSymbol> code_symbol(std::string_view line) {
  Fields fields(line);
  const auto address = fields.hex();
  if (!address || !fields.skip(' ')) return std::nullopt;
  const char type = fields.any();
  if ((type != 't' && type != 'T' && type != 'w' && type != 'W') || !fields.skip(' ')) return std::nullopt;
  const std::string_view name = fields.word();
  if (name.empty() || name[0] == '$' || name.starts_with("__pfx_") || name.starts_with("__cfi_")) return std::nullopt;
  const auto module = fields.module();
  if (!module) return std::nullopt;
  return CodeSymbol{name, *address, *module};
}

/// The first eight bytes as a number that sorts like them.
std::uint64_t letters(std::string_view text) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) value = value << 8 | (i < text.size() ? static_cast<unsigned char>(text[i]) : 0U);
  return value;
}

/// The markers of one section, as they come by.
struct Section {
  std::string_view begin_marker;
  std::string_view end_marker;
  AddressRange range;
};

void note_marker(std::array<Section, 3>& sections, std::string_view name, std::uint64_t address) noexcept {
  for (Section& section : sections) {
    if (name == section.begin_marker) section.range.begin = address;
    if (name == section.end_marker) section.range.end = address;
  }
}

/// Sorted, and without overlaps, so that the last range that begins before an address is the only one to ask.
std::vector<AddressRange> joined(std::vector<AddressRange> ranges) {
  std::ranges::sort(ranges, {}, &AddressRange::begin);
  std::vector<AddressRange> out;
  for (const AddressRange& range : ranges) {
    if (out.empty() || range.begin > out.back().end) {
      out.push_back(range);
    } else {
      out.back().end = std::max(out.back().end, range.end);
    }
  }
  return out;
}

}  // namespace

bool Text::grow() noexcept {
  // realloc() moves pages, not bytes, of blocks this big; and pages nothing was read into cost nothing.
  const std::size_t room = room_ == 0 ? std::size_t{1} << 20 : room_ * 2;
  auto* bytes = static_cast<char*>(std::realloc(bytes_.get(), room));
  if (!bytes) return false;
  static_cast<void>(bytes_.release());
  bytes_.reset(bytes);
  room_ = room;
  return true;
}

Result<Text> Text::read(const std::string& path) {
  const sys::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(os_failure(ErrorKind::io, path, errno));
  return read(fd.get(), path);
}

Result<Text> Text::read(int fd, const std::string& path) {
  Text text;
  for (;;) {
    if (text.size_ == text.room_ && !text.grow()) return fail(os_failure(ErrorKind::limit, path, ENOMEM));
    const ssize_t n = sys::read_some(fd, {text.bytes_.get() + text.size_, text.room_ - text.size_});
    if (n < 0) return fail(os_failure(ErrorKind::io, path, errno));
    if (n == 0) return text;
    text.size_ += static_cast<std::size_t>(n);
  }
}

std::uint32_t ModuleNames::number(std::string_view name) {
  if (!names_.empty() && names_[latest_] == name) return latest_;
  const auto [at, added] = numbers_.emplace(name, static_cast<std::uint32_t>(names_.size()));
  if (added) names_.push_back(name);
  return latest_ = at->second;
}

void sort(std::vector<Named>& list, const ModuleNames& modules) {
  // Small keys are moved about, and only names alike in their first sixteen letters are looked up.
  struct Key {
    std::uint64_t head;
    std::uint64_t next;
    std::uint32_t module;
    std::uint32_t index;
  };
  std::vector<Key> keys;
  keys.reserve(list.size());
  for (const Named& entry : list) {
    const std::string_view tail = entry.name.substr(std::min<std::size_t>(entry.name.size(), 8));
    keys.push_back({letters(entry.name), letters(tail), entry.module, static_cast<std::uint32_t>(keys.size())});
  }
  std::ranges::sort(keys, [&](const Key& a, const Key& b) {
    if (a.module != b.module) return modules.name(a.module) < modules.name(b.module);
    if (a.head != b.head) return a.head < b.head;
    if (a.next != b.next) return a.next < b.next;
    const Named& left = list[a.index];
    const Named& right = list[b.index];
    const int order = left.name.compare(right.name);
    return order != 0 ? order < 0 : left.address < right.address;
  });
  std::vector<Named> sorted;
  sorted.reserve(list.size());
  for (const Key& key : keys) sorted.push_back(list[key.index]);
  list = std::move(sorted);
}

Symbols parse_kallsyms(std::string_view text, ModuleNames& modules) {
  Symbols out;
  out.functions.reserve(text.size() / 96);
  std::array<Section, 3> sections = {Section{"__noinstr_text_start", "__noinstr_text_end", {}},
                                     Section{"__kprobes_text_start", "__kprobes_text_end", {}},
                                     Section{"__entry_text_start", "__entry_text_end", {}}};
  std::uint64_t all_addresses = 0;
  for_each_line(text, [&](std::string_view line) {
    const auto symbol = code_symbol(line);
    if (!symbol || is_cold_half(symbol->name) || is_generated(symbol->module)) return;
    all_addresses |= symbol->address;
    if (is_marker(symbol->name)) return note_marker(sections, symbol->name, symbol->address);
    out.functions.push_back({symbol->name, symbol->address, modules.number(symbol->module)});
  });
  out.hidden = all_addresses == 0;
  for (const Section& section : sections) {
    if (section.range.begin != 0 && section.range.begin < section.range.end) out.unprobeable.push_back(section.range);
  }
  out.unprobeable = joined(std::move(out.unprobeable));
  return out;
}

namespace {

void drop_repeated(std::vector<Named>& list, const ModuleNames& modules) {
  sort(list, modules);
  const auto same = [](const Named& a, const Named& b) {
    return a.address == b.address && a.module == b.module && a.name == b.name;
  };
  list.erase(std::unique(list.begin(), list.end(), same), list.end());
}

}  // namespace

AskedSymbols parse_asked(std::string_view text, std::span<const std::uint64_t> places, ModuleNames& modules) {
  AskedSymbols out;
  for_each_line(text, [&](std::string_view line) {
    const std::size_t tab = line.rfind('\t');
    if (tab == line.npos) return;
    std::string_view front = line.substr(0, tab);
    if (front.ends_with("\t[]")) front.remove_suffix(3);
    const auto symbol = code_symbol(front);
    if (!symbol || is_marker(symbol->name) || is_cold_half(symbol->name) || is_generated(symbol->module)) return;
    const std::uint32_t module = modules.number(symbol->module);
    out.functions.push_back({symbol->name, symbol->address, module});
    Fields fields(line.substr(tab + 1));
    const std::string_view whole = fields.word();
    const std::size_t name_end = whole.find("+0x0/0x");
    if (name_end == whole.npos) return;
    const auto size = Fields(whole.substr(name_end + 7)).hex();
    const auto place = std::ranges::lower_bound(places, symbol->address);
    if (!size || place == places.end() || *place - symbol->address >= std::min(*size, kCallWithin)) return;
    const std::string_view listed = whole.substr(0, name_end);
    out.listed.push_back({listed, *place, module});
    // Its name may be none of those asked for.
    if (listed != symbol->name) out.functions.push_back({listed, symbol->address, module});
  });
  drop_repeated(out.functions, modules);
  drop_repeated(out.listed, modules);
  return out;
}

std::vector<Named> parse_code(std::string_view text, ModuleNames& modules) {
  std::vector<Named> out;
  out.reserve(text.size() / 96);
  for_each_line(text, [&](std::string_view line) {
    const auto symbol = code_symbol(line);
    if (symbol && symbol->address != 0 && !is_marker(symbol->name))
      out.push_back({symbol->name, symbol->address, modules.number(symbol->module)});
  });
  std::ranges::stable_sort(out, {}, &Named::address);
  return out;
}

std::vector<Named> parse_filter_functions(std::string_view text, bool addresses, ModuleNames& modules) {
  std::vector<Named> out;
  out.reserve(text.size() / (addresses ? 36 : 20));
  for_each_line(text, [&](std::string_view line) {
    Fields fields(line);
    std::uint64_t address = 0;
    if (addresses) {
      const auto at = fields.hex();
      if (!at || !fields.skip(' ')) return;
      address = *at;
    }
    const std::string_view name = fields.word();
    if (name.empty() || name.find("__ftrace_invalid_address__") != name.npos) return;
    const auto module = fields.module();
    if (module && !is_generated(*module)) out.push_back({name, address, modules.number(*module)});
  });
  return out;
}

Blacklist parse_blacklist(std::string_view text) {
  Blacklist out;
  for_each_line(text, [&](std::string_view line) {
    Fields fields(line);
    if (!fields.skip("0x")) return;
    const auto begin = fields.hex();
    if (!begin || !fields.skip("-0x")) return;
    const auto end = fields.hex();
    if (!end || !fields.skip('\t')) return;
    if (*begin < *end) out.ranges.push_back({*begin, *end});
    if (const std::string_view name = fields.word(); !name.empty()) out.names.push_back(name);
  });
  out.ranges = joined(std::move(out.ranges));
  std::ranges::sort(out.names);
  return out;
}

std::vector<std::string_view> parse_events(std::string_view text) {
  static constexpr std::array<std::string_view, 7> kNoTracepoints = {"syscalls", "ftrace",    "kprobes", "uprobes",
                                                                     "fprobes",  "synthetic", "eprobes"};
  std::vector<std::string_view> out;
  for_each_line(text, [&](std::string_view line) {
    const std::string_view event = Fields(line).word();
    const std::size_t colon = event.find(':');
    if (colon == event.npos || colon + 1 == event.size()) return;
    if (std::ranges::find(kNoTracepoints, event.substr(0, colon)) == kNoTracepoints.end()) {
      out.push_back(event.substr(colon + 1));
    }
  });
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace usdt::kernel
