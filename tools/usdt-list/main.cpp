// SPDX-License-Identifier: BSD-2-Clause
// usdt-list: parse flags, call the SDK, print.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "common/guarded.hpp"
#include "common/progress.hpp"
#include "common/report.hpp"
#include "doctor.hpp"
#include "exit_code.hpp"
#include "flags.hpp"
#include "function_list.hpp"
#include "io/stream.hpp"
#include "lint.hpp"
#include "members.hpp"
#include "presets.hpp"
#include "print.hpp"

namespace usdt_list {
namespace {

using usdt::tools::counted;
using usdt::tools::print_error;
using usdt::tools::print_notice;

/// "python:gc__start": without the target, which messages name anyway.
std::string short_name(const usdt::PointPattern& pattern) {
  const auto* probe = std::get_if<usdt::ProbePattern>(&pattern);
  return probe ? fmt::format("{}:{}", probe->provider, probe->name) : to_string(pattern);
}

/// One run: every file scanned and printed, then what there is to say about them.
class Lister {
 public:
  explicit Lister(const Flags& flags) : flags_(flags), out_(STDOUT_FILENO) {}

  int run() {
    if (!flags_.kernel_patterns.empty()) list_kernel();
    if (out_.error() != 0) return output_failed(out_);
    return lists_files(flags_) ? list_files() : exit_code();
  }

 private:
  int list_files() {
    const usdt::FoundFiles found = find();
    progress_.clear();
    for (const usdt::Error& error : found.errors) complain(error);
    std::size_t scanned = 0;
    for (const usdt::FoundFile& file : found.files) {
      if (!file.named) progress_.show("scanning", ++scanned);
      list(file);
      if (out_.error() != 0) return output_failed(out_);
    }
    progress_.clear();
    if (out_.error() != 0) return output_failed(out_);
    if (skipped_ > 0)
      print_notice(kTool,
                   fmt::format("passed over {}, the first: {}", counted(skipped_, "unreadable file"), why_skipped_));
    if (!found_in_files_) explain_nothing(found);
    return exit_code();
  }

  usdt::FoundFiles find() {
    usdt::SearchScope scope;
    scope.targets = flags_.targets;
    scope.pids = flags_.pids;
    scope.unmapped_too = false;
    scope.progress = [this](const std::string& target, std::size_t seen) { progress_.show(target, seen); };
    return usdt::find_files(flags_.patterns, scope);
  }

  [[nodiscard]] int exit_code() const {
    if (trouble_) return kTrouble;
    if (faults_ > 0) return kFaults;
    return found_ ? kFound : kNothing;
  }

  /// Says why points that are there cannot be traced here, once for each kind.
  void say_untraceable() const {
    std::set<std::string> said;
    for (const usdt::PointPattern& pattern : flags_.kernel_patterns)
      said.insert(usdt::why_untraceable(std::get<usdt::KernelPattern>(pattern).kind));
    for (const std::string& why : said) {
      if (!why.empty()) print_notice(kTool, fmt::format("what is listed cannot be traced here: {}", why));
    }
  }

  void list_kernel() {
    say_untraceable();
    auto all = usdt::select(flags_.kernel_patterns);
    if (all) return list(all->kernel);
    if (flags_.kernel_patterns.size() == 1) return complain_of_kernel(all.error());
    // One that means nothing hides none of the others.
    for (const usdt::PointPattern& pattern : flags_.kernel_patterns) {
      auto one = usdt::select({pattern});
      one ? list(one->kernel) : complain_of_kernel(one.error());
    }
  }

  void complain_of_kernel(const usdt::Error& error) {
    print_error(kTool, error);
    trouble_ = trouble_ || error.kind != usdt::ErrorKind::not_found;
  }

  void list(const usdt::KernelSelection& selection) {
    for (const std::string& missing : selection.missing) print_notice(kTool, missing);
    list(list_functions(selection), nullptr);
  }

  /// `file`: that they are of; null: of the kernel.
  void list(const std::vector<ListedFunction>& functions, const usdt::ProbeFile* file) {
    const bool json = flags_.format == Format::json;
    json ? print_functions_json(functions, file, out_) : print_functions_text(functions, flags_.verbosity, out_);
    static_cast<void>(out_.flush());
    std::size_t refused = 0;
    for (const ListedFunction& each : functions) {
      if (each.refused.empty())
        found_ = true;
      else
        ++refused;
    }
    if (refused == 0 || json || flags_.verbosity > 0) return;
    const auto first = std::ranges::find_if(functions, [](const auto& each) { return !each.refused.empty(); });
    print_notice(kTool, fmt::format("left out {} that cannot be attached to (-v lists them), the first: {}: {}",
                                    counted(refused, "function"), first->name, first->refused));
  }

  void complain(const usdt::Error& error) {
    progress_.clear();
    print_error(kTool, error);
    trouble_ = true;
  }

  void list(const usdt::FoundFile& found) {
    auto file = usdt::find_probes(found.target, found.patterns);
    if (!file) {
      if (found.named) return complain(file.error());
      if (++skipped_ == 1) why_skipped_ = file.error().message;
      return;
    }
    warn(*file);
    say_what_is_missing(*file);
    if (!file->functions.empty()) {
      found_in_files_ = true;
      progress_.clear();
      list(list_functions(*file), &*file);
    }
    if (file->sites.empty()) return;
    const bool first = !found_in_files_;
    found_ = found_in_files_ = true;
    progress_.clear();
    if (flags_.lint)
      faults_ += print_lint(*file, flags_.format, out_);
    else
      flags_.format == Format::json ? print_json(*file, out_) : print_text(*file, flags_.verbosity, first, out_);
    static_cast<void>(out_.flush());
  }

  void say_what_is_missing(const usdt::ProbeFile& file) {
    const bool types_wanted = file.sites.empty() && (!file.functions.empty() || flags_.debuginfod);
    std::string text;
    if (!file.refused.empty())
      text = "functions or types may be missing: " + file.refused;
    else if (types_wanted && !file.no_types.empty())
      text = "no types of functions: " + file.no_types;
    if (text.empty()) return;
    progress_.clear();
    print_notice(kTool, fmt::format("{}: {}", file.target.access.string(), text));
  }

  void warn(const usdt::ProbeFile& file) {
    for (const usdt::ScanWarning& warning : file.warnings) {
      progress_.clear();
      print_notice(kTool, fmt::format("{}: warning: {}", file.target.access.string(), warning.message));
    }
  }

  /// Says what was looked at, so that a typo and an empty file can be told apart.
  void explain_nothing(const usdt::FoundFiles& found) {
    for (const std::string& target : found.nowhere) {
      print_notice(kTool, flags_.pids.empty() ? fmt::format("no ELF file in '{}'", target)
                                              : fmt::format("'{}' is not among the files of process {}", target,
                                                            fmt::join(flags_.pids, ",")));
    }
    explain_files(found);
    for (const std::string& hint : usdt::hints_for(flags_.patterns, found)) print_notice(kTool, hint);
  }

  void explain_files(const usdt::FoundFiles& found) {
    if (found.files.empty()) return;
    constexpr std::size_t kShown = 5;
    if (found.files.size() > kShown) {
      const std::string functions = flags_.patterns.empty() ? "; usdt-list 'uprobe:FILE:*' lists functions of one" : "";
      print_notice(kTool, fmt::format("{} in {} files{}", nothing(), found.files.size(), functions));
      return;
    }
    for (const usdt::FoundFile& file : found.files) explain_file(file);
  }

  [[nodiscard]] std::string nothing() const {
    if (flags_.patterns.empty()) return "no probes";
    std::vector<std::string> wanted;
    for (const usdt::PointPattern& pattern : flags_.patterns) wanted.push_back(short_name(pattern));
    return fmt::format("no {} matches {}", only_functions() ? "function" : "probe", fmt::join(wanted, ", "));
  }

  [[nodiscard]] bool only_functions() const {
    return !flags_.patterns.empty() && std::ranges::all_of(flags_.patterns, [](const usdt::PointPattern& pattern) {
      return std::holds_alternative<usdt::FunctionPattern>(pattern);
    });
  }

  void explain_file(const usdt::FoundFile& file) {
    if (only_functions()) return print_notice(kTool, nothing());
    const auto all = usdt::find_probes(file.target, {});
    if (!all) return;  // said already
    std::set<std::string> providers;
    std::set<std::pair<std::string, std::string>> probes;
    for (const usdt::Site& site : all->sites) {
      providers.insert(site.provider);
      probes.emplace(site.provider, site.name);
    }
    const std::string path = file.target.access.string();
    if (probes.empty())
      return print_notice(kTool, fmt::format("{0} has no probes; usdt-list 'uprobe:{0}:*' lists its functions", path));
    print_notice(kTool, fmt::format("{}; {} has {} of {} {}", nothing(), path, counted(probes.size(), "probe"),
                                    providers.size() == 1 ? "provider" : "providers", fmt::join(providers, ", ")));
  }

  const Flags& flags_;
  usdt::tools::Progress progress_;
  usdt::io::Stream out_;
  bool found_ = false;
  bool found_in_files_ = false;
  bool trouble_ = false;
  std::size_t skipped_ = 0;
  std::size_t faults_ = 0;  ///< that --lint found
  std::string why_skipped_;
};

int run_tool(int argc, char** argv) {
  usdt::io::reserve_standard_streams();
  int exit_code = kFound;
  const auto flags = parse_flags(argc, argv, exit_code);
  if (!flags) return exit_code;
  if (flags->doctor) return run_doctor(flags->format);
  if (flags->presets) return run_presets(*flags);
  return flags->members.empty() ? Lister(*flags).run() : run_members(*flags);
}

}  // namespace
}  // namespace usdt_list

constinit const usdt::tools::Tool usdt::tools::kThisTool{.name = usdt_list::kTool, .trouble = usdt_list::kTrouble};

int main(int argc, char** argv) {
  return usdt::tools::guarded([&] { return usdt_list::run_tool(argc, argv); });
}
