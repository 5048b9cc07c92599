// SPDX-License-Identifier: BSD-2-Clause
// libelf as the outside judge: it reads the same tables of the same files by its own code. The scanner does not use it,
// because it must survive files that libelf trusts (sdk/src/elf/image.hpp has the measurements).
#include <fcntl.h>
#include <gelf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "elf/symbols.hpp"
#include "usdt/elf_file.hpp"

namespace usdt {
namespace {

/// A file as libelf opens it.
class Judge {
 public:
  explicit Judge(const std::filesystem::path& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    elf_version(EV_CURRENT);
    elf_ = elf_begin(fd_, ELF_C_READ, nullptr);
  }
  ~Judge() {
    elf_end(elf_);
    ::close(fd_);
  }
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  struct Note {
    std::uint64_t pc, base, semaphore;
    std::string provider, name, args;
    friend bool operator==(const Note&, const Note&) = default;
  };

  std::vector<Note> notes() const {
    std::vector<Note> all;
    each_section(SHT_NOTE, [&](Elf_Scn* section, const GElf_Shdr& header) {
      std::size_t index = 0;
      elf_getshdrstrndx(elf_, &index);
      if (std::string_view(elf_strptr(elf_, index, header.sh_name)) != ".note.stapsdt") return;
      Elf_Data* data = elf_getdata(section, nullptr);
      GElf_Nhdr note;
      std::size_t name = 0, desc = 0;
      for (std::size_t at = 0; (at = gelf_getnote(data, at, &note, &name, &desc)) > 0;)
        all.push_back(decode(static_cast<const char*>(data->d_buf) + desc));
    });
    return all;
  }

  /// Defined functions and objects with every address they have.
  std::map<std::string, std::set<std::uint64_t>> symbols() const {
    std::map<std::string, std::set<std::uint64_t>> all;
    for (const GElf_Word type : {SHT_SYMTAB, SHT_DYNSYM}) {
      each_section(type, [&](Elf_Scn* section, const GElf_Shdr& header) {
        Elf_Data* data = elf_getdata(section, nullptr);
        for (std::size_t i = 0; i < header.sh_size / header.sh_entsize; ++i) {
          GElf_Sym symbol;
          gelf_getsym(data, static_cast<int>(i), &symbol);
          const auto kind = GELF_ST_TYPE(symbol.st_info);
          if (symbol.st_shndx == SHN_UNDEF || (kind != STT_FUNC && kind != STT_OBJECT)) continue;
          const std::string name = elf_strptr(elf_, header.sh_link, symbol.st_name);
          all[name.substr(0, name.find('@'))].insert(symbol.st_value);
        }
      });
    }
    return all;
  }

 private:
  template <class Visit>
  void each_section(GElf_Word type, Visit visit) const {
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf_, section)) != nullptr;) {
      GElf_Shdr header;
      if (gelf_getshdr(section, &header) != nullptr && header.sh_type == type) visit(section, header);
    }
  }

  Note decode(const char* desc) const {
    const std::size_t word = gelf_getclass(elf_) == ELFCLASS64 ? 8 : 4;
    std::uint64_t words[3] = {};
    for (std::size_t i = 0; i < 3; ++i) std::memcpy(&words[i], desc + i * word, word);
    const std::string provider = desc + 3 * word;
    const std::string name = desc + 3 * word + provider.size() + 1;
    return {words[0], words[1], words[2], provider, name, desc + 3 * word + provider.size() + name.size() + 2};
  }

  int fd_;
  Elf* elf_;
};

/// Files of this machine that are likely to have probes, and this program itself.
std::vector<std::filesystem::path> candidates() {
  std::vector<std::filesystem::path> all{"/proc/self/exe"};
  for (const char* path : {"/usr/bin/python3.11", "/usr/bin/php8.2", "/usr/lib/postgresql/15/bin/postgres",
                           "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib/aarch64-linux-gnu/libstdc++.so.6"})
    if (std::filesystem::exists(path)) all.emplace_back(path);
  return all;
}

TEST(Libelf, reads_the_same_notes_from_installed_programs) {
  std::size_t compared = 0;
  for (const auto& path : candidates()) {
    const auto file = ElfFile::open(path);
    ASSERT_TRUE(file) << file.error().message;
    const auto scan = file->scan();
    ASSERT_TRUE(scan) << scan.error().message;
    std::vector<Judge::Note> ours;
    for (const Site& site : scan->sites)
      ours.push_back({site.pc.value, site.base.value, site.semaphore.value, site.provider, site.name, site.args_text});
    EXPECT_EQ(ours, Judge(path).notes()) << path;
    compared += ours.size();
  }
  if (compared == 0) GTEST_SKIP() << "no installed program with probes: ./run setup test installs some";
}

TEST(Libelf, gives_every_symbol_the_same_address_or_more_than_one) {
  for (const auto& path : candidates()) {
    const auto file = ElfFile::open(path);
    ASSERT_TRUE(file) << file.error().message;
    const elf::SymbolIndex index(*file);
    std::size_t single = 0, answered = 0;
    for (const auto& [name, addresses] : Judge(path).symbols()) {
      const auto address = index.address(name);
      single += addresses.size() == 1;
      answered += address.has_value();
      if (addresses.size() == 1 && address) {
        EXPECT_EQ(address->value, *addresses.begin()) << path << ' ' << name;
      } else {
        // Ambiguous, or also a symbol of a kind that has no address (absolute, thread-local): never a guess.
        EXPECT_FALSE(address) << path << ' ' << name << " has " << addresses.size() << " addresses";
      }
    }
    EXPECT_GE(10 * answered, 9 * single) << path;
  }
}

}  // namespace
}  // namespace usdt
