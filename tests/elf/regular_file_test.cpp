// SPDX-License-Identifier: BSD-2-Clause
// What is no regular file is never opened, whoever made a name lead to it: opening a device can act on it, and a FIFO
// wakes its writer. inotify(7) tells of every open; looking at an inode by O_PATH is none.
#include "sys/regular_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "image_builder.hpp"
#include "toolchain.hpp"

namespace usdt::test {
namespace {

namespace fs = std::filesystem;

/// Hears of every open of one file.
class OpenWatch {
 public:
  explicit OpenWatch(const fs::path& path) : fd_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    EXPECT_GE(::inotify_add_watch(fd_.get(), path.c_str(), IN_OPEN), 0);
  }
  [[nodiscard]] bool opened() const {
    std::array<char, 4096> events;
    return ::read(fd_.get(), events.data(), events.size()) > 0;
  }

 private:
  sys::UniqueFd fd_;
};

class SpecialFile : public testing::Test {
 protected:
  SpecialFile() {
    EXPECT_EQ(::mkfifo(fifo_.c_str(), 0600), 0);
    watch_.emplace(fifo_);
  }
  TempDir dir_;
  fs::path fifo_ = dir_ / "fifo";
  std::optional<OpenWatch> watch_;
};

TEST_F(SpecialFile, is_seen_to_be_opened_by_whoever_opens_it) {
  const sys::UniqueFd fd(::open(fifo_.c_str(), O_RDONLY | O_NONBLOCK));
  EXPECT_TRUE(watch_->opened()) << "the witness of the other tests";
}

TEST_F(SpecialFile, is_not_opened_as_a_target) {
  EXPECT_EQ(open_error(fifo_).kind, ErrorKind::not_supported);
  EXPECT_FALSE(watch_->opened());
}

TEST_F(SpecialFile, is_not_opened_where_a_debug_link_leads_to_it) {
  const std::string link = std::string("prog.debug\0\0", 12) + std::string(4, '\0');
  fs::create_symlink(fifo_, dir_ / "prog.debug");
  const auto program = dir_.write("prog", ImageBuilder()
                                              .segment(PT_LOAD, PF_R | PF_X, 0x1000, std::string(16, '\x90'))
                                              .section(".gnu_debuglink", SHT_PROGBITS, 0, 0, link)
                                              .build());
  EXPECT_TRUE(scan_file(program).sites.empty());
  EXPECT_FALSE(watch_->opened());
}

TEST_F(SpecialFile, is_not_opened_where_a_build_id_leads_to_it) {
  const std::string id = note(std::string_view("GNU\0", 4), NT_GNU_BUILD_ID, "\x12\x34\x56\x78");
  fs::create_directories(dir_ / "debug/.build-id/12");
  fs::create_symlink(fifo_, dir_ / "debug/.build-id/12/345678.debug");
  const auto program = dir_.write("prog", ImageBuilder()
                                              .segment(PT_LOAD, PF_R | PF_X, 0x1000, std::string(16, '\x90'))
                                              .section(".note.gnu.build-id", SHT_NOTE, 0, 0, id)
                                              .build());
  EXPECT_TRUE(scan_file(program, {.debug_dirs = {dir_ / "debug"}}).sites.empty());
  EXPECT_FALSE(watch_->opened());
}

TEST_F(SpecialFile, is_not_opened_when_it_takes_a_files_place_meanwhile) {
  dir_.write("regular", "text");
  const fs::path name = dir_ / "name";
  fs::create_symlink("regular", name);
  std::atomic<bool> done{false};
  std::thread other([&] {
    for (bool fifo = true; !done; fifo = !fifo) {
      fs::create_symlink(fifo ? "fifo" : "regular", dir_ / "next");
      fs::rename(dir_ / "next", name);
    }
  });
  int regular = 0;
  for (int i = 0; i < 20'000; ++i) regular += sys::open_regular(AT_FDCWD, name.c_str()).fd ? 1 : 0;
  done = true;
  other.join();
  EXPECT_GT(regular, 0);
  EXPECT_LT(regular, 20'000) << "the name never led to the FIFO";
  EXPECT_FALSE(watch_->opened());
}

TEST(RegularFile, is_opened_for_reading) {
  const TempDir dir;
  const auto opened = sys::open_regular(AT_FDCWD, dir.write("file", "text").c_str());
  ASSERT_TRUE(opened.fd);
  std::array<char, 8> text{};
  EXPECT_EQ(::pread(opened.fd.get(), text.data(), text.size(), 0), 4);
  EXPECT_STREQ(text.data(), "text");
  EXPECT_EQ(opened.st.st_size, 4);
}

TEST(RegularFile, says_why_it_cannot_be_opened) {
  const TempDir dir;
  EXPECT_EQ(sys::open_regular(AT_FDCWD, (dir / "absent").c_str()).error, ENOENT);
  EXPECT_EQ(sys::open_regular(AT_FDCWD, dir.path().c_str()).error, EINVAL);
}

}  // namespace
}  // namespace usdt::test
