// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/kernel_symbols.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <string_view>

#include "kernel/symbol_lists.hpp"
#include "kernel/tracer_frame.hpp"

namespace usdt {
inline namespace v1 {

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

std::optional<KernelSymbol> KernelSymbols::find(std::uint64_t address) {
  if (!impl_->loaded) impl_->load();
  const auto after =
      std::upper_bound(impl_->code.begin(), impl_->code.end(), address,
                       [](std::uint64_t value, const kernel::Named& each) { return value < each.address; });
  // Behind the last symbol of a module there may be anything.
  constexpr std::uint64_t longest = 0x100000;
  if (after == impl_->code.begin() || address - (after - 1)->address > longest) return std::nullopt;
  const kernel::Named& found = *(after - 1);
  return KernelSymbol{std::string(found.name), std::string(impl_->modules.name(found.module)), address - found.address};
}

std::string KernelSymbols::name(std::uint64_t address) {
  const auto found = find(address);
  if (!found) return fmt::format("{:#x}", address);
  return fmt::format("{}+{:#x}{}", found->name, found->distance,
                     found->module.empty() ? "" : fmt::format(" [{}]", found->module));
}

}  // namespace v1
}  // namespace usdt

namespace usdt::kernel {

bool is_tracer_frame(std::uint64_t address) {
  // BPF_TRACE_DEFN_x (kernel/trace/bpf_trace.c), __DECLARE_TRACE (include/trace/bpf_probe.h), DEFINE_TRACE_FN
  // (include/linux/tracepoint.h).
  static constexpr std::array<std::string_view, 4> prefixes = {"bpf_trace_run", "__bpf_trace_", "__traceiter_",
                                                               "bpf_prog_"};
  static std::mutex mutex;
  static KernelSymbols symbols;
  const std::lock_guard lock(mutex);
  const std::string name = symbols.name(address);
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace usdt::kernel
