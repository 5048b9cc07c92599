// SPDX-License-Identifier: BSD-2-Clause
// Symbolic operands of real binaries: the encoded location is the one readelf's symbol table gives, and an operand is
// readable exactly where that table has one answer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "elf/toolchain.hpp"
#include "resolve/encode.hpp"
#include "tests/places.hpp"
#include "usdt/decode.hpp"

namespace usdt {
namespace {

namespace fs = std::filesystem;

/// An argument, and what BPF programs read of it.
struct Resolved {
  Arg arg;
  usdt_arg_spec encoded;
};

/// Name -> addresses, as `readelf -sW` prints the file's symbols. Thread-local, undefined and indirect ones count as
/// having no address.
class ReadelfSymbols {
 public:
  explicit ReadelfSymbols(const test::TempDir& dir, const fs::path& file) {
    std::istringstream out(test::run_in(dir, fmt::format("readelf -sW '{}'", file.string())).output);
    for (std::string line; std::getline(out, line);) {
      std::istringstream fields(line);
      std::string number, value, size, type, binding, visibility, section, name;
      fields >> number >> value >> size >> type >> binding >> visibility >> section >> name;
      const bool located = type == "OBJECT" || type == "FUNC" || type == "NOTYPE";
      if (name.empty() || !located || section == "UND" || section == "ABS") continue;
      addresses_[name.substr(0, name.find('@'))].insert(std::stoull(value, nullptr, 16));
    }
  }
  [[nodiscard]] std::optional<std::uint64_t> only(const std::string& name) const {
    const auto found = addresses_.find(name);
    if (found == addresses_.end() || found->second.size() != 1) return std::nullopt;
    return *found->second.begin();
  }

 private:
  std::map<std::string, std::set<std::uint64_t>> addresses_;
};

std::optional<std::uint64_t> section_address(const test::TempDir& dir, const fs::path& file, const std::string& name) {
  const auto out = test::run_in(
      dir, fmt::format("readelf -SW '{}' | sed 's/\\[ */[/' | awk '$2 == \"{}\" {{print $4}}'", file.string(), name));
  if (out.output.size() < 2) return std::nullopt;
  return std::stoull(out.output, nullptr, 16);
}

class BinaryCorpus : public testing::Test {
 protected:
  void SetUp() override {
    const fs::path archive = test::corpus_dir() / "bin-dev.tar.xz";
    if (!fs::exists(archive)) GTEST_SKIP() << "no corpus at " << archive << " (set USDT_CORPUS)";
    const auto unpacked = test::run_in(dir_, "tar xf " + archive.string());
    ASSERT_EQ(unpacked.status, 0) << unpacked.output;
  }

  /// Calls `check` with each argument of each linked file that has a symbol.
  template <class Check>
  void for_each_symbolic(Machine machine, Check check) const {
    for (const auto& entry : fs::recursive_directory_iterator(dir_.path())) {
      if (!entry.is_regular_file() || entry.is_symlink()) continue;
      const auto file = ElfFile::open(entry.path(), {.debug_dirs = {}});
      if (!file || file->machine() != machine) continue;
      if (file->kind() != ElfKind::dynamic && file->kind() != ElfKind::executable) continue;
      const auto scanned = file->scan();
      ASSERT_TRUE(scanned) << scanned.error().message;
      check_file(entry.path(), *file, *scanned, check);
    }
  }

  template <class Check>
  void check_file(const fs::path& path, const ElfFile& file, const ScanResult& scanned, Check check) const {
    const ArgDecoder decoder(file);
    std::optional<ReadelfSymbols> symbols;
    for (const Site& site : scanned.sites) {
      const std::vector<ParsedArg> parsed = decoder.parse(site.args_text);
      const std::vector<Arg> args = decoder.decode(parsed);
      for (std::size_t i = 0; i < args.size(); ++i) {
        const auto* mem = std::get_if<MemOperand>(&parsed[i].operand);
        if (mem == nullptr || !mem->symbol) continue;
        if (!symbols) symbols.emplace(dir_, path);
        SCOPED_TRACE(path.filename().string() + " " + site.provider + ":" + site.name + " " + args[i].source);
        const Resolved each{args[i], resolve::encode(args[i], arch::for_machine(decoder.machine()),
                                                     {.site = site.pc_adjusted, .breakpoint = site.pc_adjusted})};
        check(path, site, *mem, each, *symbols);
      }
    }
  }

  test::TempDir dir_;
};

TEST_F(BinaryCorpus, rip_relative_operands_of_x86_64_are_where_readelf_says) {
  int readable = 0;
  for_each_symbolic(Machine::x86_64, [&](const fs::path&, const Site& site, const MemOperand& mem,
                                         const Resolved& resolved, const ReadelfSymbols& symbols) {
    const auto address = symbols.only(mem.symbol->name);
    ASSERT_EQ(resolved.arg.readable(), address.has_value()) << resolved.arg.why_unreadable();
    if (!address) return;
    ++readable;
    EXPECT_EQ(resolved.encoded.kind, USDT_ARG_MEM);
    EXPECT_EQ(resolved.encoded.flags & USDT_ARG_IP, USDT_ARG_IP);
    EXPECT_EQ(resolved.encoded.reg, USDT_REG_NONE);
    EXPECT_EQ(resolved.encoded.value + site.pc.value, *address + static_cast<std::uint64_t>(mem.disp));
  });
  EXPECT_GT(readable, 0);
}

TEST_F(BinaryCorpus, got_relative_operands_of_i386_are_where_readelf_says) {
  int readable = 0;
  for_each_symbolic(Machine::i386, [&](const fs::path& path, const Site&, const MemOperand& mem,
                                       const Resolved& resolved, const ReadelfSymbols& symbols) {
    ASSERT_EQ(mem.symbol->reloc, "GOTOFF");
    const auto address = symbols.only(mem.symbol->name);
    ASSERT_EQ(resolved.arg.readable(), address.has_value()) << resolved.arg.why_unreadable();
    if (!address) return;
    ++readable;
    auto got = symbols.only("_GLOBAL_OFFSET_TABLE_");
    if (!got) got = section_address(dir_, path, ".got.plt");
    if (!got) got = section_address(dir_, path, ".got");
    ASSERT_TRUE(got);
    EXPECT_EQ(resolved.encoded.flags & (USDT_ARG_IP | USDT_ARG_ADDR32), USDT_ARG_ADDR32);
    EXPECT_EQ(resolved.encoded.value, *address + static_cast<std::uint64_t>(mem.disp) - *got);
  });
  EXPECT_GT(readable, 0);
}

TEST_F(BinaryCorpus, local_labels_of_arm64_are_unreadable_because_no_table_holds_them) {
  int seen = 0;
  for_each_symbolic(Machine::aarch64, [&](const fs::path&, const Site&, const MemOperand& mem, const Resolved& resolved,
                                          const ReadelfSymbols& symbols) {
    ++seen;
    EXPECT_EQ(mem.symbol->reloc, "lo12");
    EXPECT_EQ(symbols.only(mem.symbol->name), std::nullopt);
    EXPECT_FALSE(resolved.arg.readable());
    EXPECT_EQ(resolved.encoded.kind, USDT_ARG_UNREADABLE);
  });
  EXPECT_GT(seen, 0);
}

}  // namespace
}  // namespace usdt
