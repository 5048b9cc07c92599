// SPDX-License-Identifier: BSD-2-Clause
// The CRC of debug links, judged by boost::crc, and what it costs where a debug file is mostly hole.
#include "elf/crc32.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/crc.hpp>
#include <chrono>
#include <random>
#include <thread>

#include "image_builder.hpp"
#include "toolchain.hpp"

namespace usdt::test {
namespace {

std::uint32_t boost_crc(std::string_view bytes) {
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

elf::ByteView bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

TEST(Crc32, agrees_with_boost_on_any_length) {
  std::mt19937 random(1);
  std::string text;
  for (int length = 0; length < 200; ++length) {
    elf::Crc32 crc;
    crc.add(bytes_of(text));
    ASSERT_EQ(crc.value(), boost_crc(text)) << length << " bytes";
    text += static_cast<char>(random());
  }
}

TEST(Crc32, agrees_with_boost_on_zeros_that_are_not_looked_at) {
  for (const std::size_t zeros : {0, 1, 2, 7, 8, 9, 4095, 4096, 1'000'003}) {
    elf::Crc32 crc;
    crc.add(bytes_of("before"));
    crc.add_zeros(zeros);
    crc.add(bytes_of("behind"));
    ASSERT_EQ(crc.value(), boost_crc("before" + std::string(zeros, '\0') + "behind")) << zeros << " zeros";
  }
}

/// "prog" without notes, and "prog.debug" with one, that grows to `size` by a hole.
class SparseDebugFile : public testing::Test {
 protected:
  void make(std::uint64_t size, std::uint32_t crc) {
    const auto debug = dir_.write("prog.debug", image_);
    ASSERT_EQ(::truncate(debug.c_str(), static_cast<off_t>(size)), 0);
    std::string link("prog.debug\0\0", 12);
    link.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
    dir_.write("prog", ImageBuilder()
                           .segment(PT_LOAD, PF_R | PF_X, 0x1000, std::string(16, '\x90'))
                           .section(".gnu_debuglink", SHT_PROGBITS, 0, 0, link)
                           .build());
  }
  TempDir dir_;
  std::string image_ = library_with(stapsdt_note({.pc = 0x1000}));
};

TEST_F(SparseDebugFile, is_found_by_the_crc_of_all_its_bytes) {
  constexpr std::size_t kSize = 16 << 20;
  make(kSize, boost_crc(image_ + std::string(kSize - image_.size(), '\0')));
  EXPECT_EQ(scan_file(dir_ / "prog").sites.size(), 1U);
}

TEST_F(SparseDebugFile, costs_what_is_stored_of_it) {
  // At a gigabyte a second, reading it would take a quarter of an hour.
  make(1ULL << 40, 0);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(scan_file(dir_ / "prog").sites.empty());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

TEST(Stopping, ends_the_reading_of_a_large_debug_file_within_a_moment) {
  const TempDir dir;
  const std::string image = library_with(stapsdt_note({}));
  dir.write("prog.debug", image);
  const auto grown = run_in(dir, "yes x | head -c 500000000 >> prog.debug");
  ASSERT_EQ(grown.status, 0) << grown.output;
  dir.write("prog", ImageBuilder()
                        .segment(PT_LOAD, PF_R | PF_X, 0x1000, std::string(16, '\x90'))
                        .section(".gnu_debuglink", SHT_PROGBITS, 0, 0, std::string("prog.debug\0\0\1\2\3\4", 16))
                        .build());
  std::stop_source stop;
  const auto file = ElfFile::open(dir / "prog", {.stop = stop.get_token()});
  ASSERT_TRUE(file);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stop.request_stop();
  });
  const auto start = std::chrono::steady_clock::now();
  const auto result = file->scan();
  const auto took = std::chrono::steady_clock::now() - start;
  other.join();
  ASSERT_FALSE(result) << "it was read before the stop";
  EXPECT_EQ(result.error().kind, ErrorKind::stopped);
  EXPECT_LT(took, std::chrono::seconds(1));
}

}  // namespace
}  // namespace usdt::test
