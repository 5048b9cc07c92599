// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/match.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kernel/attachable.hpp"
#include "kernel/names.hpp"

namespace usdt::kernel {
namespace {

using Functions = std::vector<const KernelFunction*>;

/// Returns the functions of the pattern's name and module, whatever can be done with them.
Functions named(const KernelPattern& pattern, std::span<const KernelFunction> all) {
  Functions out;
  for (const std::span<const KernelFunction> part : by_module(all)) {
    if (!module_matches(pattern.module, part.front().module)) continue;
    if (is_plain(pattern.name)) {
      const std::string_view name = pattern.name;
      for (auto at = std::ranges::lower_bound(part, name, {}, &KernelFunction::name);
           at != part.end() && at->name == name; ++at)
        out.push_back(&*at);
    } else {
      for (const KernelFunction& function : part) {
        if (glob_match(pattern.name, function.name)) out.push_back(&function);
      }
    }
  }
  return out;
}

/// Leaves one name for each address: the one the kernel lists, if that is among them.
void drop_aliases(Functions& functions) {
  if (std::ranges::none_of(functions, &KernelFunction::alias)) return;
  Functions by_address = functions;
  std::ranges::stable_sort(by_address, [](const KernelFunction* a, const KernelFunction* b) {
    return a->address != b->address ? a->address < b->address : a->alias < b->alias;
  });
  std::erase_if(functions, [&](const KernelFunction* function) {
    if (!function->alias) return false;
    return *std::ranges::lower_bound(by_address, function->address, {}, &KernelFunction::address) != function;
  });
}

std::string_view what_is_sought(const KernelPattern& pattern) noexcept {
  return is_tracepoint(pattern) ? "raw tracepoint" : "kernel function";
}

/// Divides `meant` into what can be attached to, and what cannot, with the reasons.
void judge(const Catalogue& catalogue, const KernelPattern& pattern, std::span<const KernelFunction* const> meant,
           Match& out) {
  for (const KernelFunction* function : meant) {
    std::string reason = why_not(catalogue, *function, pattern.kind);
    if (reason.empty()) {
      out.functions.push_back(function);
    } else {
      out.refused.push_back(
          {pattern.kind, std::string(function->name), std::string(function->module), std::move(reason)});
    }
  }
}

void refuse_unsure(const Catalogue& catalogue, const KernelPattern& pattern, Match& out) {
  for (const std::uint32_t index : catalogue.unsure()) {
    const KernelFunction& function = catalogue.functions()[index];
    if (!module_matches(pattern.module, function.module) || !glob_match(pattern.name, function.name)) continue;
    out.refused.push_back({pattern.kind, std::string(function.name), std::string(function.module),
                           "its name is not unique, and kernels before 6.5 do not say which of them ftrace can trace"});
  }
}

void refuse_not_in_globs(const KernelPattern& pattern, Functions& meant, Match& out) {
  for (const KernelFunction* function : meant) {
    if (not_in_globs(function->name))
      out.refused.push_back(
          {pattern.kind, std::string(function->name), std::string(function->module),
           "globs leave out the idle loop and the inside of RCU, as the kernel's own tests do: name it"});
  }
  std::erase_if(meant, [](const KernelFunction* function) { return not_in_globs(function->name); });
}

Error nothing_found(const Sources& sources, const KernelPattern& pattern) {
  // Suggestions need all names: only those that the patterns match were kept.
  const auto everything = Catalogue::load(sources);
  if (!everything) return everything.error();
  const Catalogue& whole = **everything;
  const std::span<const KernelFunction> all = is_tracepoint(pattern) ? whole.tracepoints() : whole.functions();
  const std::string_view what = what_is_sought(pattern);
  const auto in_module = [&](std::span<const KernelFunction> part) {
    return module_matches(pattern.module, part.front().module);
  };
  if (std::ranges::none_of(by_module(all), in_module)) {
    const KernelPattern anywhere{pattern.kind, "", pattern.name};
    const bool elsewhere = !named(anywhere, all).empty();
    return {ErrorKind::not_found,
            fmt::format("no {} '{}' with {}s is loaded{}", has_glob(pattern.module) ? "module like" : "module",
                        pattern.module, what, elsewhere ? fmt::format(": did you mean {}?", anywhere.str()) : "")};
  }
  const std::string where = pattern.module.empty() ? "" : fmt::format(" in {}", pattern.module);
  if (has_glob(pattern.name))
    return {ErrorKind::not_found, fmt::format("no {} matches '{}'{}", what, pattern.name, where)};
  const auto near = near_names(pattern.name, all);
  return {ErrorKind::not_found, fmt::format("no {} '{}'{}{}", what, pattern.name, where,
                                            near.empty() ? "" : fmt::format("; near: {}", fmt::join(near, ", ")))};
}

}  // namespace

Result<Match> match(const Catalogue& catalogue, const KernelPattern& pattern) {
  const bool tracepoint = is_tracepoint(pattern);
  const std::span<const KernelFunction> all = tracepoint ? catalogue.tracepoints() : catalogue.functions();
  if (tracepoint ? all.empty() : !catalogue.lists_functions())
    return fail(catalogue.unusable(fmt::format("{}s", what_is_sought(pattern))));
  const bool glob = has_glob(pattern.name);
  if (glob && !tracepoint && !catalogue.knows_ftrace())
    return fail(catalogue.unusable("what ftrace can trace, which a glob needs").within(pattern.str()));
  Functions meant = named(pattern, all);
  if (meant.empty()) return fail(nothing_found(catalogue.sources(), pattern));
  Match out;
  if (glob && !tracepoint) {
    const std::size_t symbols = meant.size();
    std::erase_if(meant, [](const KernelFunction* function) { return !function->ftrace; });
    refuse_unsure(catalogue, pattern, out);
    refuse_not_in_globs(pattern, meant, out);
    if (meant.empty() && out.refused.empty()) {
      return fail(ErrorKind::not_found, fmt::format("ftrace can trace none of the {} functions that '{}' matches: name "
                                                    "one, without a glob, and a kprobe may do",
                                                    symbols, pattern.str()));
    }
  }
  judge(catalogue, pattern, meant, out);
  if (glob && !tracepoint) drop_aliases(out.functions);
  return out;
}

}  // namespace usdt::kernel
