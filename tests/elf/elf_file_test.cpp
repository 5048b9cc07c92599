// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/elf_file.hpp"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "image_builder.hpp"
#include "toolchain.hpp"

namespace usdt::test {
namespace {

class OpenFile : public testing::Test {
 protected:
  ElfFile open(std::string_view bytes) {
    auto file = ElfFile::open(dir_.write("file", bytes));
    if (!file) throw std::runtime_error(file.error().message);
    return std::move(*file);
  }
  TempDir dir_;
};

TEST_F(OpenFile, knows_its_path_machine_and_kind) {
  const auto kind = [&](std::uint16_t machine, bool is64, std::uint16_t type) {
    const ElfFile file = open(ImageBuilder(is64, machine, type)
                                  .section(".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, "code")
                                  .build());
    EXPECT_EQ(file.path(), dir_ / "file");
    return std::pair(file.machine(), file.kind());
  };
  EXPECT_EQ(kind(EM_X86_64, true, ET_EXEC), std::pair(Machine::x86_64, ElfKind::executable));
  EXPECT_EQ(kind(EM_386, false, ET_DYN), std::pair(Machine::i386, ElfKind::dynamic));
  EXPECT_EQ(kind(EM_AARCH64, true, ET_REL), std::pair(Machine::aarch64, ElfKind::relocatable));
}

TEST_F(OpenFile, is_of_one_abi_of_riscv64) {
  const auto opened = [&](std::uint32_t flags) {
    std::string bytes = ImageBuilder(true, EM_RISCV).build();
    std::memcpy(bytes.data() + offsetof(Elf64_Ehdr, e_flags), &flags, sizeof(flags));
    return ElfFile::open(dir_.write("file", bytes));
  };
  constexpr std::uint32_t lp64d = EF_RISCV_FLOAT_ABI_DOUBLE;
  for (const std::uint32_t flags : {lp64d, lp64d | EF_RISCV_RVC, lp64d | EF_RISCV_RVC | EF_RISCV_TSO})
    EXPECT_EQ(opened(flags)->machine(), Machine::riscv64) << flags;
  for (const std::uint32_t flags :
       {0U, EF_RISCV_FLOAT_ABI_SINGLE | 0U, EF_RISCV_FLOAT_ABI_QUAD | 0U, lp64d | EF_RISCV_RVE})
    EXPECT_THAT(opened(flags).error().message, testing::HasSubstr("another ABI than the one that is read")) << flags;
}

TEST_F(OpenFile, keeps_reading_its_inode_when_the_path_is_replaced) {
  const ElfFile file = open(library_with(stapsdt_note({.name = "old"})));
  std::filesystem::rename(dir_.write("new", library_with(stapsdt_note({.name = "new"}))), dir_ / "file");
  EXPECT_EQ(file.scan()->sites.at(0).name, "old");
  EXPECT_EQ(scan_file(dir_ / "file").sites.at(0).name, "new");
}

TEST_F(OpenFile, notices_a_write_in_place) {
  const ElfFile file = open(library_with(stapsdt_note({})));
  EXPECT_TRUE(file.unchanged());
  dir_.write("file", "something else");
  EXPECT_FALSE(file.unchanged());
}

TEST_F(OpenFile, is_not_changed_by_what_takes_its_name) {
  const ElfFile replaced = open(library_with(stapsdt_note({.name = "old"})));
  std::filesystem::rename(dir_.write("new", library_with(stapsdt_note({.name = "new"}))), dir_ / "file");
  EXPECT_TRUE(replaced.unchanged());
  const ElfFile removed = open(library_with(stapsdt_note({})));
  std::filesystem::remove(dir_ / "file");
  EXPECT_TRUE(removed.unchanged());
}

TEST_F(OpenFile, notices_a_write_before_it_lost_its_name) {
  const ElfFile file = open(library_with(stapsdt_note({})));
  std::filesystem::create_hard_link(dir_ / "file", dir_ / "link");
  dir_.write("link", "something else");
  std::filesystem::remove(dir_ / "file");
  EXPECT_FALSE(file.unchanged());
}

TEST_F(OpenFile, is_not_written_by_other_names_and_permissions) {
  const ElfFile file = open(library_with(stapsdt_note({})));
  std::filesystem::create_hard_link(dir_ / "file", dir_ / "link");
  EXPECT_TRUE(file.is_unwritten());
  EXPECT_FALSE(file.unchanged());
  std::filesystem::permissions(dir_ / "file", std::filesystem::perms::owner_read);
  EXPECT_TRUE(file.is_unwritten());
  std::filesystem::permissions(dir_ / "file", std::filesystem::perms::owner_all);
  dir_.write("link", "something else");
  EXPECT_FALSE(file.is_unwritten());
}

TEST_F(OpenFile, closes_its_descriptor_with_it) {
  int fd = -1;
  {
    const ElfFile file = open(library_with(""));
    fd = file.fd();
    EXPECT_EQ(::lseek(fd, 0, SEEK_CUR), 0) << "open, and its position was never used";
  }
  EXPECT_EQ(::lseek(fd, 0, SEEK_CUR), -1);
}

TEST_F(OpenFile, can_be_moved) {
  ElfFile first = open(library_with(stapsdt_note({.name = "a"})));
  ElfFile second = std::move(first);
  EXPECT_EQ(second.scan()->sites.size(), 1U);
}

TEST_F(OpenFile, tells_its_build_id_from_section_or_segment) {
  const std::string id = note(std::string_view("GNU\0", 4), NT_GNU_BUILD_ID, "\x01\xab\xff");
  EXPECT_EQ(open(ImageBuilder().section(".note.gnu.build-id", SHT_NOTE, 0, 0, id).build()).build_id(), "01abff");
  EXPECT_EQ(open(ImageBuilder().segment(PT_NOTE, PF_R, 0, id).build()).build_id(), "01abff");
  EXPECT_EQ(open(library_with("")).build_id(), "");
}

TEST_F(OpenFile, without_probes_is_no_error) {
  const ElfFile file = open(ImageBuilder().section(".text", SHT_PROGBITS, 0, 0, "code").build());
  const auto result = file.scan();
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->sites.empty());
  EXPECT_TRUE(result->warnings.empty());
}

TEST(SiteClassNames, are_those_of_the_json_contract) {
  EXPECT_EQ(to_string(SiteClass::nop), "nop");
  EXPECT_EQ(to_string(SiteClass::nop_nop5), "nop,nop5");
  EXPECT_EQ(to_string(SiteClass::nop_nop10), "nop,nop10");
  EXPECT_EQ(to_string(SiteClass::single_step), "single-step");
}

}  // namespace
}  // namespace usdt::test
