// SPDX-License-Identifier: BSD-2-Clause
#include "proc/script.hpp"

#include <fmt/format.h>

#include <cerrno>

#include "proc/file_head.hpp"
#include "usdt/discover.hpp"

namespace usdt::proc {
namespace fs = std::filesystem;
namespace {

// fs/exec.c, exec_binprm: "This allows 4 levels of binfmt rewrites before failing hard."
constexpr int kMaxScripts = 5;

std::vector<std::string_view> words(std::string_view line) {
  static constexpr std::string_view kBlanks = " \t\r";
  std::vector<std::string_view> out;
  while (true) {
    const auto start = line.find_first_not_of(kBlanks);
    if (start == line.npos) return out;
    line.remove_prefix(start);
    const auto end = line.find_first_of(kBlanks);
    out.push_back(line.substr(0, end));
    if (end == line.npos) return out;
    line.remove_prefix(end);
  }
}

}  // namespace

std::string program_of_script_line(std::string_view line) {
  const auto parts = words(line);
  if (parts.empty()) return {};
  if (fs::path(parts[0]).filename() != "env") return std::string(parts[0]);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    // Options (-S, -i) and VAR=VALUE come before the program's name.
    if (!parts[i].starts_with('-') && parts[i].find('=') == parts[i].npos) return std::string(parts[i]);
  }
  return std::string(parts[0]);
}

Result<fs::path> interpreter_of(const fs::path& path) {
  fs::path current = path;
  for (int depth = 0; depth <= kMaxScripts; ++depth) {
    errno = 0;
    const auto head = read_head(current.c_str());
    if (!head) return fail(os_failure(ErrorKind::io, current.string(), errno));
    if (head->format != FileFormat::script) return current;
    const std::string program = program_of_script_line(head->script_line);
    if (program.empty()) {
      return fail(ErrorKind::malformed, fmt::format("{}: its \"#!\" line names no interpreter", current.string()));
    }
    auto found = find_program(program);
    if (!found) return fail(found.error().within(fmt::format("interpreter of {}", current.string())));
    current = std::move(*found);
  }
  return fail(ErrorKind::limit,
              fmt::format("{}: its interpreter is a script in turn, more than {} deep", path.string(), kMaxScripts));
}

}  // namespace usdt::proc
