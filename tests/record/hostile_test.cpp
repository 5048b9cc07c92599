// SPDX-License-Identifier: BSD-2-Clause
// Recordings that were cut, damaged, or made up by somebody.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <iterator>

#include "record/block.hpp"
#include "record/definitions.hpp"
#include "record/events.hpp"
#include "record/limits.hpp"
#include "tests/record/traces.hpp"

namespace usdt {
namespace {

using record_test::File;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The times of the events, and how it ended.
struct Read {
  std::vector<std::uint64_t> times = {};
  std::string cut = {};
  std::optional<Error> error = {};
};

Read read(const File& file) {
  Read read;
  auto recording = Recording::open(file.path());
  if (!recording) {
    read.error = recording.error();
    return read;
  }
  while (true) {
    auto event = recording->next();
    if (!event) {
      read.error = event.error();
      break;
    }
    if (*event == nullptr) break;
    read.times.push_back((*event)->timestamp());
    for (std::size_t n = 0; n < (*event)->arg_count(); ++n) {
      static_cast<void>((*event)->value(n));
      static_cast<void>((*event)->text(n));
      static_cast<void>((*event)->label(n));
    }
    static_cast<void>(recording->user_stack());
  }
  read.cut = recording->cut();
  return read;
}

/// Ten blocks of ten events, at 1, 2, 3 ...
std::string ten_blocks(const File& file) {
  const AttachPlan plan = record_test::plan_of_three_sites();
  auto writer = RecordingWriter::create(file.path(), plan, testing::layout_of(plan, 12), {});
  std::mt19937_64 random(1);
  const Result<Stack> stack = Stack{.frames = {{.function = "main"}, {.function = "start"}}};
  for (std::uint64_t time = 1; time <= 100; ++time) {
    const auto record = record_test::random_record(plan, static_cast<std::uint32_t>(time % 3), time, random);
    const auto event = Event::from(record, plan, testing::layout_of(plan, 12));
    EXPECT_TRUE(writer->event(*event, 0, {.kernel = nullptr, .user = &stack}));
    EXPECT_TRUE(time % 10 != 0 || writer->flush());
  }
  EXPECT_TRUE(writer->followed({.pid = 1, .file = "came", .time = 9, .probes = 1}));
  EXPECT_TRUE(writer->finish({.probes = {{.hits = 100}, {}}}));
  return file.bytes();
}

/// 1, 2, 3 ... as far as there are whole blocks.
void expect_beginning(const Read& read) {
  EXPECT_EQ(read.times.size() % 10, 0U);
  for (std::size_t n = 0; n < read.times.size(); ++n) ASSERT_EQ(read.times[n], n + 1);
}

TEST(HostileRecording, that_is_cut_anywhere_reads_up_to_the_last_whole_block_and_says_so) {
  const File file;
  const std::string whole = ten_blocks(file);
  std::size_t most = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    file.set(std::string_view(whole).substr(0, size));
    const Read cut = read(file);
    if (cut.error) {
      EXPECT_LT(size, 16U) << cut.error->message;
      continue;
    }
    EXPECT_THAT(cut.cut, HasSubstr("bytes")) << size;
    expect_beginning(cut);
    EXPECT_GE(cut.times.size(), most) << size;
    most = cut.times.size();
  }
  EXPECT_EQ(most, 100U);
}

TEST(HostileRecording, with_a_wrong_byte_reads_up_to_there) {
  const File file;
  const std::string whole = ten_blocks(file);
  for (std::size_t at = 16; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    file.set(damaged);
    const Read found = read(file);
    ASSERT_FALSE(found.error) << at << ": " << found.error->message;
    EXPECT_THAT(found.cut, HasSubstr("bytes")) << at;
    expect_beginning(found);
  }
}

/// The blocks of a file, unpacked.
struct Part {
  record::BlockHead head;
  std::vector<std::uint8_t> content;
};
std::vector<Part> parts_of(std::string_view whole) {
  std::vector<Part> parts;
  record::Unpacker unpacker;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(whole.data());
  for (std::size_t at = record::kFileHead; at < whole.size();) {
    const auto head =
        record::parse_block_head(std::span<const std::uint8_t, record::kBlockHead>(bytes + at, record::kBlockHead));
    const auto content = *unpacker.unpack(*head, {bytes + at + record::kBlockHead, head->stored});
    parts.push_back({*head, {content.begin(), content.end()}});
    at += record::kBlockHead + head->stored;
  }
  return parts;
}
void write_parts(const File& file, const std::vector<Part>& parts) {
  const auto head = record::file_head();
  std::string whole(head.begin(), head.end());
  record::Packer packer;
  for (const Part& part : parts) {
    const auto block = packer.pack(part.head.kind, part.content, part.head.first, part.head.last);
    whole.append(block.begin(), block.end());
  }
  file.set(whole);
}

TEST(HostileRecording, that_somebody_made_up_is_read_or_refused) {
  const File file;
  const std::vector<Part> parts = parts_of(ten_blocks(file));
  std::mt19937_64 random(7);
  std::size_t refused = 0;
  for (int n = 0; n < 4000; ++n) {
    std::vector<Part> made_up = parts;
    for (std::size_t changes = random() % 4 + 1; changes > 0; --changes) {
      Part& part = made_up[random() % made_up.size()];
      if (part.content.empty()) continue;
      std::uint8_t& byte = part.content[random() % part.content.size()];
      const std::uint8_t odd[] = {0, 1, 0x7f, 0x80, 0xff, static_cast<std::uint8_t>(random())};
      byte = odd[random() % std::size(odd)];
      if (random() % 8 == 0) part.content.resize(random() % part.content.size());
    }
    write_parts(file, made_up);
    const Read found = read(file);
    if (!found.error) continue;
    ++refused;
    EXPECT_EQ(found.error->kind, ErrorKind::malformed) << found.error->message;
  }
  EXPECT_GT(refused, 1000U);
}

/// Each is four bytes in the file, and many more in memory.
TEST(HostileRecording, of_millions_of_definitions_is_refused) {
  const File file;
  std::vector<Part> parts = parts_of(ten_blocks(file));
  Part many{.head = parts.front().head, .content = {}};
  const std::uint8_t property[] = {static_cast<std::uint8_t>(record::Tag::property), 2, 0, 0};
  for (std::uint64_t n = 0; n < record::kMostParts; ++n)
    many.content.insert(many.content.end(), std::begin(property), std::end(property));
  parts.insert(parts.begin() + 1, many);
  write_parts(file, parts);
  const Read found = read(file);
  ASSERT_TRUE(found.error);
  EXPECT_EQ(found.error->kind, ErrorKind::limit) << found.error->message;
}

/// A frame without names is ten bytes in a block, and many more in memory.
TEST(HostileRecording, whose_blocks_name_millions_of_frames_is_refused) {
  const File file;
  std::vector<Part> parts = parts_of(ten_blocks(file));
  const AttachPlan plan = record_test::plan_of_three_sites();
  std::mt19937_64 random(1);
  record::EventEncoder events(1);
  for (std::uint64_t n = 0; n <= record::kMostNamed / record::kMostFrames; ++n) {
    Result<Stack> stack = Stack{};
    for (std::uint64_t frame = 0; frame < record::kMostFrames; ++frame)
      stack->frames.push_back({.address = ProcessAddr(n * record::kMostFrames + frame + 1)});
    const auto record = record_test::random_record(plan, 0, n + 1, random);
    events.add(*Event::from(record, plan, testing::layout_of(plan, 12)), 0, {.kernel = nullptr, .user = &stack});
  }
  const auto first =
      std::ranges::find(parts, record::BlockKind::events, [](const Part& part) { return part.head.kind; });
  first->content.assign(events.bytes().begin(), events.bytes().end());
  write_parts(file, parts);
  const Read found = read(file);
  ASSERT_TRUE(found.error);
  EXPECT_EQ(found.error->kind, ErrorKind::malformed) << found.error->message;
}

TEST(HostileRecording, unpacks_to_no_more_than_its_size_allows) {
  const std::vector<std::uint8_t> zeros(16U << 20);
  record::Packer packer;
  const auto block = packer.pack(record::BlockKind::events, zeros);
  EXPECT_EQ(block.size(), record::kBlockHead + zeros.size()) << "stored as it is";
  // The same as somebody might write it: a few hundred bytes of 16 MiB, with a head that is right but for the ratio.
  std::vector<std::uint8_t> packed(ZSTD_compressBound(zeros.size()));
  packed.resize(ZSTD_compress(packed.data(), packed.size(), zeros.data(), zeros.size(), 1));
  record::BlockHead head{.kind = record::BlockKind::events,
                         .packing = record::Packing::zstd,
                         .stored = static_cast<std::uint32_t>(packed.size()),
                         .unpacked = 16U << 20};
  const auto bytes = record::block_head(head);
  EXPECT_FALSE(record::parse_block_head(bytes));
  head.unpacked = head.stored * 2;
  EXPECT_TRUE(record::parse_block_head(record::block_head(head)));
}

}  // namespace
}  // namespace usdt
