// SPDX-License-Identifier: BSD-2-Clause
// Cgroups by name, and who is in them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "proc/cgroup_names.hpp"
#include "sys/mounts.hpp"
#include "sys/read.hpp"
#include "usdt/follow.hpp"

namespace usdt {
inline namespace v1 {
namespace fs = std::filesystem;
namespace {

/// More than any machine has of them.
constexpr std::size_t kMostCgroups = 1 << 16;

/// Hands `directory` and those below it to `visit`.
template <class Visit>
void walk(const fs::path& directory, const Visit& visit) {
  std::vector<fs::path> left{directory};
  for (std::size_t seen = 0; !left.empty() && seen < kMostCgroups; ++seen) {
    const fs::path at = std::move(left.back());
    left.pop_back();
    visit(at);
    std::error_code none;
    for (fs::directory_iterator each(at, none), end; !none && each != end; each.increment(none))
      if (each->is_directory(none) && !each->is_symlink(none)) left.push_back(each->path());
  }
}

void add_processes(const fs::path& cgroup, std::vector<pid_t>& pids) {
  const auto text = sys::read_text((cgroup / "cgroup.procs").string(), 1 << 22);
  if (!text) return;
  const char* at = text->data();
  const char* const end = at + text->size();
  while (at < end) {
    pid_t pid = 0;
    const auto [next, error] = std::from_chars(at, end, pid);
    if (error != std::errc()) return;
    if (pid > 0) pids.push_back(pid);  // 0: of another pid namespace
    at = next + 1;
  }
}

tl::unexpected<Error> no_tree() { return fail(ErrorKind::not_found, "no cgroup v2 is mounted here"); }

/// Besides ids of containers, whole names: "machine-NAME.scope".
bool names_container(std::string_view name, std::string_view id) {
  if (proc::container_of(name).starts_with(id)) return true;
  if (name.ends_with(".scope")) name.remove_suffix(6);
  if (name.starts_with("libpod-conmon-") || name.starts_with("crio-conmon-")) return false;  // who watches it
  return name.substr(std::min(name.rfind('-') + 1, name.size())) == id;
}

}  // namespace

Result<std::vector<pid_t>> processes_of_cgroup(const fs::path& cgroup) {
  std::error_code none;
  if (!fs::exists(cgroup / "cgroup.procs", none))
    return fail(ErrorKind::not_found, fmt::format("no cgroup (v2) {}", cgroup.string()));
  std::vector<pid_t> pids;
  walk(cgroup, [&pids](const fs::path& each) { add_processes(each, pids); });
  return pids;
}

Result<fs::path> find_cgroup(std::string_view name) {
  const std::string tree = sys::cgroup_tree();
  if (tree.empty()) return no_tree();
  std::error_code none;
  fs::path path(name);
  if (!(path.native() + '/').starts_with(tree + '/')) path = tree / path.relative_path();
  path = path.lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (!fs::exists(path / "cgroup.procs", none))
    return fail(ErrorKind::not_found, fmt::format("no cgroup {} in {}", name, tree));
  return path;
}

Result<fs::path> find_container(std::string_view id) {
  constexpr std::size_t shortest = 6;
  if (id.size() < shortest)
    return fail(ErrorKind::invalid_argument,
                fmt::format("container '{}': at least {} characters of its id", id, shortest));
  const std::string tree = sys::cgroup_tree();
  if (tree.empty()) return no_tree();
  std::vector<fs::path> found;
  walk(tree, [&](const fs::path& each) {
    // A cgroup below a container's is the container's, too.
    const bool below = std::ranges::any_of(
        found, [&](const fs::path& outer) { return each.native().starts_with(outer.native() + '/'); });
    if (!below && names_container(each.filename().native(), id)) found.push_back(each);
  });
  if (found.size() == 1) return std::move(found.front());
  if (found.empty())
    return fail(ErrorKind::not_found, fmt::format("no container {}: no cgroup in {} has that id in its name (names of "
                                                  "containers are known to those who run them alone)",
                                                  id, tree));
  std::vector<std::string> names;
  for (const fs::path& each : found) names.push_back(each.string());
  return fail(ErrorKind::invalid_argument, fmt::format("container {}: {} begin so", id, fmt::join(names, ", ")));
}

}  // namespace v1
}  // namespace usdt
