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
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/try.hpp"
#include "dwarf/die.hpp"
#include "dwarf/dwarf_file.hpp"
#include "dwarf/package.hpp"

namespace usdt::dwarf {
namespace {

/// Bytes of .dwo files that may be kept in memory, or made of a package, besides Budget's part for each byte of the
/// package, whose units share types.
constexpr std::uint64_t kMadeAtFirst = 1U << 30;
/// Bytes of abbreviations that are read for the skeletons, besides those for each byte of .debug_info.
constexpr std::uint64_t kWorkAtFirst = 1U << 20;
/// Behind sections of our own, as FileBytes has them.
constexpr std::size_t kZerosBehind = 64;

/// The contents of a section, unpacked; null: it has none.
Elf_Data* data_of(Elf_Scn* section, const GElf_Shdr& header) {
  if (header.sh_type == SHT_NOBITS) return nullptr;
  if ((header.sh_flags & SHF_COMPRESSED) != 0 && elf_compress(section, 0, 0) < 0) return nullptr;
  Elf_Data* data = elf_getdata(section, nullptr);
  return data != nullptr && data->d_buf != nullptr ? data : nullptr;
}

/// The section called `name`, and its contents; null: there is none.
struct NamedSection {
  Elf_Scn* section = nullptr;
  Elf_Data* data = nullptr;
};
NamedSection section_called(Elf* elf, std::string_view name) {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return {};
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    const char* text = elf_strptr(elf, names, header.sh_name);
    if (text != nullptr && text == name) return {section, data_of(section, header)};
  }
  return {};
}

SectionBytes bytes_of(const Elf_Data* data) {
  return data == nullptr ? SectionBytes() : SectionBytes(static_cast<const std::uint8_t*>(data->d_buf), data->d_size);
}

DwarfPackage::Sections sections_of(Elf* elf) {
  DwarfPackage::Sections sections{.contents = {},
                                  .units = bytes_of(section_called(elf, ".debug_cu_index").data),
                                  .types = bytes_of(section_called(elf, ".debug_tu_index").data)};
  for (std::size_t i = 0; i < kDwoSections; ++i)
    sections.contents.all[i] = bytes_of(section_called(elf, name_of(static_cast<DwoSection>(i))).data);
  return sections;
}

/// The attributes of a skeleton unit's entry.
struct Skeleton {
  std::uint64_t id = 0;
  unsigned form = 0;  ///< of the file's name; 0: none
  std::uint64_t name = 0;
  std::uint64_t place = 0;  ///< behind the name, in .debug_info
  std::uint64_t str_offsets_base = 0;
  bool has_id = false;
  bool has_children = false;  ///< what is inlined, said once more without types (Clang's -fsplit-dwarf-inlining)
};

Skeleton skeleton_of(const DebugSections& sections, const UnitHead& head, const Abbreviations& abbreviations) {
  Skeleton skeleton;
  if (head.version == 5) {
    skeleton.id = SectionReader(sections.info, head.first_entry - 8).fixed(8);
    skeleton.has_id = true;
  }
  const UnitReader unit(sections, head, abbreviations);
  SectionReader entry(unit.bytes(), head.first_entry);
  const Abbreviation* abbreviation = unit.abbreviation(entry.uleb());
  if (abbreviation == nullptr) return skeleton;
  skeleton.has_children = abbreviation->has_children;
  unit.read(entry, *abbreviation, [&](const FoundAttribute& at) {
    if (at.wanted == Wanted::dwo_id) {
      skeleton.id = at.value;
      skeleton.has_id = true;
    }
    if (at.wanted == Wanted::str_offsets_base) skeleton.str_offsets_base = at.value;
    if (at.wanted != Wanted::split) return;
    skeleton.form = at.form;
    skeleton.name = at.value;
    skeleton.place = static_cast<std::uint64_t>(entry.position() - sections.info.data());
  });
  if (!entry.good() || !skeleton.has_id) skeleton.form = 0;
  return skeleton;
}

/// The form of an offset to a string in another section, and what is left of a string in place once that is in its
/// stead: a block that says how long it is. Nothing: the string has not enough room.
struct InsteadOfString {
  unsigned form = DW_FORM_strp;
  std::uint64_t rest = 0;  ///< bytes of the block with its length
  unsigned length = 0;     ///< bytes of that length; 0: there is no block
};
std::optional<InsteadOfString> instead_of_string(unsigned form, std::uint64_t size, unsigned offset_size) {
  if (size < offset_size) return std::nullopt;
  const std::uint64_t rest = size - offset_size;
  const unsigned length = rest == 0 ? 0 : rest <= 256 ? 1 : 4;
  return InsteadOfString{.form = form, .rest = rest, .length = length};
}

/// An attribute that nothing has (DW_AT_lo_user to DW_AT_hi_user), for what is passed over.
constexpr std::uint64_t kUnknownAttribute = 0x3ffe;
/// Bytes of the abbreviation of a skeleton's own entry; compilers write some dozens.
constexpr std::size_t kLongestAbbreviation = 4096;

void append_uleb(std::vector<std::uint8_t>& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<std::uint8_t>(value | 0x80));
  to.push_back(static_cast<std::uint8_t>(value));
}

/// A table of the one abbreviation of a skeleton's own entry, as if that had no children. `name`: what its file's name
/// is instead of a string in place; nothing: that name stays as it is. Empty: the table is not understood, or `work`,
/// from which each byte is taken, is spent.
std::vector<std::uint8_t> table_of_skeleton(const DebugSections& sections, const UnitHead& head,
                                            const std::optional<InsteadOfString>& name, Budget& work) {
  const std::uint64_t code = SectionReader(sections.info, head.first_entry).uleb();
  const auto rest = sections.abbrev.subspan(std::min<std::uint64_t>(head.abbreviations, sections.abbrev.size()));
  SectionReader bytes(rest.first(std::min<std::uint64_t>(rest.size(), work.left())), 0);
  std::vector<std::uint8_t> table;
  while (const std::uint64_t each = bytes.uleb()) {
    append_uleb(table, each);
    append_uleb(table, bytes.uleb());
    table.push_back(0);  // no children
    bytes.skip(1);
    for (bool more = true; more && bytes.good() && table.size() <= kLongestAbbreviation;) {
      const std::uint64_t attribute = bytes.uleb();
      const std::uint64_t form = bytes.uleb();
      const bool is_name = attribute == DW_AT_dwo_name || attribute == DW_AT_GNU_dwo_name;
      const bool other = name && is_name && form == DW_FORM_string;
      append_uleb(table, attribute);
      append_uleb(table, other ? name->form : form);
      if (other && name->length != 0) {
        append_uleb(table, kUnknownAttribute);
        append_uleb(table, name->length == 1 ? DW_FORM_block1 : DW_FORM_block4);
      }
      for (bool constant = form == DW_FORM_implicit_const; constant && bytes.good();) {
        table.push_back(static_cast<std::uint8_t>(bytes.fixed(1)));
        constant = table.back() >= 0x80;
      }
      more = (attribute | form) != 0;
    }
    if (!bytes.good() || table.size() > kLongestAbbreviation || each == code) break;
    table.clear();
  }
  work.spend(static_cast<std::uint64_t>(bytes.position() - rest.data()));
  if (!bytes.good() || table.size() > kLongestAbbreviation) return {};
  if (!table.empty()) table.push_back(0);
  return table;
}

/// A section of a file that is ours to change: a copy, once it is changed.
class OwnSection {
 public:
  OwnSection(DwarfFile& file, std::string_view name) : file_(file), named_(section_called(file.elf.get(), name)) {}

  [[nodiscard]] bool put(std::uint64_t at, std::uint64_t value, unsigned size) {
    if (named_.data == nullptr || at > size_at_first() || size_at_first() - at < size) return false;
    std::uint8_t* const bytes = own({});
    if (bytes == nullptr) return false;
    for (unsigned i = 0; i < size; ++i) bytes[at + i] = static_cast<std::uint8_t>(value >> 8 * i);
    return true;
  }
  /// Appends `text`; returns its offset.
  [[nodiscard]] std::optional<std::uint64_t> with(std::string_view text) {
    if (named_.data == nullptr) return std::nullopt;
    const std::uint64_t at = size_at_first();
    if (own(text) == nullptr) return std::nullopt;
    return at;
  }

 private:
  [[nodiscard]] std::uint64_t size_at_first() const { return copied_ ? size_ : named_.data->d_size; }

  /// The copy that libdw reads in the section's place, with `more` behind it the first time; null: it has none.
  std::uint8_t* own(std::string_view more) {
    if (!copied_) {
      size_ = named_.data->d_size;
      std::vector<std::uint8_t>& copy = file_.changed_sections.emplace_back();
      copy.reserve(size_ + more.size() + 1 + kZerosBehind);
      const auto* bytes = static_cast<const std::uint8_t*>(named_.data->d_buf);
      copy.assign(bytes, bytes + size_);
      copy.insert(copy.end(), more.begin(), more.end());
      if (!more.empty()) copy.push_back(0);
      const std::size_t size = copy.size();
      copy.resize(size + kZerosBehind);
      if (!replace_bytes(named_.section, std::span(copy).first(size))) return nullptr;
      copied_ = true;
    }
    return static_cast<std::uint8_t*>(named_.data->d_buf);
  }

  DwarfFile& file_;
  NamedSection named_;
  std::uint64_t size_ = 0;
  bool copied_ = false;
};

/// Lets names of skeletons' files be another one.
class Redirection {
 public:
  Redirection(DwarfFile& main, const DebugSections& sections, std::string name)
      : sections_(sections),
        name_(std::move(name)),
        info_(main, ".debug_info"),
        abbrev_(main, ".debug_abbrev"),
        str_(main, ".debug_str"),
        line_str_(main, ".debug_line_str"),
        str_offsets_(main, ".debug_str_offsets") {}

  /// Replaces the name; returns the place of the old one. Nothing: it stays, in a form that compilers do not use.
  [[nodiscard]] std::optional<TextPlace> redirect(const Skeleton& skeleton, const UnitHead& head, Budget& work) {
    const unsigned size = head.offset_size;
    // libdw takes for no skeleton what has children before DWARF 5.
    const bool childless = !skeleton.has_children || head.version == 5;
    if (skeleton.form == DW_FORM_string) return of_string(skeleton, head, work);
    if (skeleton.form != 0 && !childless && !use_table(head, table_of_skeleton(sections_, head, {}, work)))
      return std::nullopt;
    switch (skeleton.form) {
      case DW_FORM_strp:
        if (!in_str() || !info_.put(skeleton.place - size, *in_str(), size)) return std::nullopt;
        return TextPlace(TextPlace::str, skeleton.name);
      case DW_FORM_line_strp:
        if (!in_line_str() || !info_.put(skeleton.place - size, *in_line_str(), size)) return std::nullopt;
        return TextPlace(TextPlace::line_str, skeleton.name);
      case DW_FORM_strx:
      case DW_FORM_strx1:
      case DW_FORM_strx2:
      case DW_FORM_strx3:
      case DW_FORM_strx4:
        return skeleton.name < UINT32_MAX ? of_index(skeleton.str_offsets_base + skeleton.name * size, size)
                                          : std::nullopt;
      default:
        return std::nullopt;
    }
  }

  /// Appends the abbreviation tables that were made; called last.
  void finish() {
    if (!tables_.empty())
      static_cast<void>(abbrev_.with({reinterpret_cast<const char*>(tables_.data()), tables_.size()}));
  }

 private:
  /// A string in place becomes an offset to another one, which has less room than a name has.
  std::optional<TextPlace> of_string(const Skeleton& skeleton, const UnitHead& head, Budget& work) {
    const std::uint64_t begin = skeleton.name;
    const unsigned size = head.offset_size;
    const std::optional<std::uint64_t> offset = in_str() ? in_str() : in_line_str();
    const auto instead = instead_of_string(in_str() ? DW_FORM_strp : DW_FORM_line_strp, skeleton.place - begin, size);
    if (!offset || !instead || !use_table(head, table_of_skeleton(sections_, head, instead, work))) return std::nullopt;
    if (!info_.put(begin, *offset, size) || !info_.put(begin + size, instead->rest - instead->length, instead->length))
      return std::nullopt;
    return TextPlace(TextPlace::info, begin);
  }

  /// The abbreviations of the unit are these from now on.
  [[nodiscard]] bool use_table(const UnitHead& head, const std::vector<std::uint8_t>& table) {
    if (table.empty()) return false;
    // Behind its length and version, in DWARF 5 its kind and the size of addresses, too.
    const std::uint64_t at = head.offset + (head.offset_size == 8 ? 12 : 4) + (head.version == 5 ? 4 : 2);
    if (!info_.put(at, sections_.abbrev.size() + tables_.size(), head.offset_size)) return false;
    tables_.insert(tables_.end(), table.begin(), table.end());
    return true;
  }

  std::optional<TextPlace> of_index(std::uint64_t at, unsigned size) {
    const std::uint64_t offset = SectionReader(sections_.str_offsets, at).fixed(size);
    if (!in_str() || !str_offsets_.put(at, *in_str(), size)) return std::nullopt;
    return TextPlace(TextPlace::str, offset);
  }
  const std::optional<std::uint64_t>& in_str() {
    if (!in_str_) in_str_ = str_.with(name_);
    return in_str_;
  }

  const std::optional<std::uint64_t>& in_line_str() {
    if (!in_line_str_) in_line_str_ = line_str_.with(name_);
    return in_line_str_;
  }

  const DebugSections& sections_;
  std::string name_;
  OwnSection info_;
  OwnSection abbrev_;
  OwnSection str_;
  OwnSection line_str_;
  OwnSection str_offsets_;
  std::vector<std::uint8_t> tables_;  ///< come behind .debug_abbrev
  std::optional<std::uint64_t> in_str_;
  std::optional<std::uint64_t> in_line_str_;
};

/// Whether type units have sections of their own, of which linkers keep one of several: libdw reads only the first
/// section of a name, and none that is still in a group.
bool has_several(const elf::Image& image) {
  return std::ranges::any_of(std::array{DwoSection::types, DwoSection::info}, [&image](DwoSection section) {
    std::size_t several = 0;
    for (const elf::Section& each : image.sections)
      if (image.is_called(each, name_of(section))) several += (each.flags & SHF_GROUP) != 0 ? 2 : 1;
    return several > 1;
  });
}

/// All sections of a .dwo file; those of one name as one, first what is in no group.
DwoBytes all_sections_of(Elf* elf) {
  DwoBytes all;
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return all;
  for (const bool in_group : {false, true}) {
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
      GElf_Shdr header;
      if (gelf_getshdr(section, &header) == nullptr || ((header.sh_flags & SHF_GROUP) != 0) != in_group) continue;
      const char* name = elf_strptr(elf, names, header.sh_name);
      for (std::size_t i = 0; name != nullptr && i < kDwoSections; ++i) {
        if (name != name_of(static_cast<DwoSection>(i))) continue;
        const SectionBytes bytes = bytes_of(data_of(section, header));
        all.all[i].insert(all.all[i].end(), bytes.begin(), bytes.end());
      }
    }
  }
  return all;
}

}  // namespace

struct SplitUnits::Sources {
  DwarfFile file;  ///< the package
  DwarfPackage package;
  Budget budget;
  elf::File place;  ///< the descriptor that redirected names lead to
  std::filesystem::path directory;
  bool is64 = false;
  std::uint16_t machine = 0;
  DebugSections named = {};  ///< of `main`, as they were
  /// A skeleton's DWO id, and the name that its file had.
  struct Named {
    std::uint64_t id;
    TextPlace name;
  };
  std::vector<Named> redirected = {};  ///< by id
  /// Skeletons whose files libdw cannot be led to: the name is too short to be replaced by an offset, or there is no
  /// section that another could be in.
  std::vector<Named> unreachable = {};
  std::unordered_set<const void*> provided = {};  ///< skeletons that libdw was asked about
  std::uint64_t missing = 0;                      ///< of those
  TextPlace first_missing = {};

  void redirect(DwarfFile& main);
  [[nodiscard]] const Named* find(std::uint64_t id) const noexcept {
    const auto at = std::ranges::lower_bound(redirected, id, {}, &Named::id);
    return at != redirected.end() && at->id == id ? &*at : nullptr;
  }
  /// Puts the unit where libdw will look for it. What cannot be is a unit that it does not find: the one that is there
  /// has another id.
  void provide(const Named& unit, Dwarf_Die skeleton);

 private:
  void put(const elf::File& dwo) const { ::dup3(dwo.fd(), place.fd(), O_CLOEXEC); }
  void put(SectionBytes dwo) {
    const auto made = budget.spend(dwo.size()) ? elf::File::in_memory(dwo) : fail(ErrorKind::limit, "");
    if (made) put(*made);
  }
  void put(const DwoBytes& dwo) { put(SectionBytes(elf_file_of(dwo, is64, machine))); }
  /// False: there is no such file.
  bool put_file(const std::filesystem::path& path);
};

void SplitUnits::Sources::redirect(DwarfFile& main) {
  for (const std::string_view name :
       {".debug_info", ".debug_abbrev", ".debug_str", ".debug_line_str", ".debug_str_offsets", ".debug_addr"})
    static_cast<void>(section_called(main.elf.get(), name));  // unpacked from here on
  named = main.sections();
  Redirection redirection(main, named, fmt::format("/proc/self/fd/{}", place.fd()));
  Budget work(kWorkAtFirst, named.info.size());
  std::optional<Abbreviations> abbreviations;
  for (std::uint64_t at = 0; const auto head = unit_head(named.info, at);) {
    at = head->end;
    // Before DWARF 5 a skeleton looks like any other unit. All of them have their addresses in .debug_addr.
    const bool may_be_old = head->version == 4 && !named.addr.empty();
    if (head->version == 5 ? head->kind != DW_UT_skeleton : !may_be_old) continue;
    if (!abbreviations || !abbreviations->serve(*head)) {
      abbreviations.emplace(named, *head, work.left());
      work.spend(abbreviations->size());
    }
    const Skeleton skeleton = skeleton_of(named, *head, *abbreviations);
    if (const auto name = redirection.redirect(skeleton, *head, work))
      redirected.push_back({skeleton.id, *name});
    else if (skeleton.form == DW_FORM_string)
      unreachable.push_back({skeleton.id, TextPlace(TextPlace::info, skeleton.name)});
  }
  redirection.finish();
  std::ranges::sort(redirected, {}, &Named::id);
}

void SplitUnits::Sources::provide(const Named& unit, Dwarf_Die skeleton) {
  if (package.has(unit.id)) {
    if (const auto dwo = package.dwo_of(unit.id, budget)) put(*dwo);
    return;
  }
  const std::filesystem::path name(unit.name.in(named));
  const auto compiled_in = directory / text(own_attribute(skeleton, DW_AT_comp_dir));
  if (!put_file(directory / name)) put_file(compiled_in / name);
}

bool SplitUnits::Sources::put_file(const std::filesystem::path& path) {
  const auto opened = elf::File::open(path);
  if (!opened) return false;
  const auto image = elf::read_image(*opened, 0, opened->size(), path.string());
  if (!image || !check_claims(*opened, *image, path)) return true;
  if (opened->is_trusted() && !has_several(*image)) return put(*opened), true;
  const auto read = budget.spend(opened->size()) ? open_elf(*opened, path) : fail(ErrorKind::limit, "");
  if (!read) return true;
  if (has_several(*image))
    put(all_sections_of(read->elf.get()));
  else
    put(SectionBytes(reinterpret_cast<const std::uint8_t*>(read->bytes.data()), read->bytes.size()));
  return true;
}

SplitUnits::SplitUnits() noexcept = default;
SplitUnits::SplitUnits(SplitUnits&&) noexcept = default;
SplitUnits& SplitUnits::operator=(SplitUnits&&) noexcept = default;
SplitUnits::~SplitUnits() = default;

bool SplitUnits::spent() const noexcept { return sources_ && sources_->budget.spent(); }

std::string SplitUnits::missing() const {
  if (!sources_ || (sources_->missing == 0 && sources_->unreachable.empty())) return {};
  if (sources_->missing == 0)
    return fmt::format(
        "debug information of {} units is in split files (the first is {}) that cannot be read: their names are in "
        "DW_FORM_string, and there is no room for others",
        sources_->unreachable.size(), sources_->unreachable.front().name.in(sources_->named));
  return fmt::format(
      "debug information of {} of {} units is in split files (the first is {}) that are not there or of "
      "another build, nor is there a package with it (.dwp)",
      sources_->missing, sources_->redirected.size(), sources_->first_missing.in(sources_->named));
}

Result<void> SplitUnits::use(DwarfFile package, DwarfFile& main) {
  auto index = package.elf ? DwarfPackage::read(sections_of(package.elf.get())) : DwarfPackage();
  if (!index) {
    index.error().message = fmt::format("{}: {}", package.path.string(), index.error().message);
    return fail(std::move(index.error()));
  }
  auto place = TRY(elf::File::in_memory({}));
  GElf_Ehdr head{};
  gelf_getehdr(main.elf.get(), &head);
  const Budget budget(kMadeAtFirst, package.bytes.size());
  sources_ = std::make_unique<Sources>(Sources{.file = std::move(package),
                                               .package = *std::move(index),
                                               .budget = budget,
                                               .place = std::move(place),
                                               .directory = main.path.parent_path(),
                                               .is64 = head.e_ident[EI_CLASS] == ELFCLASS64,
                                               .machine = head.e_machine});
  sources_->redirect(main);
  if (sources_->redirected.empty() && sources_->unreachable.empty()) sources_.reset();
  return {};
}

Dwarf_Die SplitUnits::whole(Dwarf_Die unit) const {
  std::uint8_t kind = 0;
  std::uint64_t id = 0;
  Dwarf_Die split;
  if (dwarf_cu_info(unit.cu, nullptr, &kind, nullptr, nullptr, &id, nullptr, nullptr) != 0 || kind != DW_UT_skeleton)
    return unit;
  const auto* named = sources_ ? sources_->find(id) : nullptr;
  if (named == nullptr) return unit;
  const bool is_new = sources_->provided.insert(unit.cu).second;
  if (is_new) sources_->provide(*named, unit);
  const bool answered = dwarf_cu_info(unit.cu, nullptr, nullptr, nullptr, &split, nullptr, nullptr, nullptr) == 0;
  if (answered && split.addr != nullptr) return split;
  if (is_new && sources_->missing++ == 0) sources_->first_missing = named->name;
  return unit;
}

}  // namespace usdt::dwarf
