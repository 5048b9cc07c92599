// SPDX-License-Identifier: BSD-2-Clause
// The kernel's lists of functions as text -> values. Written by hand: a trace waits for them, and /proc/kallsyms alone
// has 150,000 lines. Lines of another form are passed over. Pure, but for reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "usdt/result.hpp"

namespace usdt::kernel {

/// The bytes of a file; they stay where they are when this moves.
class Text {
 public:
  /// The whole of a file whose size the kernel does not say. Errors: not_found, no_permission, io.
  [[nodiscard]] static Result<Text> read(const std::string& path);
  /// The rest of an open one, which errors call `path`.
  [[nodiscard]] static Result<Text> read(int fd, const std::string& path);
  [[nodiscard]] std::string_view view() const noexcept { return {bytes_.get(), size_}; }

 private:
  [[nodiscard]] bool grow() noexcept;

  struct Free {
    void operator()(char* bytes) const noexcept { std::free(bytes); }
  };
  std::unique_ptr<char, Free> bytes_;
  std::size_t size_ = 0;
  std::size_t room_ = 0;
};

/// Numbers of modules; 0 is the kernel itself, whose name here is empty.
class ModuleNames {
 public:
  ModuleNames() { static_cast<void>(number("")); }
  [[nodiscard]] std::uint32_t number(std::string_view name);
  [[nodiscard]] std::string_view name(std::uint32_t number) const { return names_[number]; }

 private:
  std::vector<std::string_view> names_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
  std::uint32_t latest_ = 0;  ///< lists are grouped by module
};

/// A name as one of the lists has it. Names are views of the text parsed.
struct Named {
  std::string_view name;
  std::uint64_t address = 0;
  std::uint32_t module = 0;
  std::uint32_t tag = 0;  ///< for the caller
};

/// Sorts by module, name and address.
void sort(std::vector<Named>& list, const ModuleNames& modules);

struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Functions of /proc/kallsyms, `ADDRESS TYPE NAME[\t[MODULE]]` (kernel/kallsyms.c: s_show), in its order. Symbols of
/// code, weak ones included, but for what is no function of its own: padding (`__pfx_`, `__cfi_`), the unlikely half
/// of another function (`.cold`), mapping symbols (`$x`), section markers, and generated code (`[bpf]`,
/// `[__builtin__kprobes]`).
struct Symbols {
  std::vector<Named> functions;
  bool hidden = false;  ///< every address is 0 (kptr_restrict, or no CAP_SYSLOG)
  /// Sections that no kprobe may be put into (kernel/kprobes.c: populate_kprobe_blacklist), by their markers.
  std::vector<AddressRange> unprobeable;
};
[[nodiscard]] Symbols parse_kallsyms(std::string_view text, ModuleNames& modules);

/// A line `ADDRESS TYPE NAME\t[MODULE]\tLISTED+0x0/0xSIZE[ [MODULE]]` for each symbol (ask_symbols()): functions as
/// parse_kallsyms() has them, and what ftrace would list of them, by the name that the kernel has for the address,
/// since one of `places`, which are sorted, lies at its beginning.
struct AskedSymbols {
  std::vector<Named> functions;
  std::vector<Named> listed;
};
[[nodiscard]] AskedSymbols parse_asked(std::string_view text, std::span<const std::uint64_t> places,
                                       ModuleNames& modules);

/// All the code in /proc/kallsyms, by address, for naming addresses: with the halves and the generated code that
/// parse_kallsyms() leaves out. Without what is hidden.
[[nodiscard]] std::vector<Named> parse_code(std::string_view text, ModuleNames& modules);

/// available_filter_functions, `NAME[ [MODULE]]`, or with `addresses` available_filter_functions_addrs (6.5),
/// `ADDRESS NAME[ [MODULE]]` (kernel/trace/ftrace.c: t_show). Without what is no function any more
/// (`__ftrace_invalid_address__`, 5.17).
[[nodiscard]] std::vector<Named> parse_filter_functions(std::string_view text, bool addresses, ModuleNames& modules);

/// /sys/kernel/debug/kprobes/blacklist, `0xBEGIN-0xEND\tNAME` (kernel/kprobes.c: kprobe_blacklist_seq_show).
struct Blacklist {
  std::vector<AddressRange> ranges;     ///< by address, none overlapping; empty where addresses are hidden
  std::vector<std::string_view> names;  ///< sorted
};
[[nodiscard]] Blacklist parse_blacklist(std::string_view text);

/// Names of available_events, `SYSTEM:NAME`, that are raw tracepoints, sorted, each once. `syscalls`, `ftrace` and
/// those made at run time (kprobe, uprobe, synthetic events) are none.
[[nodiscard]] std::vector<std::string_view> parse_events(std::string_view text);

}  // namespace usdt::kernel
