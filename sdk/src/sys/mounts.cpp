// SPDX-License-Identifier: BSD-2-Clause
#include "sys/mounts.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "sys/read.hpp"

namespace usdt::sys {
namespace {

/// "\040" and the like, as the kernel writes blanks, line ends and backslashes of paths.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](std::size_t n) { return i + n < text.size() && text[i + n] >= '0' && text[i + n] <= '7'; };
    if (text[i] != '\\' || !digit(1) || !digit(2) || !digit(3)) {
      out += text[i];
      continue;
    }
    out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
    i += 3;
  }
  return out;
}

std::optional<Mount> mount_of(std::string_view line) {
  Mount mount;
  std::string* const fields[] = {nullptr, nullptr, &mount.device, &mount.root, &mount.place};
  for (std::string* field : fields) {
    const std::string_view word = line.substr(0, line.find(' '));
    if (field != nullptr) *field = unescaped(word);
    line.remove_prefix(std::min(word.size() + 1, line.size()));
  }
  constexpr std::string_view behind_options = " - ";
  const std::size_t at = line.find(behind_options);
  if (at == line.npos) return std::nullopt;
  const std::string_view rest = line.substr(at + behind_options.size());
  mount.type = rest.substr(0, rest.find(' '));
  mount.options = rest.substr(rest.rfind(' ') + 1);
  return mount;
}

}  // namespace

std::vector<Mount> mounts() {
  const auto text = read_text("/proc/self/mountinfo", 1 << 20);
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  std::vector<Mount> out;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (auto mount = mount_of(line)) out.push_back(std::move(*mount));
  }
  return out;
}

std::string cgroup_tree() {
  for (Mount& mount : mounts())
    if (mount.type == "cgroup2" && mount.root == "/") return std::move(mount.place);
  return {};
}

}  // namespace usdt::sys
