// SPDX-License-Identifier: BSD-2-Clause
// Records as perf_event_open(2) describes them.
#include "stack/map_watch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace usdt::stack {
namespace {

class Record {
 public:
  Record(std::uint32_t type, std::uint16_t misc = 0) { header_ = {.type = type, .misc = misc, .size = 0}; }
  template <class T>
  Record& field(T value) {
    for (const std::byte byte : std::as_bytes(std::span(&value, 1))) body_.push_back(byte);
    return *this;
  }
  Record& text(std::string_view text) {
    for (const char c : text) body_.push_back(static_cast<std::byte>(c));
    do body_.push_back(std::byte{});
    while (body_.size() % 8 != 0);
    return *this;
  }
  [[nodiscard]] std::vector<std::byte> bytes() {
    header_.size = static_cast<std::uint16_t>(sizeof(header_) + body_.size());
    std::vector<std::byte> all(header_.size);
    std::memcpy(all.data(), &header_, sizeof(header_));
    std::ranges::copy(body_, all.begin() + sizeof(header_));
    return all;
  }

 private:
  perf_event_header header_{};
  std::vector<std::byte> body_;
};

std::vector<std::byte> mapped(std::uint32_t pid, std::uint64_t start, const char* path, std::uint64_t time) {
  return Record(PERF_RECORD_MMAP2)
      .field(pid)
      .field(pid)
      .field(start)
      .field(std::uint64_t{0x1000})
      .field(std::uint64_t{0x2000})
      .field(std::uint32_t{8})
      .field(std::uint32_t{1})
      .field(std::uint64_t{77})
      .field(std::uint64_t{0})
      .field(std::uint32_t{5})
      .field(std::uint32_t{2})
      .text(path)
      .field(time)
      .bytes();
}

std::vector<std::byte> became(std::uint32_t pid, const char* name, std::uint64_t time) {
  return Record(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC).field(pid).field(pid).text(name).field(time).bytes();
}

std::vector<std::byte> forked(std::uint32_t pid, std::uint32_t parent, std::uint64_t time) {
  return Record(PERF_RECORD_FORK).field(pid).field(parent).field(pid).field(parent).field(time).field(time).bytes();
}

TEST(MapWatch, tells_what_a_process_had_mapped_at_a_time) {
  MapWatch watch;
  watch.add(mapped(5, 0x8000, "/usr/lib/libb.so", 30));  // processors' rings are read one after the other
  watch.add(mapped(5, 0x4000, "/usr/bin/a", 20));
  EXPECT_TRUE(watch.at(5, 19).mappings.empty());
  const MapHistory early = watch.at(5, 20);
  ASSERT_EQ(early.mappings.size(), 1U);
  EXPECT_EQ(early.mappings[0].path, "/usr/bin/a");
  EXPECT_EQ(early.mappings[0].start, ProcessAddr(0x4000));
  EXPECT_EQ(early.mappings[0].end, ProcessAddr(0x5000));
  EXPECT_EQ(early.mappings[0].offset, 0x2000U);
  EXPECT_EQ(early.mappings[0].inode, 77U);
  EXPECT_EQ(early.mappings[0].major, 8U);
  EXPECT_EQ(watch.at(5, 1000).mappings.size(), 2U);
  EXPECT_TRUE(watch.at(6, 1000).mappings.empty());
}

TEST(MapWatch, another_program_has_nothing_of_the_one_before) {
  MapWatch watch;
  watch.add(mapped(5, 0x4000, "/bin/sh", 10));
  watch.add(became(5, "ls", 20));
  watch.add(mapped(5, 0x4000, "/bin/ls", 21));
  EXPECT_EQ(watch.at(5, 15).mappings[0].path, "/bin/sh");
  EXPECT_TRUE(watch.at(5, 20).mappings.empty());
  EXPECT_EQ(watch.at(5, 25).mappings[0].path, "/bin/ls");
}

TEST(MapWatch, a_child_has_what_its_parent_had_until_it_becomes_another_program) {
  MapWatch watch;
  watch.add(forked(6, 5, 10));
  EXPECT_EQ(watch.at(6, 11).parent, 5);
  watch.add(became(6, "ls", 12));
  EXPECT_EQ(watch.at(6, 13).parent, 0);
  watch.add(forked(7, 7, 20));  // a thread
  EXPECT_EQ(watch.at(7, 21).parent, 0);
}

TEST(MapWatch, what_is_cut_off_or_unknown_is_no_record) {
  MapWatch watch;
  const auto whole = mapped(5, 0x4000, "/usr/bin/a", 20);
  for (std::size_t size = 0; size < 72; ++size) watch.add(std::span(whole).first(size));
  EXPECT_TRUE(watch.at(5, 1000).mappings.empty());
  watch.add(Record(PERF_RECORD_LOST).field(std::uint64_t{1}).bytes());
  watch.add(mapped(5, 0x4000, "//anon", 20));
  watch.add(mapped(5, 0x5000, "[vdso]", 20));
  EXPECT_LE(watch.at(5, 1000).mappings.size(), 1U);
}

TEST(MapWatch, remembers_no_more_than_it_has_room_for) {
  MapWatch watch;
  for (std::uint32_t pid = 1; pid <= 10'000; ++pid) watch.add(mapped(pid, 0x4000, "/usr/bin/a", pid));
  EXPECT_TRUE(watch.at(1, UINT64_MAX).mappings.empty()) << "the one of which nothing was heard for longest";
  EXPECT_EQ(watch.at(10'000, UINT64_MAX).mappings.size(), 1U);
  for (std::uint64_t i = 0; i < 10'000; ++i) watch.add(mapped(10'000, 0x4000, "/usr/bin/a", 10'000 + i));
  EXPECT_LE(watch.at(10'000, UINT64_MAX).mappings.size(), 4096U);
}

}  // namespace
}  // namespace usdt::stack
