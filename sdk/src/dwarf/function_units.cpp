// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/function_units.hpp"

#include "dwarf/index_cache.hpp"
#include "dwarf/name_filter.hpp"

namespace usdt::dwarf {

FunctionIndex::LetGo FunctionUnits::let_go() const {
  return [this] { files_.main.bytes.let_go(); };
}

FunctionIndex FunctionUnits::make_index(const StopToken& stop, const NameFilter* filter) const {
  return {files_.sections, [this](VirtAddr address) { return files_.code.contains(address); }, stop,
          let_go(),        FunctionIndex::useful_threads(files_.sections.info.size()),         filter};
}

std::optional<FunctionIndex> FunctionUnits::find_index(const StopToken& stop) const {
  std::optional<IndexCache> cache;
  if (files_.sections.info.size() >= IndexCache::smallest) {
    const elf::OpenedFile& opened = *files_.opened;
    cache.emplace(opened.file, files_.main_file(), elf::build_id(opened.file, opened.image));
    if (auto known = cache->load()) return known;
  }
  FunctionIndex index = make_index(stop, nullptr);
  if (stop.stop_requested()) return std::nullopt;
  if (cache) cache->save(index);
  return index;
}

UnitSet FunctionUnits::with(const WantedFunction& wanted, const NameHint* hint, const StopToken& stop) {
  FunctionInfo info;
  const auto is_wanted = [&](const FunctionNames& each) {
    info.name = each.name;
    info.linkage_name = each.linkage_name;
    info.qualified = each.qualified;
    return !info.name.empty() && wanted(info);
  };
  if (!index_ && hint != nullptr) {
    if (const auto filter = NameFilter::make(files_.sections, *hint, stop, let_go()))
      return make_index(stop, &*filter).units(files_.sections, is_wanted, stop, let_go());
  }
  if (!index_) index_ = find_index(stop);
  return index_ ? index_->units(files_.sections, is_wanted, stop, let_go()) : UnitSet();
}

UnitSet FunctionUnits::naming(const NameHint& hint, const StopToken& stop) const {
  const auto filter = NameFilter::make(files_.sections, hint, stop, let_go());
  const FunctionIndex index(
      files_.sections, [](VirtAddr) { return true; }, stop, let_go(),
      FunctionIndex::useful_threads(files_.sections.info.size()), filter ? &*filter : nullptr);
  const auto is_wanted = [&](const FunctionNames& each) {
    return hint.may_be(each.linkage_name.empty() ? each.name : each.linkage_name);
  };
  return index.units(files_.sections, is_wanted, stop, let_go());
}

}  // namespace usdt::dwarf
