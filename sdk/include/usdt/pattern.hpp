// SPDX-License-Identifier: BSD-2-Clause
// Names of attach points, one grammar for all kinds of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "usdt/moment.hpp"
#include "usdt/result.hpp"
#include "usdt/type.hpp"

namespace usdt {
inline namespace v1 {

/// Shell-style match of the whole `text`: '*' any run, '?' any one character, '[a-z]' / '[!a-z]' a class, '\' quotes.
[[nodiscard]] bool glob_match(std::string_view glob, std::string_view text) noexcept;
/// True when `text` has an unquoted '*', '?' or '['.
[[nodiscard]] bool has_glob(std::string_view text) noexcept;

/// Which USDT probes are meant: `usdt:TARGET:PROVIDER:NAME`, `TARGET:PROVIDER:NAME`, `PROVIDER:NAME`,
/// `usdt:TARGET:NAME` as in bpftrace, `u:TARGET:NAME` as in bcc (and `U:` for `usdt:`). Globs are allowed in every
/// part. The target may contain ':': the last two parts are provider and name.
struct ProbePattern {
  /// Path, directory, glob, soname or program name, as resolve_target() takes it; empty or "*": whatever the processes
  /// in question (pids, command, all) have mapped.
  std::string target;
  std::string provider = "*";
  std::string name = "*";

  /// parse_pattern() for a text that has to be a probe's. Errors: syntax, also where it is of another kind.
  [[nodiscard]] static Result<ProbePattern> parse(std::string_view text);
  /// Whether a site of that provider and name is meant.
  [[nodiscard]] bool matches(std::string_view site_provider, std::string_view site_name) const noexcept;
  /// "usdt:TARGET:PROVIDER:NAME", parseable again.
  [[nodiscard]] std::string str() const;
};

/// Which functions of files are meant: `uprobe:TARGET:FUNCTION`, `uprobe:TARGET:FUNCTION+OFFSET`, `uprobe:FUNCTION`;
/// `uretprobe` the same at their returns, `ucall` both ends of a call in one event. "::" belongs to the function's
/// name, and so may its parameter list: `uprobe:./server:ns::Server::handle*`. Or a line of their source:
/// `uprobe:TARGET:@FILE:LINE`.
struct FunctionPattern {
  Moment moment = Moment::entry;
  std::string target;        ///< as that of a ProbePattern
  std::string name;          ///< a glob over symbols, and over their demangled names with and without parameters
  std::uint64_t offset = 0;  ///< bytes behind the first instruction; of Moment::entry only
  /// Not empty: no name is meant, but line `line` of this source file, a path or its last components; of Moment::entry
  /// only.
  std::string source_file = {};
  std::uint32_t line = 0;
  bool inlined = true;  ///< copies too that the compiler inlined into other functions
  /// Whether returns are seen by probes on each RET instruction, as those of Go programs always are, or by the kernel's
  /// return probes. Nothing: by the former where each return is one, and where an exception may leave the function,
  /// which the kernel's would make the end of the program; else by the latter.
  std::optional<bool> ret_probes = {};
  bool debuginfod = false;  ///< servers are asked for its debug information (OpenOptions::debuginfod)
  /// The types of its arguments, where no debug information has them (parse_types()); empty: they are words.
  std::vector<Type> args = {};

  /// parse_pattern() for a text that has to be such a name. Errors: syntax, also where it is of another kind.
  [[nodiscard]] static Result<FunctionPattern> parse(std::string_view text);
  /// "uprobe:TARGET:FUNCTION+0x10", parseable again.
  [[nodiscard]] std::string str() const;
};
/// The types of a function's arguments as people write them, "i32, str, f64": i8 to i64, u8 to u64, f32, f64, bool,
/// ptr, str; sizes of pointers are 0, which the file's machine tells. Errors: syntax with the column.
[[nodiscard]] Result<std::vector<Type>> parse_types(std::string_view text);
/// "@server.c:120": how a line is named.
[[nodiscard]] std::string line_text(std::string_view source_file, std::uint32_t line);
/// "+0x1f": how an offset is written.
[[nodiscard]] std::string offset_text(std::uint64_t offset);
/// The prefix of such names: "uprobe", "uretprobe", "ucall".
[[nodiscard]] std::string_view function_prefix(Moment moment) noexcept;

/// By which of the kernel's mechanisms.
enum class KernelFamily : std::uint8_t {
  any,         ///< the cheapest that can do it here
  kprobe,      ///< kprobe_multi, its session, or perf kprobes: arguments from registers
  trampoline,  ///< fentry, fexit, fsession, or their multi forms: arguments from the trampoline's slots
  raw_tp,      ///< raw tracepoint programs
  tp_btf,      ///< BTF-typed raw tracepoint programs
};

/// The prefixes of names: "kprobe" is {kprobe, entry}, "kretprobe" {kprobe, exit}, "ksession" {kprobe, both},
/// "fentry", "fexit" and "fsession" the same of trampolines, "kfunc", "kretfunc" and "kcall" of any;
/// "raw_tp" and "tp_btf", which have no exit.
struct KernelKind {
  KernelFamily family = KernelFamily::any;
  Moment moment = Moment::entry;
  friend bool operator==(const KernelKind&, const KernelKind&) = default;
};
/// The prefix, without ':'.
[[nodiscard]] std::string_view to_string(KernelKind kind) noexcept;
/// No function, but a place in the kernel with typed arguments.
[[nodiscard]] constexpr bool is_tracepoint(KernelKind kind) noexcept {
  return kind.family == KernelFamily::raw_tp || kind.family == KernelFamily::tp_btf;
}

/// Which kernel functions or raw tracepoints are meant: `PREFIX:NAME` or `PREFIX:MODULE:NAME`, globs in both.
struct KernelPattern {
  KernelKind kind;
  std::string module;  ///< empty: the kernel and all modules; "vmlinux": the kernel alone
  std::string name;

  /// parse_pattern() for a text that has to be such a name. Errors: syntax, also where it is of another kind.
  [[nodiscard]] static Result<KernelPattern> parse(std::string_view text);
  /// "fentry:vfs_*", parseable again.
  [[nodiscard]] std::string str() const;
};

/// Which attach points are meant, of whatever kind.
using PointPattern = std::variant<ProbePattern, FunctionPattern, KernelPattern>;
/// The target of a pattern, which says in which files to look; null: its points are of the kernel.
[[nodiscard]] const std::string* target_of(const PointPattern& pattern) noexcept;

/// Reads a name. The prefix says of what kind it is (bpftrace's other names for them count: "k", "kr", "ur",
/// "rawtracepoint", "rt"); without one it is a USDT probe. A part in double quotes means itself, whatever characters it
/// has; outside of quotes a '\' takes the next character's meaning away, and "\n", "\t" and "\xHH" are the newline, the
/// tab and the byte of that number.
/// Errors: syntax with the column ("empty probe name", "no ':' in 'x': write PROVIDER:NAME"); not_supported for kinds
/// that bpftrace has and this library has not, with what there is instead, and for a span, "A ~~ B" (plan_spans()).
[[nodiscard]] Result<PointPattern> parse_pattern(std::string_view text);
/// The same of several. The first error is that of all.
[[nodiscard]] Result<std::vector<PointPattern>> parse_patterns(const std::vector<std::string>& texts);
/// The name again, in its longest form.
[[nodiscard]] std::string to_string(const PointPattern& pattern);

}  // namespace v1
}  // namespace usdt
