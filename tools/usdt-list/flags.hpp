// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "usdt/pattern.hpp"

namespace usdt_list {

enum class Format : std::uint8_t { text, json };

/// The command line, parsed and checked for sense.
struct Flags {
  std::vector<std::string> targets;          ///< paths, directories, globs, sonames, program names
  std::vector<usdt::PointPattern> patterns;  ///< of files, with a target or without
  std::vector<usdt::PointPattern> kernel_patterns;
  std::vector<pid_t> pids;
  int verbosity = 0;
  Format format = Format::text;
  bool debuginfod = false;  ///< servers are asked for debug files
  std::string members;      ///< a type whose layout is wanted; of the targets, else of the kernel
  bool lint = false;        ///< look for faults of the probes instead of listing them
  bool presets = false;     ///< list questions that are known by name; of the processes, if there are any
  bool doctor = false;      ///< about the kernel; excludes everything above but the format
};

/// True if anything but the kernel is to be listed.
[[nodiscard]] bool lists_files(const Flags& flags);

/// Parses argv; prints help, version or a usage error itself. Nothing when the program shall end with `exit_code`.
[[nodiscard]] std::optional<Flags> parse_flags(int argc, char** argv, int& exit_code);

}  // namespace usdt_list
