// SPDX-License-Identifier: BSD-2-Clause
// Functions, of the kernel and of files, and raw tracepoints as they are listed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flags.hpp"
#include "print.hpp"
#include "usdt/usdt.hpp"

namespace usdt_list {

/// A function that can be attached to, or that cannot and why.
struct ListedFunction {
  std::string name;       ///< pastes into usdt-trace; of files, several functions may have one
  std::string signature;  ///< "ssize_t (struct file *file, ...)"; empty: types are not known
  std::vector<usdt::Arg> args;
  std::optional<usdt::Arg> result;
  std::string refused;  ///< empty: it can be attached to
  usdt::Machine machine = usdt::kernel_machine();
  std::vector<std::pair<std::string, std::string>> details = {};  ///< labels and what they say
  std::string module = {};                                        ///< of the kernel: "vmlinux", or the module's name
  const usdt::KernelFunction* of_kernel = nullptr;                ///< null: of a file, or refused without a look at it
  const usdt::FunctionPoint* of_file = nullptr;
  /// The form in which usdt-trace shows values that are no numbers: "members", "elements", "list" or "text"; empty: not
  /// at all, or as a number. The arguments, then the result.
  std::vector<std::string_view> shown = {};

  [[nodiscard]] std::string_view shown_as(std::size_t value) const {
    return value < shown.size() ? shown[value] : std::string_view();
  }
};

/// Lists the functions of a selection, those that can be attached to first. `selection` must outlive the result.
[[nodiscard]] std::vector<ListedFunction> list_functions(const usdt::KernelSelection& selection);
/// Lists the functions of `file`, which must outlive the result.
[[nodiscard]] std::vector<ListedFunction> list_functions(const usdt::ProbeFile& file);

/// Prints one line for each name: the name and its typed signature; with verbosity 1 also the places of each function
/// and its arguments, and the refused ones. Aligned on a terminal, tab-separated otherwise.
void print_functions_text(const std::vector<ListedFunction>& functions, int verbosity, usdt::io::Stream& out);
/// Prints one object for each (docs/json.md). `file`: the file they are in; null: the kernel.
void print_functions_json(const std::vector<ListedFunction>& functions, const usdt::ProbeFile* file,
                          usdt::io::Stream& out);

}  // namespace usdt_list
