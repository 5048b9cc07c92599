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
  std::vector<kernel::Named> functions;  ///< by address

  void load() {
    loaded = true;
    auto list = kernel::Text::read("/proc/kallsyms");
    if (!list) return;
    text = std::move(*list);
    kernel::Symbols symbols = kernel::parse_kallsyms(text.view(), modules);
    if (symbols.hidden) return;
    functions = std::move(symbols.functions);
    std::stable_sort(functions.begin(), functions.end(),
                     [](const kernel::Named& a, const kernel::Named& b) { return a.address < b.address; });
  }
};

KernelSymbols::KernelSymbols() : impl_(std::make_unique<Impl>()) {}
KernelSymbols::KernelSymbols(KernelSymbols&&) noexcept = default;
KernelSymbols& KernelSymbols::operator=(KernelSymbols&&) noexcept = default;
KernelSymbols::~KernelSymbols() = default;

std::string KernelSymbols::name(std::uint64_t address) {
  if (!impl_->loaded) impl_->load();
  const auto after =
      std::upper_bound(impl_->functions.begin(), impl_->functions.end(), address,
                       [](std::uint64_t value, const kernel::Named& each) { return value < each.address; });
  // Behind the last function of a module there may be anything.
  constexpr std::uint64_t longest = 0x100000;
  if (after == impl_->functions.begin() || address - (after - 1)->address > longest)
    return fmt::format("{:#x}", address);
  const kernel::Named& found = *(after - 1);
  const std::string_view module = impl_->modules.name(found.module);
  return fmt::format("{}+{:#x}{}", found.name, address - found.address,
                     module.empty() ? "" : fmt::format(" [{}]", module));
}

}  // namespace usdt
