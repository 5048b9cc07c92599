// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/kernel_symbols.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernel/symbol_lists.hpp"

namespace usdt {

struct KernelSymbols::Impl {
  bool loaded = false;
  kernel::Text text;  ///< what the names are views of
  kernel::ModuleNames modules;
  std::vector<kernel::Named> code;  ///< by address

  void load() {
    loaded = true;
    auto list = kernel::Text::read("/proc/kallsyms");
    if (!list) return;
    text = std::move(*list);
    code = kernel::parse_code(text.view(), modules);
  }
};

KernelSymbols::KernelSymbols() : impl_(std::make_unique<Impl>()) {}
KernelSymbols::KernelSymbols(KernelSymbols&&) noexcept = default;
KernelSymbols& KernelSymbols::operator=(KernelSymbols&&) noexcept = default;
KernelSymbols::~KernelSymbols() = default;

std::string KernelSymbols::name(std::uint64_t address) {
  if (!impl_->loaded) impl_->load();
  const auto after =
      std::upper_bound(impl_->code.begin(), impl_->code.end(), address,
                       [](std::uint64_t value, const kernel::Named& each) { return value < each.address; });
  // Behind the last symbol of a module there may be anything.
  constexpr std::uint64_t longest = 0x100000;
  if (after == impl_->code.begin() || address - (after - 1)->address > longest) return fmt::format("{:#x}", address);
  const kernel::Named& found = *(after - 1);
  const std::string_view module = impl_->modules.name(found.module);
  return fmt::format("{}+{:#x}{}", found.name, address - found.address,
                     module.empty() ? "" : fmt::format(" [{}]", module));
}

}  // namespace usdt
