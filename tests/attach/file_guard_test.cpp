// SPDX-License-Identifier: BSD-2-Clause
#include "link/file_guard.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sys/unique_fd.hpp"

namespace usdt::backends {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Reports = std::vector<std::pair<std::size_t, FileChangeKind>>;

/// What a guard reported, and the size of the file at that moment.
class Heard {
 public:
  FileGuard::OnChange sink(std::vector<fs::path> watched, std::chrono::milliseconds takes = 0ms) {
    return [this, watched = std::move(watched), takes](std::size_t file, FileChangeKind kind) {
      std::error_code gone;
      const auto size = fs::file_size(watched[file], gone);
      std::this_thread::sleep_for(takes);
      const std::lock_guard lock(mutex_);
      reports_.emplace_back(file, kind);
      sizes_.push_back(size);
      news_.notify_all();
    };
  }
  /// All reports, once there are `count`; fewer after three seconds.
  Reports wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    news_.wait_for(lock, 3s, [&] { return reports_.size() >= count; });
    return reports_;
  }
  /// All reports, after the time in which everything is looked at twice.
  Reports after_a_while() {
    std::this_thread::sleep_for(700ms);
    return wait_for(0);
  }
  std::uintmax_t size_then() {
    const std::lock_guard lock(mutex_);
    return sizes_.empty() ? 0 : sizes_.front();
  }

 private:
  std::mutex mutex_;
  std::condition_variable news_;
  Reports reports_;
  std::vector<std::uintmax_t> sizes_;
};

class FileGuardTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "usdt-guard-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    one_ = copy("one");
    other_ = copy("other");
  }
  void TearDown() override { fs::remove_all(directory_); }

  /// An ELF file of ours.
  fs::path copy(const char* name) const {
    const fs::path path = directory_ / name;
    fs::copy_file("/proc/self/exe", path);
    return path;
  }

  static GuardedFile guarded(const fs::path& path) {
    auto elf = ElfFile::open(path);
    EXPECT_TRUE(elf) << elf.error().message;
    return {std::make_shared<const ElfFile>(std::move(*elf)), path};
  }

  FileGuard guard(std::chrono::milliseconds let_go_takes = 0ms) {
    auto started = FileGuard::start({guarded(one_), guarded(other_)}, heard_.sink({one_, other_}, let_go_takes));
    EXPECT_TRUE(started) << started.error().message;
    return std::move(*started);
  }

  /// True where whoever opens `path` for writing would have to wait.
  static bool is_leased(const fs::path& path) {
    const sys::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    return !fd && errno == EWOULDBLOCK;
  }

  fs::path directory_, one_, other_;
  Heard heard_;
};

const Reports kOneWritten{{0, FileChangeKind::written}};

TEST_F(FileGuardTest, who_opens_a_file_for_writing_waits_until_its_sites_are_let_go) {
  if (const auto watching = guard(); !is_leased(one_)) GTEST_SKIP() << "no leases on " << directory_;
  heard_.wait_for(1);
  Heard heard;
  auto watching = FileGuard::start({guarded(other_)}, heard.sink({other_}, 300ms));
  const auto size = fs::file_size(other_);
  const auto begin = std::chrono::steady_clock::now();
  const sys::UniqueFd writer(::open(other_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  const auto waited = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(writer);
  EXPECT_EQ(heard.wait_for(1), kOneWritten);
  EXPECT_EQ(heard.size_then(), size) << "the file was cut off before its sites were let go";
  EXPECT_GE(waited, 300ms);
  EXPECT_LT(waited, 3s);
}

TEST_F(FileGuardTest, a_write_by_who_had_the_file_open_before_is_reported_once) {
  const sys::UniqueFd writer(::open(one_.c_str(), O_WRONLY | O_CLOEXEC));
  const auto watching = guard();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(::pwrite(writer.get(), "x", 1, i), 1);
  EXPECT_EQ(heard_.wait_for(1), kOneWritten);
  EXPECT_EQ(heard_.after_a_while(), kOneWritten);
}

TEST_F(FileGuardTest, what_is_forgotten_is_closed_and_what_is_added_then_has_a_number_of_its_own) {
  auto started = FileGuard::start({guarded(one_), guarded(other_)}, heard_.sink({one_, other_, one_, one_}));
  ASSERT_TRUE(started) << started.error().message;
  FileGuard& watching = *started;
  const std::weak_ptr<const ElfFile> forgotten = [&] {
    const GuardedFile file = guarded(one_);
    watching.add({file});
    return file.elf;
  }();
  EXPECT_FALSE(forgotten.expired());
  watching.forget({0, 2});
  EXPECT_TRUE(forgotten.expired());
  EXPECT_FALSE(is_leased(one_));
  watching.add({guarded(one_)});
  const sys::UniqueFd writer(::open(one_.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(::pwrite(writer.get(), "x", 1, 0), 1);
  EXPECT_EQ(heard_.wait_for(1), (Reports{{3, FileChangeKind::written}}));
}

/// Detaching may take longer than whoever adds a file waits for it.
TEST_F(FileGuardTest, files_added_while_sites_are_let_go_keep_their_numbers) {
  const fs::path third = copy("third");
  auto report = heard_.sink({one_, other_, third});
  auto started = FileGuard::start({guarded(one_)}, [&](std::size_t file, FileChangeKind kind) {
    if (file == 0) std::this_thread::sleep_for(2500ms);
    report(file, kind);
  });
  ASSERT_TRUE(started) << started.error().message;
  const auto write_to = [](const fs::path& path) {
    const sys::UniqueFd writer(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
    return writer && ::pwrite(writer.get(), "x", 1, 0) == 1;
  };
  // Where files are leased, to open one for writing tells the guard, and fails until it has let go.
  static_cast<void>(write_to(one_));
  std::this_thread::sleep_for(400ms);
  started->add({guarded(other_)});
  started->add({guarded(third)});
  EXPECT_EQ(heard_.wait_for(1), kOneWritten);
  static_cast<void>(write_to(third));
  EXPECT_EQ(heard_.wait_for(2), (Reports{{0, FileChangeKind::written}, {2, FileChangeKind::written}}));
}

TEST_F(FileGuardTest, a_write_through_a_mapping_is_seen_by_the_files_time) {
  const sys::UniqueFd writer(::open(one_.c_str(), O_RDWR | O_CLOEXEC));
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, writer.get(), 0);
  ASSERT_NE(page, MAP_FAILED);
  const auto watching = guard();
  std::this_thread::sleep_for(20ms);  // file times are as coarse as the timer's ticks
  static_cast<char*>(page)[100] ^= 1;
  EXPECT_EQ(heard_.wait_for(1), kOneWritten);
  ::munmap(page, 4096);
}

TEST_F(FileGuardTest, a_write_whose_time_is_set_back_is_seen) {
  struct stat before {};
  ASSERT_EQ(::stat(one_.c_str(), &before), 0);
  const sys::UniqueFd writer(::open(one_.c_str(), O_WRONLY | O_CLOEXEC));
  const auto watching = guard();
  ASSERT_EQ(::pwrite(writer.get(), "x", 1, 0), 1);
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::futimens(writer.get(), times), 0);
  EXPECT_EQ(heard_.wait_for(1), kOneWritten);
}

TEST_F(FileGuardTest, a_write_before_the_watch_began_is_reported_at_once) {
  std::vector<GuardedFile> files{guarded(one_)};
  std::this_thread::sleep_for(20ms);
  fs::resize_file(one_, 100);
  auto watching = FileGuard::start(std::move(files), heard_.sink({one_}));
  ASSERT_TRUE(watching);
  EXPECT_EQ(heard_.after_a_while(), kOneWritten);
}

TEST_F(FileGuardTest, a_file_that_another_one_takes_the_place_of_is_replaced_and_not_written) {
  const auto watching = guard();
  fs::rename(copy("fresh"), one_);
  const Reports replaced{{0, FileChangeKind::replaced}};
  EXPECT_EQ(heard_.wait_for(1), replaced);
  EXPECT_EQ(heard_.after_a_while(), replaced);
}

/// Its own name was taken from it before: `mv old old.1; mv new old`.
TEST_F(FileGuardTest, a_file_that_is_renamed_and_then_replaced_is_not_written) {
  const auto watching = guard();
  fs::rename(one_, directory_ / "one.1");
  EXPECT_EQ(heard_.after_a_while(), Reports{});
  fs::rename(copy("fresh"), one_);
  const Reports replaced{{0, FileChangeKind::replaced}};
  EXPECT_EQ(heard_.wait_for(1), replaced);
  EXPECT_EQ(heard_.after_a_while(), replaced);
}

TEST_F(FileGuardTest, a_file_without_a_name_is_removed_and_not_written) {
  const auto watching = guard();
  fs::remove(other_);
  const Reports removed{{1, FileChangeKind::removed}};
  EXPECT_EQ(heard_.wait_for(1), removed);
  EXPECT_EQ(heard_.after_a_while(), removed);
}

TEST_F(FileGuardTest, reading_running_linking_and_attributes_are_no_changes) {
  const auto watching = guard();
  fs::create_hard_link(one_, directory_ / "second name");
  fs::permissions(one_, fs::perms::owner_all);
  (void)::setxattr(one_.c_str(), "user.usdt", "x", 1, 0);  // not every file system has them
  copy("third");
  std::vector<char> bytes(1000);
  const sys::UniqueFd reader(::open(one_.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(::read(reader.get(), bytes.data(), bytes.size()), 1000);
  EXPECT_EQ(heard_.after_a_while(), Reports{});
}

TEST_F(FileGuardTest, the_last_descriptors_are_left_to_the_application) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{40, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto watching = guard();
  EXPECT_FALSE(is_leased(one_));
  fs::resize_file(one_, 100);
  EXPECT_EQ(heard_.wait_for(1), kOneWritten);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(FileGuardTest, no_lease_outlives_its_guard_even_where_a_child_has_its_descriptors) {
  pid_t child = -1;
  {
    const auto watching = guard();
    child = ::fork();
    if (child == 0) {
      ::pause();
      ::_exit(0);
    }
  }
  EXPECT_FALSE(is_leased(one_));
  ::kill(child, SIGKILL);
}

TEST_F(FileGuardTest, a_child_of_the_watching_process_can_end_in_order) {
  auto watching = std::make_unique<FileGuard>(guard());
  const pid_t child = ::fork();
  if (child == 0) {
    watching.reset();
    ::_exit(7);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  fs::resize_file(one_, 100);
  EXPECT_EQ(heard_.wait_for(1), kOneWritten);
}

volatile sig_atomic_t handled = 0;

TEST_F(FileGuardTest, the_applications_signal_handlers_see_nothing_of_it) {
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) { handled = 1; };
  ASSERT_EQ(::sigaction(SIGIO, &action, &before), 0);
  const auto watching = guard();
  fs::resize_file(one_, 100);
  EXPECT_EQ(heard_.wait_for(1), kOneWritten);
  ::sigaction(SIGIO, &before, nullptr);
  EXPECT_EQ(handled, 0);
}

}  // namespace
}  // namespace usdt::backends
