// SPDX-License-Identifier: BSD-2-Clause
// Names of cgroups by their numbers, and the containers and pods that they are of.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace usdt::proc {

/// Returns the id of the container that a cgroup of this name is of: "docker-ID.scope", "libpod-ID.scope",
/// "cri-containerd-ID.scope", "crio-ID", "ID", of at least 12 hexadecimal digits. Empty: it is of none, or of the
/// program that watches one.
[[nodiscard]] std::string_view container_of(std::string_view name);
/// Returns the uid of the Kubernetes pod, with '-', that a cgroup of this name is of:
/// "kubepods-burstable-podUID.slice", "podUID". Empty: it is of none.
[[nodiscard]] std::string pod_of(std::string_view name);

/// A cgroup.
struct CgroupName {
  std::string path;       ///< below the tree's root, which is "/"
  std::string container;  ///< that it is of or within; empty: none
  std::string pod;        ///< likewise
};

/// Knows the cgroups of version 2. One thread at a time.
class CgroupNames {
 public:
  /// `tree`: where cgroups are mounted; empty: where they are on this machine.
  explicit CgroupNames(std::string tree = {});

  /// Returns the cgroup with this number (HitField::cgroup), which is that of its directory's inode; null: it is not
  /// there, or went before anybody looked. Looks for new ones at most once a second. Valid until the next call.
  [[nodiscard]] const CgroupName* find(std::uint64_t number);

 private:
  using Clock = std::chrono::steady_clock;
  void look();

  std::string tree_;
  std::unordered_map<std::uint64_t, CgroupName> known_ = {};
  Clock::time_point looked_ = {};
  bool has_looked_ = false;
};

}  // namespace usdt::proc
