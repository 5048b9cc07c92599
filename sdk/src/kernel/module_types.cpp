// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/module_types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/try.hpp"
#include "kernel/sources.hpp"
#include "kernel/symbol_lists.hpp"

namespace usdt::kernel {
namespace {

std::string_view file_of(std::string_view module) noexcept { return module.empty() ? "vmlinux" : module; }

}  // namespace

Result<void> ModuleTypes::load() {
  auto types = read("");
  types_.emplace("", types.value_or(nullptr));
  return types ? Result<void>() : fail(types.error());
}

const btf::Types* ModuleTypes::find(std::string_view module) const {
  if (module == "vmlinux") module = {};
  const auto known = types_.find(module);
  if (known != types_.end()) return known->second.get();
  return types_.emplace(module, read(module).value_or(nullptr)).first->second.get();
}

std::vector<std::string> ModuleTypes::modules() const {
  std::vector<std::string> out;
  std::error_code ec;
  for (std::filesystem::directory_iterator it(directory_, ec), end; !ec && it != end; it.increment(ec)) {
    if (it->path().filename() != "vmlinux") out.push_back(it->path().filename().string());
  }
  std::ranges::sort(out);
  return out;
}

Result<std::shared_ptr<const btf::Types>> ModuleTypes::read(std::string_view module) const {
  // Other stages want the running kernel's, too.
  if (module.empty() && directory_ == Sources().btf) return btf::Types::load();
  std::shared_ptr<const btf::Types> base;
  if (!module.empty()) {
    if (!find("")) return fail(ErrorKind::not_supported, "no types of the kernel");
    base = types_.find("")->second;
  }
  const std::string path = fmt::format("{}/{}", directory_, file_of(module));
  const auto text = TRY(Text::read(path));
  const auto bytes = std::as_bytes(std::span(text.view()));
  auto types = btf::Types::parse({bytes.begin(), bytes.end()}, std::move(base));
  if (!types) return fail(types.error().within(path));
  return types;
}

}  // namespace usdt::kernel
