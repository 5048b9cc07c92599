// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/read_tracepoints.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "kernel/names.hpp"

namespace usdt::kernel {
namespace {

void add_module(std::string_view module, const ModuleTypes& all, std::vector<KernelFunction>& tracepoints) {
  const btf::Types* types = all.find(module);
  if (!types) return;
  const std::size_t first = tracepoints.size();
  const std::string_view kept = all.kept_name(module);
  for (const btf::Function& found : types->tracepoints()) {
    KernelFunction& tracepoint = tracepoints.emplace_back();
    tracepoint.name = found.name;
    tracepoint.module = kept;
    tracepoint.btf_id = found.id;
    tracepoint.proto_id = found.proto;
  }
  std::ranges::sort(std::span(tracepoints).subspan(first), {}, &KernelFunction::name);
}

std::vector<KernelFunction> typed_tracepoints(const ModuleTypes& types, std::span<const KernelPattern> patterns) {
  std::vector<KernelFunction> out;
  add_module("", types, out);
  const auto here = [&](const KernelPattern& pattern) {
    return pattern.module.empty() &&
           std::ranges::binary_search(out, std::string_view(pattern.name), {}, &KernelFunction::name);
  };
  const auto needs_modules = [&](const KernelPattern& pattern) { return is_tracepoint(pattern) && !here(pattern); };
  if (!patterns.empty() && std::ranges::none_of(patterns, needs_modules)) return out;
  for (const std::string& module : types.modules()) add_module(module, types, out);
  return out;
}

}  // namespace

std::vector<KernelFunction> read_tracepoints(SourceTexts& texts, const ModuleTypes& types,
                                             std::span<const KernelPattern> patterns) {
  if (types.find("")) return typed_tracepoints(types, patterns);
  std::vector<KernelFunction> out;
  const auto text = texts.keep_tracefs("available_events");
  if (!text) return out;
  for (const std::string_view name : parse_events(*text)) out.emplace_back().name = name;
  return out;
}

}  // namespace usdt::kernel
