// SPDX-License-Identifier: BSD-2-Clause
// Names of attach points, one grammar for all kinds of them: parse_pattern() reads a name, to_string() writes it again,
// and select() (select.hpp) finds what it means. glob_match() is the match of all its parts.
//     auto pattern = usdt::parse_pattern("usdt:/usr/sbin/mysqld:mysql:query__*");
//     if (!pattern) return fail(pattern.error());   // syntax, with the column
// Threads: plain values and pure functions.
#pragma once

#include <cstdint>
#include <memory>
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

/// Returns whether `glob` matches the whole `text`, as in a shell: '*' any run of characters, '?' any one, '[a-z]' and
/// '[!a-z]' a class; '\' quotes the next character.
[[nodiscard]] bool glob_match(std::string_view glob, std::string_view text) noexcept;
/// Returns whether `text` has an unquoted '*', '?' or '['.
[[nodiscard]] bool has_glob(std::string_view text) noexcept;

/// Declares the arguments of a probe whose provider does not (docs/provider-note.md, type 2).
struct ProbeDeclaration {
  std::string provider;  ///< itself, no glob
  std::string name;      ///< likewise
  std::string declared;  ///< "file:string, line"; of several of a probe, that of as many as a site has counts

  friend bool operator==(const ProbeDeclaration&, const ProbeDeclaration&) = default;
};

/// Names USDT probes: `usdt:TARGET:PROVIDER:NAME`, `TARGET:PROVIDER:NAME`, `PROVIDER:NAME`, `usdt:TARGET:NAME` as in
/// bpftrace, `u:TARGET:NAME` as in bcc (and `U:` for `usdt:`). Globs are allowed in every part. The target may contain
/// ':': the last two parts are provider and name.
struct ProbePattern {
  /// A path, directory, glob, soname or program name, as resolve_target() takes it; empty or "*": whatever the
  /// processes in question (pids, command, all) have mapped.
  std::string target;
  std::string provider = "*";
  std::string name = "*";
  /// Names and meanings of the arguments of probes that are meant, which find_probes() puts into Site::description
  /// where the file declares none itself. Null: there are none.
  std::shared_ptr<const std::vector<ProbeDeclaration>> declarations = {};

  /// Reads a name that has to be a probe's, as parse_pattern() does. Errors: syntax, also for a name of another kind.
  [[nodiscard]] static Result<ProbePattern> parse(std::string_view text);
  /// Returns whether the pattern means a site of that provider and name. The target is not looked at.
  [[nodiscard]] bool matches(std::string_view site_provider, std::string_view site_name) const noexcept;
  /// Returns "usdt:TARGET:PROVIDER:NAME", which parse() reads as this pattern.
  [[nodiscard]] std::string str() const;
};

/// Names functions of files: `uprobe:TARGET:FUNCTION`, `uprobe:TARGET:FUNCTION+OFFSET`, `uprobe:FUNCTION`. `uretprobe`
/// means their returns, `ucall` both ends of a call in one event. "::" belongs to the function's name, and so may its
/// parameter list: `uprobe:./server:ns::Server::handle*`. A line of source is named `uprobe:TARGET:@FILE:LINE`.
struct FunctionPattern {
  Moment moment = Moment::entry;
  std::string target;        ///< as ProbePattern::target
  std::string name;          ///< a glob over symbols, and over their demangled names with and without parameters
  std::uint64_t offset = 0;  ///< bytes behind the first instruction; of Moment::entry only
  /// Not empty: the pattern means no name, but line `line` of this source file, a path or its last components; of
  /// Moment::entry only.
  std::string source_file = {};
  std::uint32_t line = 0;
  bool inlined = true;  ///< whether copies are meant, too, that the compiler inlined into other functions
  /// Whether returns are seen by probes on each RET instruction, as those of Go programs always are, or by the kernel's
  /// return probes. Nothing: by the former where each return is one, and where an exception may leave the function,
  /// which the kernel's would make the end of the program; else by the latter.
  std::optional<bool> ret_probes = {};
  bool debuginfod = false;  ///< servers are asked for its debug information (OpenOptions::debuginfod)
  /// The types of the arguments, where no debug information has them (parse_types()); empty: they are words.
  std::vector<Type> args = {};

  /// Reads a name that has to be a function's, as parse_pattern() does. Errors: syntax, also for a name of another
  /// kind.
  [[nodiscard]] static Result<FunctionPattern> parse(std::string_view text);
  /// Returns "uprobe:TARGET:FUNCTION+0x10", which parse() reads as these functions.
  [[nodiscard]] std::string str() const;
};
/// Reads the types of a function's arguments as people write them, "i32, str, f64": i8 to i64, u8 to u64, f32, f64,
/// bool, ptr, str. Sizes of pointers are 0: the file's machine decides them. Errors: syntax with the column.
[[nodiscard]] Result<std::vector<Type>> parse_types(std::string_view text);
/// Returns "@server.c:120": how names write a line.
[[nodiscard]] std::string line_text(std::string_view source_file, std::uint32_t line);
/// Returns "+0x1f": how names write an offset of `offset` bytes.
[[nodiscard]] std::string offset_text(std::uint64_t offset);
/// Returns the prefix of names of functions: "uprobe", "uretprobe", "ucall".
[[nodiscard]] std::string_view function_prefix(Moment moment) noexcept;

/// Names the kernel's mechanism by which a point of the kernel is attached.
enum class KernelFamily : std::uint8_t {
  any,         ///< the cheapest that can do it here
  kprobe,      ///< kprobe_multi, its session, or perf kprobes: arguments from registers
  trampoline,  ///< fentry, fexit, fsession, or their multi forms: arguments from the trampoline's slots
  raw_tp,      ///< raw tracepoint programs
  tp_btf,      ///< BTF-typed raw tracepoint programs
};

/// Stands for the prefix of a name. "kprobe" is {kprobe, entry}, "kretprobe" {kprobe, exit}, "ksession" {kprobe, both}.
/// "fentry", "fexit" and "fsession" are of family trampoline, "kfunc", "kretfunc" and "kcall" of any. "raw_tp" and
/// "tp_btf" are entries: tracepoints have no exit.
struct KernelKind {
  KernelFamily family = KernelFamily::any;
  Moment moment = Moment::entry;
  friend bool operator==(const KernelKind&, const KernelKind&) = default;
};
/// Returns the prefix, without ':'.
[[nodiscard]] std::string_view to_string(KernelKind kind) noexcept;
/// Returns whether the prefix means tracepoints: not functions, but places in the kernel with arguments.
[[nodiscard]] constexpr bool is_tracepoint(KernelKind kind) noexcept {
  return kind.family == KernelFamily::raw_tp || kind.family == KernelFamily::tp_btf;
}

/// Names kernel functions or raw tracepoints: `PREFIX:NAME` or `PREFIX:MODULE:NAME`, with globs in MODULE and NAME.
struct KernelPattern {
  KernelKind kind;
  std::string module;  ///< empty: the kernel and all modules; "vmlinux": the kernel alone
  std::string name;

  /// Reads a name that has to be of the kernel, as parse_pattern() does. Errors: syntax, also for a name of another
  /// kind.
  [[nodiscard]] static Result<KernelPattern> parse(std::string_view text);
  /// Returns "fentry:vfs_*", which parse() reads as this pattern.
  [[nodiscard]] std::string str() const;
};

/// Names attach points of any kind.
using PointPattern = std::variant<ProbePattern, FunctionPattern, KernelPattern>;
/// The target of a pattern, which says in which files to look; null: its points are of the kernel.
[[nodiscard]] const std::string* target_of(const PointPattern& pattern) noexcept;

/// Reads a name: "mysql:query__start", "uprobe:libc.so.6:malloc", "fentry:vfs_read". The prefix tells its kind
/// (bpftrace's other prefixes count: "k", "kr", "ur", "rawtracepoint", "rt"); without one it is a USDT probe. A part in
/// double quotes means itself, whatever characters it has. Outside of quotes a '\' takes the next character's meaning
/// away, and "\n", "\t" and "\xHH" are the newline, the tab and the byte of that number.
/// Errors: syntax with the column ("empty probe name", "no ':' in 'x': write PROVIDER:NAME"); not_supported for kinds
/// that bpftrace has and this library has not, with what there is instead, and for a span, "A ~~ B" (plan_spans()).
[[nodiscard]] Result<PointPattern> parse_pattern(std::string_view text);
/// Reads several names. Errors: those of the first one that parse_pattern() refuses.
[[nodiscard]] Result<std::vector<PointPattern>> parse_patterns(const std::vector<std::string>& texts);
/// Returns the name that a pattern was read from, in its longest form.
[[nodiscard]] std::string to_string(const PointPattern& pattern);

}  // namespace v1
}  // namespace usdt
