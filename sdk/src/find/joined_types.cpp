// SPDX-License-Identifier: BSD-2-Clause
#include "find/joined_types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "usdt/discover.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/probe_file.hpp"

namespace usdt::find {
namespace {

/// Libraries whose types are looked through for one file.
constexpr std::size_t kMostLibraries = 62;
/// Ids of a library's types have its number, from 1, above those bits; those of the file itself 0.
constexpr unsigned kIdBits = 26;
constexpr std::uint32_t kIdMask = (1U << kIdBits) - 1;

class JoinedTypes final : public TypeGraph {
 public:
  JoinedTypes(std::shared_ptr<const TypeGraph> own, std::filesystem::path path, FilesBeside beside, StopToken stop)
      : path_(std::move(path)), beside_(std::move(beside)), stop_(std::move(stop)) {
    graphs_.push_back(std::move(own));
  }

  [[nodiscard]] Result<TypeInfo> info(TypeId type) const override {
    const std::scoped_lock lock(mutex_);
    return info_of(defined(type));
  }

  [[nodiscard]] Result<std::vector<MemberInfo>> members(TypeId type) const override {
    const std::scoped_lock lock(mutex_);
    const Place place = defined(type);
    auto all = graphs_[place.graph]->members(place.type);
    if (!all) return all;
    if (all->empty()) {
      const auto info = graphs_[place.graph]->info(place.type);
      const auto known = info ? found_.find(tag_of(info->text)) : found_.end();
      if (known != found_.end() && !known->second.differ.empty())
        return fail(ErrorKind::not_supported, known->second.differ);
    }
    for (MemberInfo& each : *all) {
      each.type = joined(place.graph, each.type);
      if (each.variant) each.variant->type = joined(place.graph, each.variant->type);
    }
    return all;
  }

  [[nodiscard]] std::vector<Enumerator> enumerators(TypeId type) const override {
    const std::scoped_lock lock(mutex_);
    const Place place = defined(type);
    return graphs_[place.graph]->enumerators(place.type);
  }

  [[nodiscard]] std::vector<TypeId> template_types(TypeId type) const override {
    const std::scoped_lock lock(mutex_);
    const Place place = defined(type);
    std::vector<TypeId> all = graphs_[place.graph]->template_types(place.type);
    for (TypeId& each : all) each = joined(place.graph, each);
    return all;
  }

  /// Go links all of a program into one file.
  [[nodiscard]] Result<std::vector<DynamicType>> dynamic_types(bool errors) const override {
    const std::scoped_lock lock(mutex_);
    return graphs_.front()->dynamic_types(errors);
  }

  /// Finds types of the file itself first, which a cast means, else those of a library.
  [[nodiscard]] Result<std::vector<TypeId>> find_all(std::string_view name) const override {
    const std::scoped_lock lock(mutex_);
    auto own = graphs_.front()->find_all(name);
    if (own || own.error().kind != ErrorKind::not_found) return own;
    const auto found = in_libraries(std::string(name));
    if (!found) return own;
    return std::vector<TypeId>{joined(found->graph, found->type)};
  }

  [[nodiscard]] Result<TypeId> find_beside(std::string_view name, TypeId beside) const override {
    const std::scoped_lock lock(mutex_);
    const Place place = place_of(beside);
    auto own = graphs_.front()->find_beside(name, place.graph == 0 ? place.type : TypeId::none);
    if (own || own.error().kind != ErrorKind::not_found) return own;
    const auto found = in_libraries(std::string(name));
    if (!found) return own;
    return joined(found->graph, found->type);
  }

 private:
  struct Place {
    std::size_t graph = 0;
    TypeId type = TypeId::none;
  };

  [[nodiscard]] static TypeId joined(std::size_t graph, TypeId type) {
    const auto number = static_cast<std::uint32_t>(type);
    if (type == TypeId::none || number > kIdMask) return TypeId::none;
    return static_cast<TypeId>(static_cast<std::uint32_t>(graph) << kIdBits | number);
  }

  [[nodiscard]] Place place_of(TypeId type) const {
    if (type == TypeId::none) return {};
    const auto number = static_cast<std::uint32_t>(type);
    const std::size_t graph = number >> kIdBits;
    if (graph >= graphs_.size()) return {};
    return {graph, static_cast<TypeId>(number & kIdMask)};
  }

  [[nodiscard]] Result<TypeInfo> info_of(const Place& place) const {
    auto info = graphs_[place.graph]->info(place.type);
    if (info) info->target = joined(place.graph, info->target);
    return info;
  }

  /// The place of a type; of its definition, if it is declared only.
  [[nodiscard]] Place defined(TypeId type) const {
    const Place place = place_of(type);
    const auto info = graphs_[place.graph]->info(place.type);
    if (!info || info->type.kind != TypeKind::structure || info->type.size != 0 || !info->no_number.empty())
      return place;
    const auto members = graphs_[place.graph]->members(place.type);
    if (!members || !members->empty() || info->text.empty()) return place;
    const auto found = in_libraries(tag_of(info->text));
    return found ? *found : place;
  }

  /// "struct conn" of "const struct conn".
  [[nodiscard]] static std::string tag_of(std::string text) {
    for (const std::string_view word : {"const ", "volatile "})
      if (text.starts_with(word)) text.erase(0, word.size());
    return text;
  }

  /// The definition of a type that the file declares; or why it is not clear which one is meant.
  struct Found {
    std::optional<Place> place = {};
    std::string differ = {};
  };

  [[nodiscard]] std::optional<Place> in_libraries(const std::string& name) const {
    const auto [known, fresh] = found_.try_emplace(name);
    if (!fresh) return known->second.place;
    open_libraries();
    Found found = find_among(name, 1, libraries_end_);
    if (!found.place && found.differ.empty()) {
      open_beside();
      found = find_among(name, libraries_end_, graphs_.size());
    }
    found_[name] = found;
    return found.place;
  }

  [[nodiscard]] Found find_among(const std::string& name, std::size_t first, std::size_t end) const {
    Found found;
    for (std::size_t graph = first; graph < end; ++graph) {
      const auto there = graphs_[graph]->find_all(name);
      if (!there) continue;
      for (const TypeId type : *there) {
        const auto info = graphs_[graph]->info(type);
        if (!info || info->type.size == 0 || info->type.kind != TypeKind::structure) continue;
        if (!found.place) {
          found.place = Place{graph, type};
        } else if (!are_alike(*found.place, {graph, type})) {
          return {.differ = fmt::format("{} is one thing in {} and another in {}: which is meant nobody tells", name,
                                        names_[found.place->graph], names_[graph])};
        }
      }
    }
    return found;
  }

  /// Whether two structs have the same size, and members of the same names in the same places.
  [[nodiscard]] bool are_alike(const Place& a, const Place& b) const {
    const auto info_a = graphs_[a.graph]->info(a.type), info_b = graphs_[b.graph]->info(b.type);
    if (!info_a || !info_b || info_a->type.size != info_b->type.size) return false;
    if (a.graph == b.graph) return true;
    const auto of_a = graphs_[a.graph]->members(a.type), of_b = graphs_[b.graph]->members(b.type);
    return of_a && of_b && std::ranges::equal(*of_a, *of_b, [](const MemberInfo& one, const MemberInfo& other) {
             return one.name == other.name && one.offset == other.offset && one.shift == other.shift;
           });
  }

  void open_libraries() const {
    if (libraries_end_ > 0) return;
    if (const auto files = files_of_program(path_)) open(*files);
    libraries_end_ = graphs_.size();
  }

  /// Opens the other files in processes that run this one: the program that loaded it, and users of its values.
  void open_beside() const {
    if (std::exchange(beside_opened_, true) || !beside_) return;
    open(beside_());
  }

  void open(const std::vector<TargetFile>& files) const {
    for (const TargetFile& each : files) {
      const bool known = each.path == path_ || std::ranges::find(names_, each.path.native()) != names_.end();
      if (known || graphs_.size() > kMostLibraries || stop_.stop_requested()) continue;
      const auto elf = ElfFile::open(each.access.empty() ? each.path : each.access);
      if (!elf) continue;
      auto types = file_types(*elf, stop_);
      if (!types) continue;
      graphs_.push_back(*std::move(types));
      names_.push_back(each.path.native());
    }
  }

  std::filesystem::path path_;
  FilesBeside beside_;
  StopToken stop_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const TypeGraph>> graphs_;
  mutable std::vector<std::string> names_ = {path_.native()};  ///< of the files of `graphs_`
  mutable std::map<std::string, Found> found_;
  mutable std::size_t libraries_end_ = 0;  ///< of `graphs_`; 0: the libraries are not open
  mutable bool beside_opened_ = false;
};

}  // namespace

std::shared_ptr<const TypeGraph> with_types_of_libraries(std::shared_ptr<const TypeGraph> own,
                                                         std::filesystem::path path, FilesBeside beside,
                                                         StopToken stop) {
  return std::make_shared<const JoinedTypes>(std::move(own), std::move(path), std::move(beside), std::move(stop));
}

}  // namespace usdt::find
