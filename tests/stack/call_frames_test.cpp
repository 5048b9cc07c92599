// SPDX-License-Identifier: BSD-2-Clause
// Rules of files that nobody can trust. What those of real ones lead to GDB judges (tests/kernel/ustack_test.py).
#include "locate/call_frames.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "elf/elf_impl.hpp"

namespace usdt::locate {
namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A file with these bytes, as long as this lives.
class Written {
 public:
  explicit Written(const std::string& bytes)
      : path_(::testing::TempDir() + "call_frames_test." + std::to_string(::getpid())) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~Written() { ::unlink(path_.c_str()); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(CallFrames, what_was_changed_in_them_neither_hangs_nor_crashes) {
  const std::string library = "/proc/self/exe";
  const auto whole = ElfFile::open(library);
  ASSERT_TRUE(whole) << whole.error().message;
  const elf::Image& image = elf::Inside::of(*whole)->image;
  const elf::Section* rules = image.find(".eh_frame");
  const elf::Section* index = image.find(".eh_frame_hdr");
  const elf::Section* text = image.find(".text");
  ASSERT_TRUE(rules != nullptr && index != nullptr && text != nullptr);
  // The code itself is not looked at: a small file with the same tables would do, and this one is there.
  std::string bytes = bytes_of(library);
  std::mt19937 random(1);
  const CallFrames::Memory memory = [&](std::uint64_t address, unsigned) { return std::optional(address * 3); };
  unsigned steps = 0;
  for (int round = 0; round < 20; ++round) {
    std::string mutant = bytes;
    for (int i = 0; i < 2000; ++i) {
      const elf::Section& where = i % 8 == 0 ? *index : *rules;
      mutant[where.offset + random() % where.size] = static_cast<char>(random());
    }
    const Written file(mutant);
    const auto elf = ElfFile::open(file.path());
    ASSERT_TRUE(elf);
    auto frames = CallFrames::open(*elf);
    if (!frames) continue;
    for (int i = 0; i < 500; ++i) {
      FrameRegisters registers;
      for (auto& value : registers.values) value = random();
      bool signal = false;
      const VirtAddr at(text->addr + random() % text->size);
      steps += frames->step(at, registers, memory, signal) == FrameStep::taken ? 1 : 0;
      static_cast<void>(frames->base_at(at));
    }
  }
  EXPECT_GT(steps, 0U) << "some rules are still rules";
}

TEST(CallFrames, a_file_without_rules_has_no_rule) {
  const auto elf = ElfFile::open("/proc/self/exe");
  ASSERT_TRUE(elf);
  auto frames = CallFrames::open(*elf);
  ASSERT_TRUE(frames) << frames.error().message;
  FrameRegisters registers;
  bool signal = false;
  const auto nothing = [](std::uint64_t, unsigned) { return std::optional<std::uint64_t>(); };
  EXPECT_EQ(frames->step(VirtAddr(8), registers, nothing, signal), FrameStep::no_rule);
  EXPECT_EQ(frames->base_at(VirtAddr(8)), std::nullopt);
  EXPECT_FALSE(frames->is_outermost(VirtAddr(8)));
}

}  // namespace
}  // namespace usdt::locate
