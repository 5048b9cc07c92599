// SPDX-License-Identifier: BSD-2-Clause
// From names to attach points: select() finds all points that patterns mean, in files and in the kernel; find_files()
// stops at the files; hints_for() says what may have been meant when nothing matched.
//     auto patterns = usdt::parse_patterns({"mysql:query__*", "fentry:vfs_read"});
//     auto selection = usdt::select(*patterns, {.pids = {4711}});
//     auto plan = usdt::plan_attach(*selection, usdt::kernel_facts(*patterns));
// Threads: any, each with a scope of its own. A Selection is a value; its files stay open as long as something shares
// them.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/kernel.hpp"
#include "usdt/pattern.hpp"
#include "usdt/probe_file.hpp"
#include "usdt/result.hpp"
#include "usdt/stop.hpp"

namespace usdt {
inline namespace v1 {

/// Says where patterns without a target, or with the target "*", look for points: in `targets`; else in what the
/// processes or the program map; if nothing is set, in the files of every running process.
struct SearchScope {
  std::vector<std::string> targets = {};  ///< as resolve_target() takes them
  /// The files these processes have mapped; all targets choose among them.
  std::vector<pid_t> pids = {};
  std::optional<std::filesystem::path> program = {};  ///< this program and the libraries it needs
  /// A target that none of `pids` has mapped is looked for on disk: it may be loaded later.
  bool unmapped_too = true;
  /// Called with a target and the number of files seen so far while a directory is walked.
  std::function<void(const std::string&, std::size_t)> progress = {};
  /// Ends the search early, from another thread: ErrorKind::stopped, within a moment whatever is searched.
  StopToken stop = {};
  /// Patterns of the kernel that nothing matches are left out and named (KernelSelection::unknown), as long as another
  /// one of them matches something.
  bool skip_unknown = false;
};

/// Names a file to look into, and the patterns that mean it.
struct FoundFile {
  TargetFile target;
  std::vector<PointPattern> patterns;  ///< empty: every probe
  bool named = true;                   ///< false: a walk, a glob or "all processes" came across it
};

/// Lists the files that patterns mean, each inode once whatever the number of patterns.
struct FoundFiles {
  std::vector<FoundFile> files;
  std::vector<Error> errors;          ///< targets and processes that could not be read at all
  std::vector<std::string> nowhere;   ///< targets that mean no file
  std::vector<std::string> unmapped;  ///< those that none of SearchScope::pids has mapped (yet)
  std::vector<std::string> looked;    ///< the places that were searched, for a message when nothing matched
};

/// Finds the files to look into for `patterns` (none: every probe of the scope), without opening them yet. With pids, a
/// target is looked for among their files (by path, file name or glob), so that it works across mount namespaces and
/// for deleted files. Patterns of the kernel are passed over. Failures are in FoundFiles::errors.
[[nodiscard]] FoundFiles find_files(const std::vector<PointPattern>& patterns, const SearchScope& scope = {});

/// Suggests what may have been meant when nothing in `found` matches: probes of nearly that name ("did you mean ...?";
/// '-', '_' and '__' are alike), or the libraries of a program that has no probes itself. Empty: nothing is near.
[[nodiscard]] std::vector<std::string> hints_for(const std::vector<PointPattern>& patterns, const FoundFiles& found,
                                                 const StopToken& stop = {});

/// Returns the full name of a probe, "usdt:PATH:PROVIDER:NAME", which ProbePattern::parse() takes for exactly this
/// probe. PATH opens the file: it is below /proc for deleted files and those of other mount namespaces, and in double
/// quotes if that is needed. The name is printable UTF-8 whatever bytes the file has.
[[nodiscard]] std::string probe_name(const TargetFile& file, std::string_view provider, std::string_view name);
/// Returns the full name of a function, "uprobe:PATH:FUNCTION", which means all functions of that name in the file.
/// `name` and `distance` are those of its FunctionPoint.
[[nodiscard]] std::string function_name(const TargetFile& file, Moment moment, std::string_view name,
                                        std::uint64_t distance = 0);

/// Returns whether a pattern means a function of that name (FunctionPoint::name), by the name alone.
[[nodiscard]] bool means_function(const FunctionPattern& pattern, std::string_view name);

/// Holds the points that patterns mean, in files and in the kernel.
struct Selection {
  std::vector<ProbeFile> files = {};   ///< files with their matching sites alone; those without any are left out
  KernelSelection kernel = {};         ///< functions and raw tracepoints of the running kernel
  std::vector<Error> unreadable = {};  ///< errors of files, named by a pattern or mapped, that could not be read
  /// Reasons why points may exist in files in which nothing matched, such as debug information that was refused
  /// (ProbeFile::refused).
  std::vector<std::string> may_be_missing = {};
  std::vector<std::string> looked = {};    ///< the places that were searched, for a message when nothing matched
  std::vector<std::string> unmapped = {};  ///< FoundFiles::unmapped
};

/// Finds the points that `patterns` mean: in the files of find_files(), and in the running kernel. Errors: the first of
/// find_files(), and a target that means no file; not_found where nothing in files matches the patterns of files,
/// saying what was searched and which providers are there, or a pattern of the kernel means nothing, with names like
/// it; no_permission or not_supported where the kernel's lists cannot be had; invalid_argument without patterns;
/// stopped. A kernel function that exists but cannot be attached to is no error but in KernelSelection::refused.
[[nodiscard]] Result<Selection> select(const std::vector<PointPattern>& patterns, const SearchScope& scope = {});

}  // namespace v1
}  // namespace usdt
