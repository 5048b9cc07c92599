// SPDX-License-Identifier: BSD-2-Clause
#include "proc/cgroup_names.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "sys/mounts.hpp"

namespace usdt::proc {
namespace {

namespace fs = std::filesystem;

/// More than any machine has of them, and names that nobody needs to keep.
constexpr std::size_t kMostCgroups = 1 << 16;

bool is_hex(std::string_view text) { return text.find_first_not_of("0123456789abcdef") == text.npos; }

/// The name of the cgroup in `directory`, which is below `outer`.
CgroupName name_below(const CgroupName& outer, const std::string& name) {
  CgroupName inner{.path = outer.path + "/" + name, .container = outer.container, .pod = outer.pod};
  if (const std::string_view id = container_of(name); !id.empty()) inner.container = id;
  if (std::string pod = pod_of(name); !pod.empty()) inner.pod = std::move(pod);
  return inner;
}

}  // namespace

std::string_view container_of(std::string_view name) {
  constexpr std::size_t shortest = 12;
  if (name.ends_with(".scope")) name.remove_suffix(6);
  if (name.starts_with("libpod-conmon-") || name.starts_with("crio-conmon-")) return {};
  const std::size_t dash = name.rfind('-');
  const std::string_view rest = dash == name.npos ? name : name.substr(dash + 1);
  return is_hex(rest) && rest.size() >= shortest ? rest : std::string_view();
}

std::string pod_of(std::string_view name) {
  constexpr std::string_view kPod = "pod";
  constexpr std::size_t uid_size = 36;
  if (name.ends_with(".slice")) name.remove_suffix(6);
  const std::size_t at = name.rfind(kPod);
  if (at == name.npos || (at > 0 && name[at - 1] != '-')) return {};
  std::string uid(name.substr(at + kPod.size()));
  std::ranges::replace(uid, '_', '-');
  const bool is_uid = uid.size() == uid_size && uid.find_first_not_of("0123456789abcdef-") == uid.npos;
  return is_uid ? uid : std::string();
}

CgroupNames::CgroupNames(std::string tree) : tree_(tree.empty() ? sys::cgroup_tree() : std::move(tree)) {}

const CgroupName* CgroupNames::find(std::uint64_t number) {
  constexpr std::chrono::seconds pause{1};
  auto found = known_.find(number);
  if (found == known_.end() && (!has_looked_ || Clock::now() - looked_ >= pause)) {
    look();
    found = known_.find(number);
  }
  return found == known_.end() ? nullptr : &found->second;
}

/// Those that went stay known as long as there is room: events of theirs may still come.
void CgroupNames::look() {
  has_looked_ = true;
  looked_ = Clock::now();
  if (tree_.empty()) return;
  if (known_.size() > kMostCgroups) known_.clear();
  std::vector<std::pair<fs::path, CgroupName>> left{{tree_, {}}};
  for (std::size_t seen = 0; !left.empty() && seen < kMostCgroups; ++seen) {
    const auto [directory, name] = std::move(left.back());
    left.pop_back();
    struct stat st {};
    if (::stat(directory.c_str(), &st) != 0) continue;
    std::error_code none;
    for (fs::directory_iterator each(directory, none), end; !none && each != end; each.increment(none))
      if (each->is_directory(none) && !each->is_symlink(none))
        left.emplace_back(each->path(), name_below(name, each->path().filename().native()));
    known_.insert_or_assign(st.st_ino, name.path.empty() ? CgroupName{"/", {}, {}} : name);
  }
}

}  // namespace usdt::proc
