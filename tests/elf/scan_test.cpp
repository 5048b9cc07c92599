// SPDX-License-Identifier: BSD-2-Clause
// Where notes are found, and where their addresses lead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "image_builder.hpp"
#include "toolchain.hpp"

namespace usdt::test {
namespace {

using testing::HasSubstr;

ScanResult scan_image(const std::string& image) {
  const TempDir dir;
  return scan_file(dir.write("lib.so", image), {.debug_dirs = {}});
}

/// The one site of a library whose only note is `probe`.
Site site_of(const Probe& probe) {
  const ScanResult result = scan_image(library_with(stapsdt_note(probe)));
  EXPECT_EQ(result.sites.size(), 1U);
  return result.sites.empty() ? Site{} : result.sites.front();
}

TEST(Place, of_a_site_is_its_byte_in_the_executable_segment) {
  const std::string image = library_with(stapsdt_note({.pc = 0x1005}));
  const Site site = scan_image(image).sites.at(0);
  EXPECT_EQ(site.pc_adjusted, site.pc);
  EXPECT_EQ(site.offset, FileOffset(sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr) + 5));
  EXPECT_EQ(site.bytes.size, 11U) << "up to the end of the segment, not beyond it";
  EXPECT_EQ(site.site_class, SiteClass::nop);
}

TEST(Place, is_absent_outside_of_executable_segments) {
  for (const std::uint64_t pc : {0x0ULL, 0xfffULL, 0x1010ULL, 0x3000ULL, 0xffffffffffffffffULL}) {
    const Site site = site_of({.pc = pc});
    EXPECT_FALSE(site.offset) << std::hex << pc;
    EXPECT_EQ(site.bytes.size, 0U);
    EXPECT_EQ(site.site_class, SiteClass::unknown);
  }
}

TEST(Place, is_absent_where_the_segment_lies_beyond_the_file) {
  std::string image = library_with(stapsdt_note({.pc = 0x1005}));
  edit_segment(image, 0, [](Elf64_Phdr& p) { p.p_offset = 0xfffffffffffffffcULL; });
  EXPECT_FALSE(scan_image(image).sites.at(0).offset);
  edit_segment(image, 0, [&](Elf64_Phdr& p) { p.p_offset = image.size() - 5; });
  EXPECT_FALSE(scan_image(image).sites.at(0).offset);
}

TEST(Place, of_a_semaphore_is_its_counter_in_the_writable_segment) {
  const std::uint64_t data = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr) + 16;
  EXPECT_EQ(site_of({.pc = 0x1000, .semaphore = 0x3006}).semaphore_offset, FileOffset(data + 6));
  EXPECT_FALSE(site_of({.pc = 0x1000, .semaphore = 0x3007}).semaphore_offset) << "its second byte is outside";
  EXPECT_FALSE(site_of({.pc = 0x1000, .semaphore = 0x1000}).semaphore_offset) << "not writable";
  EXPECT_TRUE(site_of({.pc = 0x1000, .semaphore = 0x1000}).has_semaphore);
  EXPECT_FALSE(site_of({.pc = 0x1000}).has_semaphore);
  EXPECT_FALSE(site_of({.pc = 0x1000}).semaphore_offset);
}

TEST(Place, of_a_semaphore_in_bss_is_known_while_the_page_is_mapped_from_the_file) {
  const auto with_bss = [](std::uint64_t semaphore) {
    return scan_image(ImageBuilder()
                          .segment(PT_LOAD, PF_R | PF_W, 0x3000, std::string(8, '\0'), 0x2000)
                          .section(".note.stapsdt", SHT_NOTE, 0, 0, stapsdt_note({.semaphore = semaphore}))
                          .build())
        .sites.at(0)
        .semaphore_offset;
  };
  EXPECT_EQ(with_bss(0x3008), FileOffset(sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr) + 8));
  EXPECT_TRUE(with_bss(0x3ffe));
  EXPECT_FALSE(with_bss(0x3fff)) << "straddles the page's end";
  EXPECT_FALSE(with_bss(0x4000)) << "anonymous memory";
}

TEST(Prelink, moves_site_and_semaphore_by_the_distance_of_the_base) {
  const Site site = site_of({.pc = 0x805, .base = 0x1800, .semaphore = 0x2802});
  EXPECT_EQ(site.pc, VirtAddr(0x805));
  EXPECT_EQ(site.pc_adjusted, VirtAddr(0x1005));
  EXPECT_EQ(site.semaphore_adjusted, VirtAddr(0x3002));
  EXPECT_TRUE(site.offset);
  EXPECT_TRUE(site.semaphore_offset);
}

TEST(Prelink, moves_nothing_without_a_base_in_the_note) {
  EXPECT_EQ(site_of({.pc = 0x1005, .base = 0}).pc_adjusted, VirtAddr(0x1005));
}

TEST(Prelink, never_makes_a_semaphore_of_none) {
  const Site site = site_of({.pc = 0x805, .base = 0x1800});
  EXPECT_FALSE(site.has_semaphore);
  EXPECT_EQ(site.semaphore_adjusted, VirtAddr(0));
}

TEST(Prelink, wraps_at_32_bits_in_32_bit_files) {
  const std::string image =
      ImageBuilder(false, EM_386)
          .segment(PT_LOAD, PF_R | PF_X, 0x1000, std::string(16, '\x90'))
          .section(".note.stapsdt", SHT_NOTE, 0, 0, stapsdt_note({.pc = 0xfffff001, .base = 0xfffff000}, false))
          .section(".stapsdt.base", SHT_PROGBITS, SHF_ALLOC, 0x1000, std::string(1, '\0'))
          .build();
  EXPECT_EQ(scan_image(image).sites.at(0).pc_adjusted, VirtAddr(0x1001));
}

TEST(Notes, are_found_in_every_section_of_that_name) {
  const std::string image = ImageBuilder()
                                .section(".note.stapsdt", SHT_NOTE, 0, 0, stapsdt_note({.name = "a"}))
                                .section(".text", SHT_PROGBITS, SHF_ALLOC, 0, "code")
                                .section(".note.stapsdt", SHT_NOTE, 0, 0, stapsdt_note({.name = "b"}))
                                .section(".note.stapsdt", SHT_PROGBITS, 0, 0, stapsdt_note({.name = "c"}))
                                .build();
  const ScanResult result = scan_image(image);
  ASSERT_EQ(result.sites.size(), 3U);
  EXPECT_EQ(result.sites[0].name + result.sites[1].name + result.sites[2].name, "abc");
}

TEST(Notes, are_found_in_a_segment_when_section_headers_are_stripped) {
  const std::string image =
      ImageBuilder()
          .segment(PT_LOAD, PF_R | PF_X, 0x1000, std::string(16, '\x90'))
          .segment(PT_NOTE, PF_R, 0, note(std::string_view("GNU\0", 4), 1, "abi ") + stapsdt_note({.pc = 0x1000}))
          .build();
  const ScanResult result = scan_image(image);
  ASSERT_EQ(result.sites.size(), 1U);
  EXPECT_TRUE(result.sites[0].offset);
  EXPECT_TRUE(result.warnings.empty()) << "a GNU note in a segment is nothing odd";
}

TEST(Notes, are_found_in_a_segment_when_section_headers_lie) {
  const auto with = [](auto&& lie) {
    std::string image = ImageBuilder()
                            .segment(PT_NOTE, PF_R, 0, stapsdt_note({}))
                            .section(".note.stapsdt", SHT_NOTE, 0, 0, stapsdt_note({}))
                            .build();
    lie(image);
    return scan_image(image);
  };
  const auto shoff = [](std::string& i) { edit_header(i, [](Elf64_Ehdr& h) { h.e_shoff = 0xfffffffffffffff0ULL; }); };
  const auto entry = [](std::string& i) { edit_header(i, [](Elf64_Ehdr& h) { h.e_shentsize = 63; }); };
  const auto range = [](std::string& i) { edit_section(i, 1, [](Elf64_Shdr& s) { s.sh_offset = 1ULL << 63; }); };
  for (const ScanResult& result : {with(shoff), with(entry), with(range)}) {
    EXPECT_EQ(result.sites.size(), 1U);
    EXPECT_FALSE(result.warnings.empty()) << "that the headers lie is worth a word";
  }
}

TEST(Notes, are_found_without_section_names) {
  std::string image = library_with(stapsdt_note({}));
  edit_header(image, [](Elf64_Ehdr& h) { h.e_shstrndx = 0; });
  EXPECT_EQ(scan_image(image).sites.size(), 1U);
  edit_header(image, [](Elf64_Ehdr& h) { h.e_shstrndx = 77; });
  const ScanResult result = scan_image(image);
  EXPECT_EQ(result.sites.size(), 1U);
  EXPECT_THAT(result.warnings.at(0).message, HasSubstr("names are not known"));
}

TEST(DebugFile, listed_itself_has_sites_without_offsets) {
  const std::string image = ImageBuilder()
                                .segment(PT_LOAD, PF_R | PF_X, 0x1000, "", 0x1000)
                                .section(".note.stapsdt", SHT_NOTE, 0, 0, stapsdt_note({.pc = 0x1005}))
                                .section(".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, "")
                                .build();
  const TempDir dir;
  const auto path = dir.write("x.debug", image);
  EXPECT_EQ(ElfFile::open(path)->kind(), ElfKind::debug);
  const ScanResult result = scan_file(path);
  ASSERT_EQ(result.sites.size(), 1U);
  EXPECT_FALSE(result.sites[0].offset);
}

}  // namespace
}  // namespace usdt::test
