// SPDX-License-Identifier: BSD-2-Clause
#include "proc/mapped_files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sys/unique_fd.hpp"

namespace usdt::proc {
namespace {

using namespace std::chrono_literals;
using Seen = MappedFiles::Seen;

/// A file without a name, of which a page can be mapped.
class MappedFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "usdt-mapped-XXXXXX").string();
    file_.reset(::mkstemp(name.data()));
    ASSERT_TRUE(file_);
    ASSERT_EQ(::ftruncate(file_.get(), 4096), 0);
    std::filesystem::remove(name);
    struct stat st {};
    ASSERT_EQ(::fstat(file_.get(), &st), 0);
    id_ = {st.st_dev, st.st_ino};
  }

  /// Whether the file is mapped by anybody who can be looked into; nothing: that may not be known here.
  std::optional<bool> is_mapped(const MappedFiles::OnRoot& on_root = {}) {
    MappedFiles files(on_root);
    Seen seen = Seen::some;
    while (seen == Seen::some) seen = files.look(1ms);
    return seen == Seen::all ? std::optional(files.has(id_)) : std::nullopt;
  }

  sys::UniqueFd file_;
  FileId id_;
};

TEST_F(MappedFilesTest, have_what_is_mapped_under_no_name_until_it_is_unmapped) {
  const auto before = is_mapped();
  if (!before) GTEST_SKIP() << "not allowed to look at mapped files";
  EXPECT_FALSE(*before) << "open is not mapped";
  void* page = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, file_.get(), 0);
  ASSERT_NE(page, MAP_FAILED);
  EXPECT_EQ(is_mapped(), true);
  ::munmap(page, 4096);
  EXPECT_EQ(is_mapped(), false);
}

TEST_F(MappedFilesTest, are_looked_for_below_each_root_once) {
  std::vector<std::string> ours;
  const auto mapped = is_mapped([&](const std::filesystem::path& root) {
    if (std::filesystem::equivalent(root, "/")) ours.push_back(root);
  });
  if (!mapped) GTEST_SKIP() << "not allowed to look at mapped files";
  EXPECT_EQ(ours.size(), 1U);
}

}  // namespace
}  // namespace usdt::proc
