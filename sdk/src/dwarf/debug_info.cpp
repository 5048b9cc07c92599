// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/debug_info.hpp"

#include <mutex>
#include <utility>

#include "base/try.hpp"
#include "dwarf/debug_state.hpp"
#include "dwarf/type_graph.hpp"

namespace usdt::dwarf {

Result<DebugInfo> DebugInfo::open(const ElfFile& file, const StopToken& stop) {
  auto files = TRY(DebugFiles::open(file, stop));
  return DebugInfo(std::make_shared<DebugState>(std::move(files), stop));
}

DebugInfo::DebugInfo(std::shared_ptr<DebugState> state) noexcept : state_(std::move(state)) {}
DebugInfo::DebugInfo(DebugInfo&&) noexcept = default;
DebugInfo& DebugInfo::operator=(DebugInfo&&) noexcept = default;
DebugInfo::~DebugInfo() = default;

const std::filesystem::path& DebugInfo::path() const noexcept { return state_->files.main.path; }

std::string DebugInfo::missing() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->files.split.missing();
}

std::shared_ptr<const TypeGraph> DebugInfo::types() const { return std::make_shared<const DwarfTypes>(state_); }

}  // namespace usdt::dwarf
