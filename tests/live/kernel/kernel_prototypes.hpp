// SPDX-License-Identifier: BSD-2-Clause
// Prototypes of kernel functions for a kernel that has no types itself.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace usdt::ways {

struct Parameter {
  std::string type;
  std::string name;
};
struct Prototype {
  std::string result;
  std::vector<Parameter> parameters;
  bool varargs = false;
};

/// Bytes of a type as this machine's kernel has it; structs by value, too.
[[nodiscard]] std::uint32_t size_of(const std::string& type);
[[nodiscard]] bool is_structure(const std::string& type);

/// Those of Linux 6.1, from its source.
[[nodiscard]] const std::map<std::string, Prototype, std::less<>>& prototypes();

/// Writes them as type information: a file `vmlinux` in `directory`.
void write_types(const std::string& directory);

}  // namespace usdt::ways
