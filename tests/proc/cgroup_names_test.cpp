// SPDX-License-Identifier: BSD-2-Clause
#include "proc/cgroup_names.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

namespace usdt::proc {
namespace {

namespace fs = std::filesystem;

const std::string kId = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

TEST(ContainerOf, knows_the_names_that_runtimes_give) {
  for (const std::string& name : {"docker-" + kId + ".scope", "libpod-" + kId + ".scope",
                                  "cri-containerd-" + kId + ".scope", "crio-" + kId + ".scope", "crio-" + kId, kId})
    EXPECT_EQ(container_of(name), kId) << name;
  for (const std::string& name :
       {std::string("system.slice"), std::string("user-1000.slice"), "libpod-conmon-" + kId + ".scope",
        std::string("session-2.scope"), std::string("docker-xyz.scope"), std::string(), std::string("-")})
    EXPECT_EQ(container_of(name), "") << name;
}

TEST(PodOf, knows_both_forms_and_no_other_words_that_end_so) {
  const std::string uid = "12345678-90ab-cdef-1234-567890abcdef";
  EXPECT_EQ(pod_of("kubepods-burstable-pod12345678_90ab_cdef_1234_567890abcdef.slice"), uid);
  EXPECT_EQ(pod_of("kubepods-pod12345678_90ab_cdef_1234_567890abcdef.slice"), uid);
  EXPECT_EQ(pod_of("pod" + uid), uid);
  for (const std::string& name : {std::string("kubepods.slice"), std::string("pod"), "tripod" + uid, "pod" + uid + "0",
                                  std::string("podman-12345.scope")})
    EXPECT_EQ(pod_of(name), "") << name;
}

TEST(CgroupNames, finds_directories_by_their_inodes_and_new_ones_a_second_later) {
  std::string root = fs::temp_directory_path() / "cgroups.XXXXXX";
  ASSERT_NE(::mkdtemp(root.data()), nullptr);
  const fs::path pod = fs::path(root) / "kubepods.slice/kubepods-pod12345678_90ab_cdef_1234_567890abcdef.slice";
  const fs::path container = pod / ("cri-containerd-" + kId + ".scope");
  fs::create_directories(container / "inner");
  const auto number = [](const fs::path& path) {
    struct stat st {};
    EXPECT_EQ(::stat(path.c_str(), &st), 0) << path;
    return std::uint64_t{st.st_ino};
  };
  CgroupNames names(root);
  const CgroupName* found = names.find(number(container / "inner"));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->container, kId);
  EXPECT_EQ(found->pod, "12345678-90ab-cdef-1234-567890abcdef");
  EXPECT_EQ(found->path, (container / "inner").native().substr(root.size()));
  found = names.find(number(root));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->path + found->container, "/");
  fs::create_directories(pod / "later");
  EXPECT_EQ(names.find(number(pod / "later")), nullptr) << "it looked just now";
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  ASSERT_NE(names.find(number(pod / "later")), nullptr);
  EXPECT_EQ(names.find(number(pod / "later"))->container, "");
  fs::remove_all(root);
}

}  // namespace
}  // namespace usdt::proc
