// SPDX-License-Identifier: BSD-2-Clause
// Files that lie, end early, or are no ELF files at all: a clear error or a warning each, never a crash or a hang.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <random>

#include "elf/functions.hpp"
#include "elf/symbols.hpp"
#include "image_builder.hpp"
#include "toolchain.hpp"

namespace usdt::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Hostile : public testing::Test {
 protected:
  Error error_of(std::string_view bytes) { return open_error(dir_.write("file", bytes)); }
  /// Reads all that can be read of `image`; that this returns is the test.
  ScanResult survive(const std::string& image) {
    const auto file = ElfFile::open(dir_.write("file", image), {.debug_dirs = {dir_.path()}});
    if (!file) {
      EXPECT_THAT(file.error().message, HasSubstr((dir_ / "file").string()));
      return {};
    }
    const elf::SymbolIndex symbols(*file);
    EXPECT_FALSE(symbols.address("no such symbol"));
    EXPECT_FALSE(symbols.got_slot("no such symbol"));
    (void)symbols.global_offset_table();
    (void)symbols.compilers();
    (void)elf::find_functions(*file, std::vector{elf::FunctionName("*")});
    return file->scan().value();
  }
  TempDir dir_;
};

TEST_F(Hostile, a_missing_file_is_not_found) {
  const Error error = open_error(dir_ / "absent");
  EXPECT_EQ(error.kind, ErrorKind::not_found);
  EXPECT_THAT(error.message, HasSubstr((dir_ / "absent").string()));
}
TEST_F(Hostile, a_directory_is_named_as_such) {
  const Error error = open_error(dir_.path());
  EXPECT_EQ(error.kind, ErrorKind::not_supported);
  EXPECT_THAT(error.message, HasSubstr("a directory"));
}
TEST_F(Hostile, a_fifo_does_not_block) {
  ASSERT_EQ(::mkfifo((dir_ / "fifo").c_str(), 0600), 0);
  const Error error = open_error(dir_ / "fifo");
  EXPECT_EQ(error.kind, ErrorKind::not_supported);
  EXPECT_THAT(error.message, HasSubstr("a FIFO"));
}
TEST_F(Hostile, a_socket_is_not_a_regular_file) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (dir_ / "sock").c_str(), sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(open_error(dir_ / "sock").kind, ErrorKind::not_supported);
  ::close(fd);
}
TEST_F(Hostile, a_character_device_is_named_as_such) {
  EXPECT_THAT(open_error("/dev/null").message, HasSubstr("a character device"));
}
TEST_F(Hostile, an_empty_file_is_called_empty) {
  const Error error = error_of("");
  EXPECT_EQ(error.kind, ErrorKind::malformed);
  EXPECT_THAT(error.message, HasSubstr("empty file"));
}
TEST_F(Hostile, text_is_shown_as_text) {
  EXPECT_THAT(error_of("#!/bin/sh\n").message, HasSubstr("not an ELF file or archive: begins with \"#!/b\", a script"));
}
TEST_F(Hostile, bytes_are_shown_as_bytes) {
  EXPECT_THAT(error_of("\x89PNG").message, HasSubstr("begins with 89 50 4e 47"));
}
TEST_F(Hostile, a_file_of_two_bytes_is_no_elf_file) {
  EXPECT_THAT(error_of("MZ").message, HasSubstr("begins with \"MZ\""));
}

TEST_F(Hostile, other_byte_orders_machines_and_types_are_not_supported) {
  std::string image = library_with(stapsdt_note({}));
  const auto error_with = [&](std::size_t at, char value) {
    std::string changed = image;
    changed[at] = value;
    return error_of(changed);
  };
  EXPECT_THAT(error_with(EI_DATA, ELFDATA2MSB).message, HasSubstr("big-endian"));
  EXPECT_EQ(error_with(EI_DATA, ELFDATA2MSB).kind, ErrorKind::not_supported);
  EXPECT_EQ(error_with(EI_DATA, 9).kind, ErrorKind::malformed);
  EXPECT_EQ(error_with(EI_CLASS, 7).kind, ErrorKind::malformed);
  EXPECT_THAT(error_with(offsetof(Elf64_Ehdr, e_machine), '\x15').message,
              AllOf(HasSubstr("another machine"), HasSubstr("e_machine 21")));
  EXPECT_THAT(error_with(offsetof(Elf64_Ehdr, e_type), ET_CORE).message, HasSubstr("core dump"));
  EXPECT_EQ(error_with(offsetof(Elf64_Ehdr, e_type), 0).kind, ErrorKind::not_supported);
}

TEST_F(Hostile, x32_is_not_mistaken_for_x86_64) {
  const std::string image = ImageBuilder(false, EM_X86_64).section("x", SHT_PROGBITS, 0, 0, "x").build();
  EXPECT_EQ(error_of(image).kind, ErrorKind::not_supported);
}

TEST_F(Hostile, truncation_anywhere_gives_an_error_or_a_warning) {
  const std::string image = library_with(stapsdt_note({.pc = 0x1000}) + stapsdt_note({.pc = 0x1001}));
  for (std::size_t size = 0; size < image.size(); ++size) {
    const auto file = ElfFile::open(dir_.write("file", image.substr(0, size)), {.debug_dirs = {}});
    if (!file) {
      EXPECT_THAT(file.error().message, HasSubstr((dir_ / "file").string()));
      continue;
    }
    EXPECT_FALSE(file->scan()->warnings.empty()) << "cut at " << size;
  }
}

TEST_F(Hostile, program_headers_beyond_the_file_are_an_error) {
  std::string image = library_with(stapsdt_note({}));
  edit_header(image, [](Elf64_Ehdr& h) { h.e_phoff = 0xffffffffffffff00ULL; });
  EXPECT_THAT(error_of(image).message, HasSubstr("truncated ELF file"));
  edit_header(image, [](Elf64_Ehdr& h) { h.e_phnum = 0xfffe; });
  EXPECT_EQ(error_of(image).kind, ErrorKind::limit);
}

TEST_F(Hostile, a_section_that_reaches_beyond_the_file_is_read_as_far_as_it_goes) {
  std::string image = library_with(stapsdt_note({}));
  edit_section(image, 1, [](Elf64_Shdr& s) { s.sh_size = 0xffffffffffffffffULL; });
  const ScanResult result = survive(image);
  ASSERT_EQ(result.sites.size(), 1U);
  EXPECT_THAT(result.warnings.at(0).message, HasSubstr("bytes claimed, only"));
}

TEST_F(Hostile, sections_on_the_same_notes_give_them_once) {
  std::string image = library_with(stapsdt_note({}));
  Elf64_Shdr notes{};
  edit_section(image, 1, [&](Elf64_Shdr& s) { notes = s; });
  edit_section(image, 2, [&](Elf64_Shdr& s) { s = notes; });
  const ScanResult result = survive(image);
  EXPECT_EQ(result.sites.size(), 1U);
  EXPECT_THAT(result.warnings.at(0).message, HasSubstr("were read for another section or segment already"));
}

TEST_F(Hostile, sixty_five_thousand_sections_are_counted_by_section_zero) {
  constexpr std::size_t kSections = 70000;
  std::string image = library_with(stapsdt_note({}));
  Elf64_Shdr empty{};
  edit_section(image, 0, [&](Elf64_Shdr& s) {
    s.sh_size = kSections;
    s.sh_link = 3;
  });
  edit_header(image, [](Elf64_Ehdr& h) {
    h.e_shnum = 0;
    h.e_shstrndx = SHN_XINDEX;
  });
  for (std::size_t i = 4; i < kSections; ++i) image.append(reinterpret_cast<const char*>(&empty), sizeof empty);
  const ScanResult result = survive(image);
  EXPECT_EQ(result.sites.size(), 1U);
  EXPECT_TRUE(result.warnings.empty());
}

TEST_F(Hostile, absurd_counts_in_a_sparse_file_cost_no_memory) {
  std::string image = library_with(stapsdt_note({}));
  edit_section(image, 0, [](Elf64_Shdr& s) { s.sh_size = 0x0fffffffffffffffULL; });
  edit_section(image, 1, [](Elf64_Shdr& s) { s.sh_size = 1ULL << 40; });
  edit_header(image, [](Elf64_Ehdr& h) { h.e_shnum = 0; });
  const auto path = dir_.write("file", image);
  ASSERT_EQ(::truncate(path.c_str(), off_t{1} << 40), 0);
  const ScanResult result = scan_file(path, {.debug_dirs = {}});
  EXPECT_EQ(result.sites.size(), 1U);
  EXPECT_FALSE(result.warnings.empty());
}

TEST_F(Hostile, a_file_that_shrinks_while_open_ends_early) {
  const auto path = dir_.write("file", library_with(stapsdt_note({})));
  const auto file = ElfFile::open(path, {.debug_dirs = {}});
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->unchanged());
  ASSERT_EQ(::truncate(path.c_str(), 10), 0);
  EXPECT_FALSE(file->unchanged());
  const auto result = file->scan();
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->sites.empty());
  EXPECT_FALSE(result->warnings.empty());
}

TEST_F(Hostile, random_damage_is_survived) {
  const std::string sound = library_with(stapsdt_note({.pc = 0x1000, .semaphore = 0x3000}) + stapsdt_note({}));
  std::mt19937 random(1);  // the same damage in every run
  std::size_t opened = 0;
  for (int round = 0; round < 1000; ++round) {
    std::string image = sound;
    for (int i = 0; i < 4; ++i) image[EI_NIDENT + random() % (image.size() - EI_NIDENT)] = static_cast<char>(random());
    opened += survive(image).sites.empty() ? 0U : 1U;
  }
  EXPECT_GT(opened, 50U) << "the damage must leave something to read";
}

}  // namespace
}  // namespace usdt::test
