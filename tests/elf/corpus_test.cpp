// SPDX-License-Identifier: BSD-2-Clause
// Every note of the development corpus: 3 machines, 93 files of Debian packages, compared word by word.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "tests/places.hpp"
#include "toolchain.hpp"

namespace usdt::test {
namespace {

namespace fs = std::filesystem;

using Row = std::vector<std::string>;

std::vector<Row> read_table(const fs::path& path) {
  std::vector<Row> rows;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) continue;
    Row row;
    std::size_t from = 0;
    for (std::size_t tab; (tab = line.find('\t', from)) != std::string::npos; from = tab + 1) {
      row.push_back(line.substr(from, tab - from));
    }
    row.push_back(line.substr(from));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string hex(std::uint64_t value) { return fmt::format("{:#x}", value); }
std::string hex(const std::optional<FileOffset>& offset) { return offset ? hex(offset->value) : "-"; }

/// A site as a row of probes-dev.tsv states it.
std::string line_of(const Site& site, const std::string& file) {
  const std::string name = site.member.empty() ? file : fmt::format("{}({})", file, site.member);
  return fmt::format("{} {}:{} pc {} base {} sema {} args '{}' pc_adj {} pc_off {} sema_off {} has_sema {}", name,
                     site.provider, site.name, hex(site.pc.value), hex(site.base.value), hex(site.semaphore.value),
                     site.args_text, hex(site.pc_adjusted.value), hex(site.offset), hex(site.semaphore_offset),
                     site.has_semaphore);
}

std::string line_of(const Row& r) {
  const bool has_semaphore = r[6] != "0x0" || r[17] != "-";
  return fmt::format("{} {}:{} pc {} base {} sema {} args '{}' pc_adj {} pc_off {} sema_off {} has_sema {}", r[1], r[2],
                     r[3], r[4], r[5], r[6], r[7], r[13], r[14], r[16], has_semaphore);
}

ElfKind kind_named(const std::string& name) {
  if (name == "REL") return ElfKind::archive;
  if (name == "DEBUG-DYN") return ElfKind::debug;
  return name.find("EXEC") != std::string::npos ? ElfKind::executable : ElfKind::dynamic;
}

class Corpus : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(corpus_dir() / "probes-dev.tsv"))
      GTEST_SKIP() << "no corpus at " << corpus_dir() << " (USDT_CORPUS)";
    const auto unpacked = run_in(dir_, "tar xf " + fs::absolute(corpus_dir() / "bin-dev.tar.xz").string());
    ASSERT_EQ(unpacked.status, 0) << unpacked.output;
  }

  /// "ARCH/PACKAGE/PATH" -> its rows in file order, of the files the tarball holds. Where two versions of a package
  /// have the same path the tarball keeps one of them; the size tells which.
  std::map<std::string, std::vector<Row>> rows_by_file() const {
    std::map<std::string, std::string> version_of;
    for (const Row& file : read_table(corpus_dir() / "files-dev.tsv")) {
      const std::string path = fmt::format("{}/{}/{}", file[0], file[1], file[4]);
      std::error_code absent;
      if (std::to_string(fs::file_size(dir_ / ("dev/" + path), absent)) == file[8]) version_of[path] = file[2];
    }
    std::map<std::string, std::vector<Row>> files;
    for (Row& row : read_table(corpus_dir() / "probes-dev.tsv")) {
      const std::string path = fmt::format("{}/{}/{}", row[0], row[8], row[11]);
      if (version_of.contains(path) && version_of[path] == row[9]) files[path].push_back(std::move(row));
    }
    return files;
  }

  TempDir dir_;
};

TEST_F(Corpus, every_note_of_every_file_comes_out_equal_and_in_order) {
  const auto files = rows_by_file();
  ASSERT_GT(files.size(), 80U);
  std::size_t notes = 0;
  for (const auto& [path, rows] : files) {
    SCOPED_TRACE(path);
    const ScanResult scan = scan_file(dir_ / ("dev/" + path), {.debug_dirs = {}});
    EXPECT_TRUE(scan.warnings.empty()) << scan.warnings.front().message;
    ASSERT_EQ(scan.sites.size(), rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(line_of(scan.sites[i], fs::path(path).filename()), line_of(rows[i]));
    }
    notes += rows.size();
  }
  RecordProperty("notes", static_cast<int>(notes));
}

TEST_F(Corpus, every_file_is_of_the_kind_the_table_says) {
  for (const auto& [path, rows] : rows_by_file()) {
    const auto file = ElfFile::open(dir_ / ("dev/" + path));
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->kind(), kind_named(rows.front()[12])) << path;
    const std::string arch = path.substr(0, path.find('/'));
    EXPECT_EQ(file->machine(), arch == "amd64" ? Machine::x86_64 : arch == "arm64" ? Machine::aarch64 : Machine::i386);
  }
}

TEST_F(Corpus, every_site_with_an_offset_is_a_nop) {
  std::size_t sites = 0;
  for (const auto& [path, rows] : rows_by_file()) {
    for (const Site& site : scan_file(dir_ / ("dev/" + path)).sites) {
      if (!site.offset) continue;
      EXPECT_EQ(site.site_class, SiteClass::nop)
          << path << " " << site.provider << ":" << site.name << " at " << hex(site.pc.value);
      EXPECT_GT(site.bytes.size, 0U);
      ++sites;
    }
  }
  EXPECT_GT(sites, 5000U);
}

}  // namespace
}  // namespace usdt::test
