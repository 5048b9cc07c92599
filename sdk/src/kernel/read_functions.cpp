// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/read_functions.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <future>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "kernel/ask.hpp"
#include "kernel/ask_lists.hpp"
#include "kernel/names.hpp"
#include "kernel/wanted.hpp"

namespace usdt::kernel {
namespace {

/// A question to the kernel takes some milliseconds, a list a thousand times that: more are not asked.
constexpr std::size_t kMostAsked = 64;

/// Gives `functions`, which are of one module, the numbers of their types.
void name_types(const btf::Types* types, std::span<KernelFunction> functions) {
  if (!types) return;
  std::unordered_set<std::string_view> names;
  names.reserve(functions.size());
  // `x.isra.0` has other parameters than `x`, whatever a type may be called.
  for (const KernelFunction& function : functions) {
    if (function.name.find('.') == function.name.npos) names.insert(function.name);
  }
  std::unordered_map<std::string_view, btf::Function> found;
  std::unordered_set<std::string_view> differ;  // nothing says which of the two types a function of this name has
  for (const btf::Function& type : types->functions_of(names)) {
    const auto [of, fresh] = found.try_emplace(type.name, type);
    if (!fresh && of->second.proto != type.proto) differ.insert(type.name);
  }
  for (KernelFunction& function : functions) {
    const auto type = found.find(function.name);
    if (type == found.end() || differ.contains(function.name)) continue;
    function.btf_id = type->second.id;
    function.proto_id = type->second.proto;
  }
}

/// The names that `patterns` mean, if all are names of functions of the kernel itself, and few.
std::optional<std::unordered_set<std::string_view>> names_to_ask(std::span<const KernelPattern> patterns) {
  std::unordered_set<std::string_view> names;
  for (const KernelPattern& pattern : patterns) {
    if (is_tracepoint(pattern)) continue;
    if (!is_plain(pattern.name) || !(pattern.module.empty() || pattern.module == "vmlinux")) return std::nullopt;
    names.insert(pattern.name);
  }
  if (names.empty() || names.size() > kMostAsked) return std::nullopt;
  return names;
}

/// The kernel's answers about each function that `patterns` name; nothing if it cannot be asked, and the lists have to
/// be read. Other sources than the kernel's own cannot be asked.
std::optional<ReadFunctions> ask_functions(const btf::Types* types, const Sources& sources,
                                           std::span<const KernelPattern> patterns) {
  if (!types || patterns.empty() || sources != Sources()) return std::nullopt;
  auto names = names_to_ask(patterns);
  if (!names || !tells_functions_apart()) return std::nullopt;
  ReadFunctions out{.any = true, .knows_ftrace = true};
  for (const btf::Function& type : types->functions_of(*names)) {
    // The first of the name; name_types() looks at the others. Whose type it has is the kernel's, and no module's.
    if (names->erase(type.name) == 0) continue;
    const auto address = ask_function(std::string(type.name));
    if (!address) return std::nullopt;
    KernelFunction& function = out.list.functions.emplace_back();
    function.name = type.name;  // of the types, which are kept
    function.address = *address;
    function.ftrace = true;
  }
  if (!names->empty()) return std::nullopt;
  std::ranges::sort(out.list.functions, {}, &KernelFunction::name);
  name_types(types, out.list.functions);
  return out;
}

/// How the names begin that `patterns` mean; nothing: one may begin with anything, or there are too many.
std::optional<std::vector<std::string_view>> beginnings_to_ask(std::span<const KernelPattern> patterns) {
  std::set<std::string_view> beginnings;
  for (const KernelPattern& pattern : patterns) {
    if (is_tracepoint(pattern)) continue;
    const std::string_view name = pattern.name;
    const std::string_view beginning = name.substr(0, std::min<std::size_t>(name.find_first_of("*?[\\"), 8));
    if (beginning.empty()) return std::nullopt;
    beginnings.insert(beginning);
  }
  if (beginnings.size() > kMostAsked) return std::nullopt;
  return std::vector(beginnings.begin(), beginnings.end());
}

/// The contents of the two long lists: symbols, and what ftrace can trace.
struct LongLists {
  Symbols symbols = {};
  std::vector<Named> listed = {};
  bool knows_ftrace = false;
};

/// Asks the kernel for what `patterns` mean of the two long lists; nothing: it cannot be asked.
std::optional<LongLists> ask_lists(SourceTexts& texts, const btf::Types* types, std::span<const KernelPattern> patterns,
                                   ModuleNames& modules) {
  const Sources& sources = texts.sources();
  // Without the blacklist its sections are needed, whose markers no pattern means.
  if (!types || patterns.empty() || sources != Sources() || ::access(sources.blacklist.c_str(), R_OK) != 0)
    return std::nullopt;
  const auto beginnings = beginnings_to_ask(patterns);
  if (!beginnings) return std::nullopt;
  const auto places = ask_ftrace_places(*types);
  if (!places) return std::nullopt;
  auto text = ask_symbols(*types, *beginnings);
  if (!text) return std::nullopt;
  AskedSymbols asked = parse_asked(texts.keep(std::move(*text)), *places, modules);
  LongLists out{.listed = std::move(asked.listed), .knows_ftrace = true};
  out.symbols.functions = std::move(asked.functions);
  return out;
}

Symbols read_symbols(SourceTexts& texts, ModuleNames& modules) {
  const std::string& path = texts.sources().kallsyms;
  const auto text = texts.keep(path, "");
  Symbols symbols = text ? parse_kallsyms(*text, modules) : Symbols{};
  if (text && symbols.hidden && !symbols.functions.empty())
    texts.miss(path + " hides addresses (kernel.kptr_restrict): run as root");
  return symbols;
}

/// Reads what ftrace can trace, with addresses where the kernel tells them; nothing: it is not known.
std::optional<std::vector<Named>> read_ftrace(SourceTexts& texts, Result<Text>&& with_addresses, ModuleNames& modules) {
  if (with_addresses) {
    std::vector<Named> listed = parse_filter_functions(texts.keep(std::move(*with_addresses)), true, modules);
    if (!listed.empty()) return listed;
  }
  const auto text = texts.keep_tracefs("available_filter_functions");
  if (!text) return std::nullopt;
  return parse_filter_functions(*text, false, modules);
}

LongLists read_lists(SourceTexts& texts, ModuleNames& modules) {
  // The kernel takes its time to write the two long lists: both at once; where no thread is to be had, one by one.
  auto with_addresses = std::async([&texts] { return texts.read_tracefs("available_filter_functions_addrs"); });
  LongLists out{.symbols = read_symbols(texts, modules)};
  auto listed = read_ftrace(texts, with_addresses.get(), modules);
  out.knows_ftrace = listed.has_value();
  out.listed = std::move(listed).value_or(std::vector<Named>());
  return out;
}

/// `sections`: what is on it by section.
Blacklist read_blacklist(SourceTexts& texts, std::vector<AddressRange>&& sections) {
  const auto text = texts.keep(texts.sources().blacklist, "mount -t debugfs debugfs /sys/kernel/debug");
  Blacklist blacklist = text ? parse_blacklist(*text) : Blacklist();
  // The file has these sections too (kernel/kprobes.c: populate_kprobe_blacklist), where it can be had.
  if (blacklist.ranges.empty()) blacklist.ranges = std::move(sections);
  return blacklist;
}

bool is_denied(const Blacklist& blacklist, const KernelFunction& function) {
  if (function.address == 0 || blacklist.ranges.empty())
    return std::ranges::binary_search(blacklist.names, function.name);
  const auto behind = std::ranges::upper_bound(blacklist.ranges, function.address, {}, &AddressRange::begin);
  return behind != blacklist.ranges.begin() && function.address < std::prev(behind)->end;
}

}  // namespace

ReadFunctions read_functions(SourceTexts& texts, const ModuleTypes& types, std::span<const KernelPattern> patterns) {
  const btf::Types* core = types.find("");
  if (auto asked = ask_functions(core, texts.sources(), patterns)) return std::move(*asked);
  ModuleNames modules;
  auto asked = ask_lists(texts, core, patterns, modules);
  LongLists lists = asked ? std::move(*asked) : read_lists(texts, modules);
  const Blacklist blacklist = read_blacklist(texts, std::move(lists.symbols.unprobeable));
  // Names at least, where neither list can be had.
  if (core && lists.symbols.functions.empty() && lists.listed.empty()) {
    for (const btf::Function& function : core->functions()) lists.symbols.functions.push_back({.name = function.name});
  }
  ReadFunctions out{.any = asked || !lists.symbols.functions.empty() || !lists.listed.empty(),
                    .knows_ftrace = lists.knows_ftrace};
  if (!patterns.empty()) keep_wanted(patterns, modules, lists.symbols, lists.listed);
  out.list = merge_lists(std::move(lists.symbols), std::move(lists.listed), modules);
  const std::span<KernelFunction> all = out.list.functions;
  for (KernelFunction& function : all) function.denied = is_denied(blacklist, function);
  for (const std::span<const KernelFunction> part : by_module(all))
    name_types(types.find(part.front().module),
               all.subspan(static_cast<std::size_t>(part.data() - all.data()), part.size()));
  return out;
}

}  // namespace usdt::kernel
