// SPDX-License-Identifier: BSD-2-Clause
#include "elf/descriptions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "elf/claims.hpp"
#include "elf/notes.hpp"

namespace usdt::elf {
namespace {

constexpr std::string_view kOwner{"usdt\0", 5};
constexpr std::uint32_t kSiteType = 1;
constexpr std::uint32_t kProbeType = 2;
constexpr std::size_t kTypes = 12;
/// As of stapsdt notes: what is beyond is a lie not worth its memory.
constexpr std::uint64_t kMostBytes = 64ULL << 20;

using Description = std::shared_ptr<const SiteDescription>;
using ProbeName = std::pair<std::string_view, std::string_view>;

class DescriptionReader {
 public:
  DescriptionReader(const File& file, const Image& image, Warnings& warnings, const std::stop_token& stop)
      : image_(image), warnings_(warnings), stop_(stop), claims_(file, image) {
    for (const Section& section : image.sections) {
      if (section.type != SHT_NOTE || section.size == 0 || section.size > kMostBytes) continue;
      if (!image.is_called(section, ".note.usdt") && !image.is_called(section, ".note.usdt.probes")) continue;
      read(section);
    }
  }

  [[nodiscard]] bool empty() const noexcept { return by_pc_.empty() && by_probe_.empty(); }

  void describe(Site& site) {
    const auto here = by_pc_.find(site.pc.value);
    const auto declared = by_probe_.find(ProbeName(site.provider, site.name));
    const Description of_site = here == by_pc_.end() ? nullptr : here->second;
    const std::optional<std::string_view> text = declared == by_probe_.end() ? std::nullopt : declared->second;
    if (!text) {
      site.description = of_site;
      return;
    }
    Description& both = joined_[{of_site.get(), text->data()}];
    if (!both) {
      auto made = of_site ? std::make_shared<SiteDescription>(*of_site) : std::make_shared<SiteDescription>();
      made->declared = *text;
      both = std::move(made);
    }
    site.description = both;
  }

 private:
  void read(const Section& section) {
    const Bytes& bytes = kept_.emplace_back(claims_.read(section));
    NoteReader reader(bytes);
    while (const auto note = reader.next()) {
      if (stop_.stop_requested()) return;
      if (note->owner != kOwner) continue;
      const bool whole = note->type == kSiteType    ? take_site(note->desc)
                         : note->type == kProbeType ? take_probe(as_text(note->desc))
                                                    : true;  // of a version to come
      if (!whole) {
        const std::uint64_t where = image_.start + section.offset + note->offset;
        warnings_.add(where, fmt::format("note at file offset {:#x}: a description that ends early, skipped", where));
      }
    }
  }

  bool take_site(ByteView desc) {
    const std::uint64_t word = image_.is64 ? 8 : 4;
    if (desc.size() < word + 4 + kTypes) return false;
    const std::uint64_t pc = load_word(desc, 0, image_.is64);
    const std::string_view said = as_text(desc.subspan(word));
    Description& shared = said_[said];
    if (!shared) {
      shared = parse(desc.subspan(word));
      if (!shared) return false;
    }
    const auto [known, fresh] = by_pc_.try_emplace(pc, shared);
    if (!fresh && known->second && *known->second != *shared) known->second = nullptr;
    return true;
  }

  static Description parse(ByteView desc) {
    std::string_view text = as_text(desc.subspan(4 + kTypes));
    const auto file = take_string(text);
    const auto written = file ? take_string(text) : std::nullopt;
    if (!written) return nullptr;
    SiteDescription made;
    made.line = little(load<std::uint32_t>(desc, 0));
    made.types = as_text(desc.subspan(4, kTypes));
    made.file = *file;
    made.written = *written;
    return std::make_shared<const SiteDescription>(std::move(made));
  }

  bool take_probe(std::string_view text) {
    const auto provider = take_string(text);
    const auto name = provider ? take_string(text) : std::nullopt;
    const auto declared = name ? take_string(text) : std::nullopt;
    if (!declared) return false;
    const auto [known, fresh] = by_probe_.try_emplace(ProbeName(*provider, *name), *declared);
    if (!fresh && known->second != *declared) known->second = std::nullopt;
    return true;
  }

  const Image& image_;
  Warnings& warnings_;
  const std::stop_token& stop_;
  Claims claims_;
  std::deque<Bytes> kept_;  ///< what the views of the maps are of
  std::unordered_map<std::string_view, Description> said_;
  std::unordered_map<std::uint64_t, Description> by_pc_;           ///< null: there are several
  std::map<ProbeName, std::optional<std::string_view>> by_probe_;  ///< nothing: there are several
  std::map<std::pair<const SiteDescription*, const char*>, Description> joined_;
};

}  // namespace

void add_descriptions(const File& file, const Image& image, std::span<Site> sites, Warnings& warnings,
                      const std::stop_token& stop) {
  if (image.type == ET_REL || sites.empty()) return;
  DescriptionReader reader(file, image, warnings, stop);
  if (reader.empty()) return;
  for (Site& site : sites) reader.describe(site);
}

}  // namespace usdt::elf
