// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/split_units.hpp"

#include <dwarf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <unordered_set>
#include <vector>

#include "dwarf/die.hpp"
#include "dwarf/impl.hpp"
#include "dwarf/package.hpp"
#include "sys/regular_file.hpp"

namespace usdt::dwarf {
namespace {

/// What may be made of the units of a package, besides Budget's bytes for each of its own: they have types in common.
constexpr std::uint64_t made_at_first = 64U << 20;
/// Bytes of abbreviations that are read for the skeletons, besides those for each byte of .debug_info.
constexpr std::uint64_t work_at_first = 1U << 20;
/// Behind sections of our own, as FileBytes has them.
constexpr std::size_t zeros_behind = 64;

/// The section called `name`, unpacked; null: there is none.
Elf_Data* section_called(Elf* elf, std::string_view name) {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return nullptr;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS) continue;
    const char* text = elf_strptr(elf, names, header.sh_name);
    if (text == nullptr || text != name) continue;
    if ((header.sh_flags & SHF_COMPRESSED) != 0 && elf_compress(section, 0, 0) < 0) return nullptr;
    Elf_Data* data = elf_getdata(section, nullptr);
    return data != nullptr && data->d_buf != nullptr ? data : nullptr;
  }
  return nullptr;
}

SectionBytes bytes_called(Elf* elf, std::string_view name) {
  const Elf_Data* data = section_called(elf, name);
  return data == nullptr ? SectionBytes() : SectionBytes(static_cast<const std::uint8_t*>(data->d_buf), data->d_size);
}

DwarfPackage::Sections sections_of(Elf* elf) {
  DwarfPackage::Sections sections{
      .contents = {}, .units = bytes_called(elf, ".debug_cu_index"), .types = bytes_called(elf, ".debug_tu_index")};
  for (std::size_t i = 0; i < dwo_sections; ++i)
    sections.contents.all[i] = bytes_called(elf, name_of(static_cast<DwoSection>(i)));
  return sections;
}

/// What the entry of a skeleton unit says.
struct Skeleton {
  std::uint64_t id = 0;
  unsigned form = 0;  ///< of the file's name; 0: none
  std::uint64_t name = 0;
  std::uint64_t place = 0;  ///< behind the name, in .debug_info
  std::uint64_t str_offsets_base = 0;
};

Skeleton skeleton_of(const DebugSections& sections, const UnitHead& head, const Abbreviations& abbreviations) {
  Skeleton skeleton;
  if (head.version == 5) skeleton.id = SectionReader(sections.info, head.first_entry - 8).fixed(8);
  const UnitReader unit(sections, head, abbreviations);
  SectionReader entry(unit.bytes(), head.first_entry);
  const Abbreviation* abbreviation = unit.abbreviation(entry.uleb());
  if (abbreviation == nullptr) return skeleton;
  unit.read(entry, *abbreviation, [&](const FoundAttribute& at) {
    if (at.wanted == Wanted::dwo_id) skeleton.id = at.value;
    if (at.wanted == Wanted::str_offsets_base) skeleton.str_offsets_base = at.value;
    if (at.wanted != Wanted::split) return;
    skeleton.form = at.form;
    skeleton.name = at.value;
    skeleton.place = static_cast<std::uint64_t>(entry.position() - sections.info.data());
  });
  if (!entry.good()) skeleton.form = 0;
  return skeleton;
}

/// A section of a file that is ours to change: a copy, once it is changed.
class OwnSection {
 public:
  OwnSection(DwarfFile& file, std::string_view name) : file_(file), data_(section_called(file.elf.get(), name)) {}

  [[nodiscard]] bool put(std::uint64_t at, std::uint64_t value, unsigned size) {
    if (data_ == nullptr || at > size_at_first() || size_at_first() - at < size) return false;
    std::uint8_t* const bytes = own({});
    for (unsigned i = 0; i < size; ++i) bytes[at + i] = static_cast<std::uint8_t>(value >> 8 * i);
    return true;
  }
  /// Where `text` is from now on, behind all else.
  [[nodiscard]] std::optional<std::uint64_t> with(std::string_view text) {
    if (data_ == nullptr) return std::nullopt;
    const std::uint64_t at = size_at_first();
    own(text);
    return at;
  }

 private:
  [[nodiscard]] std::uint64_t size_at_first() const { return copied_ ? size_ : data_->d_size; }

  std::uint8_t* own(std::string_view more) {
    if (!copied_) {
      size_ = data_->d_size;
      std::vector<std::uint8_t>& copy = file_.changed_sections.emplace_back();
      copy.reserve(size_ + more.size() + 1 + zeros_behind);
      const auto* bytes = static_cast<const std::uint8_t*>(data_->d_buf);
      copy.assign(bytes, bytes + size_);
      copy.insert(copy.end(), more.begin(), more.end());
      if (!more.empty()) copy.push_back(0);
      data_->d_size = copy.size();
      copy.resize(copy.size() + zeros_behind);
      data_->d_buf = copy.data();
      copied_ = true;
    }
    return static_cast<std::uint8_t*>(data_->d_buf);
  }

  DwarfFile& file_;
  Elf_Data* data_;
  std::uint64_t size_ = 0;
  bool copied_ = false;
};

/// Lets names of skeletons' files be another one.
class Redirection {
 public:
  Redirection(DwarfFile& main, std::string name)
      : name_(std::move(name)),
        info_(main, ".debug_info"),
        str_(main, ".debug_str"),
        line_str_(main, ".debug_line_str"),
        str_offsets_(main, ".debug_str_offsets") {}

  /// False: a form that compilers do not use for it.
  [[nodiscard]] bool redirect(const Skeleton& skeleton, const UnitHead& head) {
    const unsigned size = head.offset_size;
    switch (skeleton.form) {
      case DW_FORM_strp:
        return in_str() && info_.put(skeleton.place - size, *in_str(), size);
      case DW_FORM_line_strp:
        if (!in_line_str_) in_line_str_ = line_str_.with(name_);
        return in_line_str_ && info_.put(skeleton.place - size, *in_line_str_, size);
      case DW_FORM_strx:
      case DW_FORM_strx1:
      case DW_FORM_strx2:
      case DW_FORM_strx3:
      case DW_FORM_strx4:
        return in_str() && skeleton.name < UINT32_MAX &&
               str_offsets_.put(skeleton.str_offsets_base + skeleton.name * size, *in_str(), size);
      default:
        return false;
    }
  }

 private:
  const std::optional<std::uint64_t>& in_str() {
    if (!in_str_) in_str_ = str_.with(name_);
    return in_str_;
  }

  std::string name_;
  OwnSection info_;
  OwnSection str_;
  OwnSection line_str_;
  OwnSection str_offsets_;
  std::optional<std::uint64_t> in_str_;
  std::optional<std::uint64_t> in_line_str_;
};

/// libdw opens the .dwo file that a skeleton unit names, and tries two names for it: that must not be a device or a
/// FIFO.
bool names_regular_files(Dwarf_Die skeleton) {
  auto name = text(own_attribute(skeleton, DW_AT_dwo_name));
  if (name.empty()) name = text(own_attribute(skeleton, DW_AT_GNU_dwo_name));
  const std::filesystem::path file(name);
  const auto in_directory = std::filesystem::path(text(own_attribute(skeleton, DW_AT_comp_dir))) / file;
  return std::ranges::none_of(std::array{file, in_directory}, [](const std::filesystem::path& path) {
    return sys::open_regular(AT_FDCWD, path.c_str()).error == EINVAL;
  });
}

}  // namespace

struct SplitUnits::Package {
  DwarfFile file;
  DwarfPackage index;
  Budget budget;
  elf::File place;  ///< the descriptor that redirected names lead to
  bool is64 = false;
  std::uint16_t machine = 0;
  std::vector<std::uint64_t> redirected = {};     ///< DWO ids, sorted
  std::unordered_set<const void*> provided = {};  ///< skeletons that libdw was asked about

  /// Redirects the skeletons of `main` whose units are here.
  void redirect(DwarfFile& main);
  /// Puts the unit where libdw will look for it.
  void provide(std::uint64_t id);
};

void SplitUnits::Package::redirect(DwarfFile& main) {
  for (const std::string_view name : {".debug_info", ".debug_abbrev"})
    static_cast<void>(section_called(main.elf.get(), name));  // unpacked from here on
  const DebugSections sections = main.sections();
  Redirection redirection(main, fmt::format("/proc/self/fd/{}", place.fd()));
  Budget work(work_at_first, sections.info.size());
  std::optional<Abbreviations> abbreviations;
  for (std::uint64_t at = 0; const auto head = unit_head(sections.info, at);) {
    at = head->end;
    if (head->version == 5 ? head->kind != DW_UT_skeleton : head->version != 4) continue;
    if (!abbreviations || !abbreviations->serve(*head)) {
      abbreviations.emplace(sections, *head, work.left());
      work.spend(abbreviations->size());
    }
    const Skeleton skeleton = skeleton_of(sections, *head, *abbreviations);
    if (index.has(skeleton.id) && redirection.redirect(skeleton, *head)) redirected.push_back(skeleton.id);
  }
  std::ranges::sort(redirected);
}

void SplitUnits::Package::provide(std::uint64_t id) {
  const auto dwo = index.dwo_of(id, budget);
  const auto made = elf::File::in_memory(elf_file_of(dwo ? *dwo : DwoBytes(), is64, machine));
  // What cannot be made is a unit that libdw does not find: the one before has another id.
  if (made) ::dup3(made->fd(), place.fd(), O_CLOEXEC);
}

SplitUnits::SplitUnits() noexcept = default;
SplitUnits::SplitUnits(SplitUnits&&) noexcept = default;
SplitUnits& SplitUnits::operator=(SplitUnits&&) noexcept = default;
SplitUnits::~SplitUnits() = default;

bool SplitUnits::spent() const noexcept { return package_ && package_->budget.spent(); }

Result<void> SplitUnits::use(DwarfFile package, DwarfFile& main) {
  auto index = DwarfPackage::read(sections_of(package.elf.get()));
  if (!index) {
    index.error().message = fmt::format("{}: {}", package.path.string(), index.error().message);
    return fail(std::move(index.error()));
  }
  auto place = elf::File::in_memory({});
  if (!place) return fail(std::move(place.error()));
  GElf_Ehdr head{};
  gelf_getehdr(main.elf.get(), &head);
  const Budget budget(made_at_first, package.bytes.size());
  package_ = std::make_unique<Package>(Package{.file = std::move(package),
                                               .index = *std::move(index),
                                               .budget = budget,
                                               .place = *std::move(place),
                                               .is64 = head.e_ident[EI_CLASS] == ELFCLASS64,
                                               .machine = head.e_machine});
  package_->redirect(main);
  return {};
}

Dwarf_Die SplitUnits::whole(Dwarf_Die unit) const {
  std::uint8_t kind = 0;
  std::uint64_t id = 0;
  Dwarf_Die split;
  if (dwarf_cu_info(unit.cu, nullptr, &kind, nullptr, nullptr, &id, nullptr, nullptr) != 0 || kind != DW_UT_skeleton)
    return unit;
  if (package_ && std::ranges::binary_search(package_->redirected, id)) {
    if (package_->provided.insert(unit.cu).second) package_->provide(id);
  } else if (!names_regular_files(unit)) {
    return unit;
  }
  const bool found = dwarf_cu_info(unit.cu, nullptr, nullptr, nullptr, &split, nullptr, nullptr, nullptr) == 0;
  return found && split.addr != nullptr ? split : unit;
}

}  // namespace usdt::dwarf
