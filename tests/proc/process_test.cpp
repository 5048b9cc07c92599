// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "support.hpp"
#include "usdt/discover.hpp"

namespace usdt {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// True when opening `file` reaches a copy of the sleeper.
bool is_sleeper(const TargetFile& file) { return contents(file.access) == contents(PROC_SLEEPER); }

std::vector<TargetFile> files_of(pid_t pid) {
  auto files = files_of_process(pid);
  EXPECT_TRUE(files) << files.error().message;
  return files.value_or(std::vector<TargetFile>{});
}

TEST(FilesOfProcess, own_files_are_listed_once_main_program_first) {
  const auto files = files_of(::getpid());
  ASSERT_FALSE(files.empty());
  EXPECT_EQ(files[0].path, fs::read_symlink("/proc/self/exe"));
  std::set<std::pair<dev_t, ino_t>> inodes;
  for (const TargetFile& file : files) {
    struct stat st {};
    ASSERT_EQ(::stat(file.access.c_str(), &st), 0) << file.access;
    EXPECT_TRUE(inodes.emplace(st.st_dev, st.st_ino).second) << file.path << " is listed twice";
    EXPECT_EQ(file.access, file.path) << "a file of our own namespace opens by its path";
    EXPECT_FALSE(file.deleted);
  }
  EXPECT_TRUE(
      std::ranges::any_of(files, [](const auto& f) { return f.path.filename().string().starts_with("libc."); }));
}

TEST(FilesOfProcess, a_path_with_blanks_and_a_newline_is_read_back) {
  test::TempDir dir;
  const auto program = dir.copy(PROC_SLEEPER, "my  odd\nprogram (deleted)");
  const auto child = test::Child::running(program);
  ASSERT_GT(child.pid, 0);
  const auto files = files_of(child.pid);
  ASSERT_FALSE(files.empty());
  EXPECT_EQ(files[0].path, program);
  EXPECT_EQ(files[0].access, program);
  EXPECT_FALSE(files[0].deleted);
}

TEST(FilesOfProcess, a_deleted_program_opens_through_proc) {
  test::TempDir dir;
  const auto program = dir.copy(PROC_SLEEPER, "program");
  const auto child = test::Child::running(program);
  ASSERT_GT(child.pid, 0);
  fs::remove(program);
  const auto files = files_of(child.pid);
  ASSERT_FALSE(files.empty());
  EXPECT_EQ(files[0].path, program);
  EXPECT_TRUE(files[0].deleted);
  EXPECT_THAT(files[0].access.string(), StartsWith("/proc/"));
  EXPECT_TRUE(is_sleeper(files[0]));
}

TEST(FilesOfProcess, a_replaced_program_is_the_one_that_runs_not_the_one_on_disk) {
  test::TempDir dir;
  const auto program = dir.copy(PROC_SLEEPER, "program");
  const auto child = test::Child::running(program);
  ASSERT_GT(child.pid, 0);
  fs::rename(dir.write("new",
                       "\x7f"
                       "ELF, an upgrade"),
             program);
  const auto files = files_of(child.pid);
  ASSERT_FALSE(files.empty());
  EXPECT_TRUE(files[0].deleted);
  EXPECT_TRUE(is_sleeper(files[0])) << files[0].access;
}

TEST(FilesOfProcess, a_memfd_program_keeps_its_name) {
  const int fd = ::memfd_create("usdt test program", MFD_CLOEXEC);
  ASSERT_GE(fd, 0);
  const std::string bytes = contents(PROC_SLEEPER);
  ASSERT_EQ(::write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  const test::Child child([&] {
    char* argv[] = {const_cast<char*>("memfd"), nullptr};
    ::fexecve(fd, argv, environ);
  });
  ::close(fd);
  ASSERT_GT(child.pid, 0);
  const auto files = files_of(child.pid);
  ASSERT_FALSE(files.empty());
  EXPECT_EQ(files[0].path, "/memfd:usdt test program");
  EXPECT_TRUE(files[0].deleted);
  EXPECT_THAT(files[0].access.string(), EndsWith("/exe"));
  EXPECT_TRUE(is_sleeper(files[0]));
}

TEST(FilesOfProcess, without_privileges_a_file_without_a_name_opens_where_its_process_has_it_open) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && (::setgroups(0, nullptr) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(2);
    ::prctl(PR_SET_DUMPABLE, 1);  // another user's process is not
    const int fd = ::memfd_create("usdt test library", MFD_CLOEXEC);
    const std::string bytes = contents(PROC_SLEEPER);
    if (::write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) ::_exit(3);
    if (::mmap(nullptr, bytes.size(), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED) ::_exit(4);
    const auto files = files_of(::getpid());
    const auto found = std::ranges::find(files, "/memfd:usdt test library", &TargetFile::path);
    ::_exit(found != files.end() && found->deleted && is_sleeper(*found) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: it is not found; else the process could not be made";
}

TEST(FilesOfProcess, a_file_of_another_mount_namespace_opens_below_its_root) {
  test::TempDir dir;
  const fs::path inside = dir.path() / "mnt";
  fs::create_directory(inside);
  const test::Child child([&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
    if (::mount("tmpfs", inside.c_str(), "tmpfs", 0, nullptr) != 0) return;
    fs::copy_file(PROC_SLEEPER, inside / "program");
    ::execl((inside / "program").c_str(), "program", nullptr);
  });
  if (child.pid < 0) GTEST_SKIP() << "no privilege to make a mount namespace";
  const auto files = files_of(child.pid);
  ASSERT_FALSE(files.empty());
  EXPECT_EQ(files[0].path, inside / "program");
  EXPECT_EQ(files[0].access,
            fs::path("/proc") / std::to_string(child.pid) / "root" / (inside / "program").relative_path());
  EXPECT_FALSE(files[0].deleted);
  EXPECT_TRUE(is_sleeper(files[0]));
}

/// Runs `body` in a child whose root directory is a mount of ours elsewhere, as in a build chroot; its exit code, 77
/// where that may not be made.
int in_chroot(const fs::path& root, const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(77);
    if (::mount("/", root.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) ::_exit(77);
    if (::chroot(root.c_str()) != 0 || ::chdir("/") != 0) ::_exit(77);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// There /proc/PID/maps names files from the root of the other namespace on, by a path that nobody in the chroot can
// use.
TEST(FilesOfProcess, within_a_chroot_a_file_of_another_mount_namespace_has_the_path_the_process_knows) {
  const test::TempDir root;
  const int code = in_chroot(root.path(), [] {
    const test::TempDir dir;
    const fs::path program = dir.path() / "program";
    const test::Child child([&] {
      if (::unshare(CLONE_NEWNS) != 0 || ::mount("tmpfs", dir.path().c_str(), "tmpfs", 0, nullptr) != 0) return;
      fs::copy_file(PROC_SLEEPER, program);
      ::execl(program.c_str(), "program", nullptr);
    });
    if (child.pid < 0) return 77;
    const auto files = files_of(child.pid);
    if (files.empty()) return 1;
    EXPECT_EQ(files[0].path, program);
    EXPECT_EQ(files[0].access, fs::path("/proc") / std::to_string(child.pid) / "root" / program.relative_path());
    EXPECT_TRUE(is_sleeper(files[0]));
    for (const TargetFile& file : files) EXPECT_FALSE(file.deleted) << file.path;
    return testing::Test::HasFailure() ? 1 : 0;
  });
  if (code == 77) GTEST_SKIP() << "no privilege to make a mount namespace and a chroot";
  EXPECT_EQ(code, 0);
}

TEST(FilesOfProcess, a_process_that_is_gone_is_not_found) {
  auto child = test::Child::running(PROC_SLEEPER);
  const pid_t pid = child.pid;
  child.end();
  for (const pid_t gone : {pid, 0, -1}) {
    const auto files = files_of_process(gone);
    ASSERT_FALSE(files);
    EXPECT_EQ(files.error().kind, ErrorKind::not_found);
    EXPECT_EQ(files.error().message, "no process " + std::to_string(gone));
  }
}

TEST(FilesOfProcess, a_zombie_maps_no_program) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  const auto files = files_of_process(pid);
  ::waitpid(pid, nullptr, 0);
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().kind, ErrorKind::not_found);
  EXPECT_THAT(files.error().message, HasSubstr("maps no program"));
}

TEST(FilesOfProcess, another_users_process_is_no_permission_and_says_what_to_do) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const auto target = test::Child::running(PROC_SLEEPER);
  ASSERT_GT(target.pid, 0);
  const pid_t looker = ::fork();
  if (looker == 0) {
    if (::setgroups(0, nullptr) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(2);
    const auto files = files_of_process(target.pid);
    const bool right = !files && files.error().kind == ErrorKind::no_permission &&
                       files.error().message.find("CAP_SYS_PTRACE") != std::string::npos;
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  ::waitpid(looker, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: another answer, 2: could not change user";
}

TEST(FilesOfAllProcesses, our_own_program_is_among_them) {
  const auto files = files_of_all_processes();
  ASSERT_TRUE(files) << files.error().message;
  const auto self = fs::read_symlink("/proc/self/exe");
  EXPECT_EQ(std::ranges::count_if(*files, [&](const TargetFile& f) { return f.path == self; }), 1);
}

}  // namespace
}  // namespace usdt
