// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/catalogue.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/try.hpp"
#include "kernel/ask.hpp"
#include "kernel/ask_lists.hpp"
#include "kernel/merge.hpp"
#include "kernel/wanted.hpp"

namespace usdt::kernel {
namespace {

std::string_view file_of(std::string_view module) noexcept { return module.empty() ? "vmlinux" : module; }

}  // namespace

Result<std::shared_ptr<const Catalogue>> Catalogue::load(const Sources& sources,
                                                         std::span<const KernelPattern> patterns) {
  const std::shared_ptr<Catalogue> made(new Catalogue(sources));
  const bool tracepoints = patterns.empty() || std::ranges::any_of(patterns, is_tracepoint);
  const bool functions = patterns.empty() || !std::ranges::all_of(patterns, is_tracepoint);
  if (const auto types = made->read_types(""); types) {
    made->types_.emplace("", *types);
  } else {
    made->miss(types.error(), "a kernel without CONFIG_DEBUG_INFO_BTF has no types");
    made->types_.emplace("", nullptr);
  }
  if (functions) made->load_functions(patterns);
  if (tracepoints) made->load_tracepoints(patterns);
  if (!made->lists_functions_ && made->tracepoints_.empty())
    return fail(made->unusable(functions ? "the kernel's functions" : "the kernel's raw tracepoints"));
  return made;
}

bool Catalogue::ask_for_functions(std::span<const KernelPattern> patterns) {
  // A question takes some milliseconds, the lists a thousand times that; and other sources cannot be asked.
  constexpr std::size_t most_asked = 64;
  const btf::Types* types = btf("");
  if (!types || patterns.empty() || sources_ != Sources()) return false;
  std::unordered_set<std::string_view> names;
  for (const KernelPattern& pattern : patterns) {
    if (is_tracepoint(pattern)) continue;
    if (!is_plain(pattern.name) || !(pattern.module.empty() || pattern.module == "vmlinux")) return false;
    names.insert(pattern.name);
  }
  if (names.empty() || names.size() > most_asked || !tells_functions_apart()) return false;
  std::vector<KernelFunction> found;
  for (const btf::Function& type : types->functions_of(names)) {
    // The first of the name; name_types() looks at the others. Whose type it has is the kernel's, and no module's.
    if (names.erase(type.name) == 0) continue;
    const auto address = ask_function(std::string(type.name));
    if (!address) return false;
    KernelFunction& function = found.emplace_back();
    function.name = type.name;  // of the types, which the catalogue keeps
    function.address = *address;
    function.ftrace = true;
  }
  if (!names.empty()) return false;
  std::ranges::sort(found, {}, &KernelFunction::name);
  functions_ = std::move(found);
  name_types(functions_);
  lists_functions_ = knows_ftrace_ = true;
  return true;
}

std::optional<AskedSymbols> Catalogue::ask_for_globs(std::span<const KernelPattern> patterns, ModuleNames& modules) {
  constexpr std::size_t most_asked = 64;
  const btf::Types* types = btf("");
  // Without the blacklist its sections are needed, whose markers no pattern means.
  if (!types || patterns.empty() || sources_ != Sources() || ::access(sources_.blacklist.c_str(), R_OK) != 0)
    return std::nullopt;
  std::set<std::string_view> beginnings;
  for (const KernelPattern& pattern : patterns) {
    if (is_tracepoint(pattern)) continue;
    const std::string_view name = pattern.name;
    const std::string_view beginning = name.substr(0, std::min<std::size_t>(name.find_first_of("*?[\\"), 8));
    if (beginning.empty()) return std::nullopt;
    beginnings.insert(beginning);
  }
  if (beginnings.size() > most_asked) return std::nullopt;
  const auto places = ask_ftrace_places(*types);
  if (!places) return std::nullopt;
  auto text = ask_symbols(*types, std::vector(beginnings.begin(), beginnings.end()));
  if (!text) return std::nullopt;
  return parse_asked(keep(std::move(*text)), *places, modules);
}

void Catalogue::load_functions(std::span<const KernelPattern> patterns) {
  if (ask_for_functions(patterns)) return;
  ModuleNames modules;
  Symbols symbols;
  std::vector<Named> listed;
  if (auto asked = ask_for_globs(patterns, modules)) {
    symbols.functions = std::move(asked->functions);
    listed = std::move(asked->listed);
    lists_functions_ = knows_ftrace_ = true;
  } else {
    // The kernel takes its time to write the two long lists: both at once; where no thread is to be had, one by one.
    auto with_addresses = std::async([this] { return read_tracefs("available_filter_functions_addrs"); });
    symbols = read_symbols(modules);
    listed = read_ftrace(with_addresses.get(), modules);
  }
  read_blacklist(std::move(symbols.unprobeable));
  // Names at least, where neither list can be had.
  if (const btf::Types* types = btf(""); types && symbols.functions.empty() && listed.empty()) {
    for (const btf::Function& function : types->functions()) symbols.functions.push_back({.name = function.name});
  }
  lists_functions_ = lists_functions_ || !symbols.functions.empty() || !listed.empty();
  if (!patterns.empty()) keep_wanted(patterns, modules, symbols, listed);
  FunctionList merged = merge_lists(std::move(symbols), std::move(listed), modules);
  functions_ = std::move(merged.functions);
  unsure_ = std::move(merged.unsure);
  for (KernelFunction& function : functions_) function.denied = is_denied(function);
  for (const std::span<const KernelFunction> part : by_module(functions_)) {
    name_types(std::span(functions_).subspan(static_cast<std::size_t>(part.data() - functions_.data()), part.size()));
  }
}

Symbols Catalogue::read_symbols(ModuleNames& modules) {
  const auto text = keep(sources_.kallsyms, "");
  Symbols symbols = text ? parse_kallsyms(*text, modules) : Symbols{};
  if (text && symbols.hidden && !symbols.functions.empty())
    missing_.push_back(fmt::format("{} hides addresses (kernel.kptr_restrict): run as root", sources_.kallsyms));
  return symbols;
}

std::vector<Named> Catalogue::read_ftrace(Result<Text>&& with_addresses, ModuleNames& modules) {
  if (with_addresses) {
    std::vector<Named> listed = parse_filter_functions(keep(std::move(*with_addresses)), true, modules);
    knows_ftrace_ = !listed.empty();
    if (knows_ftrace_) return listed;
  }
  const auto text = keep_tracefs("available_filter_functions");
  if (!text) return {};
  knows_ftrace_ = true;
  return parse_filter_functions(*text, false, modules);
}

void Catalogue::read_blacklist(std::vector<AddressRange>&& sections) {
  const auto text = keep(sources_.blacklist, "mount -t debugfs debugfs /sys/kernel/debug");
  if (text) blacklist_ = parse_blacklist(*text);
  // The file has these sections too (kernel/kprobes.c: populate_kprobe_blacklist), where it can be had.
  if (blacklist_.ranges.empty()) blacklist_.ranges = std::move(sections);
}

bool Catalogue::is_denied(const KernelFunction& function) const {
  if (function.address == 0 || blacklist_.ranges.empty())
    return std::ranges::binary_search(blacklist_.names, function.name);
  const auto behind = std::ranges::upper_bound(blacklist_.ranges, function.address, {}, &AddressRange::begin);
  return behind != blacklist_.ranges.begin() && function.address < std::prev(behind)->end;
}

void Catalogue::name_types(std::span<KernelFunction> functions) {
  const btf::Types* types = btf(functions.front().module);
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

void Catalogue::load_tracepoints(std::span<const KernelPattern> patterns) {
  if (btf("")) {
    add_tracepoints("");
    const auto here = [&](const KernelPattern& pattern) {
      return pattern.module.empty() &&
             std::ranges::binary_search(tracepoints_, std::string_view(pattern.name), {}, &KernelFunction::name);
    };
    const auto needs_modules = [&](const KernelPattern& pattern) { return is_tracepoint(pattern) && !here(pattern); };
    if (!patterns.empty() && std::ranges::none_of(patterns, needs_modules)) return;
    for (const std::string& module : modules_with_btf()) add_tracepoints(module);
    return;
  }
  const auto text = keep_tracefs("available_events");
  if (!text) return;
  for (const std::string_view name : parse_events(*text)) tracepoints_.emplace_back().name = name;
}

void Catalogue::add_tracepoints(std::string_view module) {
  const btf::Types* types = btf(module);
  if (!types) return;
  const std::size_t first = tracepoints_.size();
  // The key in types_ outlives the tracepoints.
  const std::string_view kept = types_.find(module)->first;
  for (const btf::Function& found : types->tracepoints()) {
    KernelFunction& tracepoint = tracepoints_.emplace_back();
    tracepoint.name = found.name;
    tracepoint.module = kept;
    tracepoint.btf_id = found.id;
    tracepoint.proto_id = found.proto;
  }
  std::ranges::sort(std::span(tracepoints_).subspan(first), {}, &KernelFunction::name);
}

std::vector<std::string> Catalogue::modules_with_btf() const {
  std::vector<std::string> out;
  std::error_code ec;
  for (std::filesystem::directory_iterator it(sources_.btf, ec), end; !ec && it != end; it.increment(ec)) {
    if (it->path().filename() != "vmlinux") out.push_back(it->path().filename().string());
  }
  std::ranges::sort(out);
  return out;
}

const btf::Types* Catalogue::btf(std::string_view module) const {
  if (module == "vmlinux") module = {};
  const auto known = types_.find(module);
  if (known != types_.end()) return known->second.get();
  return types_.emplace(module, read_types(module).value_or(nullptr)).first->second.get();
}

Result<std::shared_ptr<const btf::Types>> Catalogue::read_types(std::string_view module) const {
  // Other stages want the running kernel's, too.
  if (module.empty() && sources_.btf == Sources().btf) return btf::Types::load();
  std::shared_ptr<const btf::Types> base;
  if (!module.empty()) {
    if (!btf("")) return fail(ErrorKind::not_supported, "no types of the kernel");
    base = types_.find("")->second;
  }
  const std::string path = fmt::format("{}/{}", sources_.btf, file_of(module));
  const auto text = TRY(Text::read(path));
  const auto bytes = std::as_bytes(std::span(text.view()));
  auto types = btf::Types::parse({bytes.begin(), bytes.end()}, std::move(base));
  if (!types) return fail(types.error().within(path));
  return types;
}

void Catalogue::miss(const Error& error, std::string_view advice) {
  const bool privilege = error.kind == ErrorKind::no_permission;
  no_permission_ = no_permission_ || privilege;
  if (privilege) advice = "run as root";
  missing_.push_back(advice.empty() ? error.message : fmt::format("{}: {}", error.message, advice));
}

std::string_view Catalogue::keep(Text&& text) { return texts_.emplace_back(std::move(text)).view(); }

std::optional<std::string_view> Catalogue::keep(const std::string& path, std::string_view advice) {
  auto text = Text::read(path);
  if (text) return keep(std::move(*text));
  miss(text.error(), advice);
  return std::nullopt;
}

Result<Text> Catalogue::read_tracefs(std::string_view name) const {
  std::optional<Error> first;
  for (const std::string& directory : sources_.tracefs) {
    auto text = Text::read(fmt::format("{}/{}", directory, name));
    if (text) return text;
    if (!first || text.error().kind == ErrorKind::no_permission) first = text.error();
  }
  return fail(first.value_or(Error{ErrorKind::not_found, fmt::format("no tracefs with {}", name)}));
}

std::optional<std::string_view> Catalogue::keep_tracefs(std::string_view name) {
  auto text = read_tracefs(name);
  if (text) return keep(std::move(*text));
  const bool mounted = std::ranges::any_of(sources_.tracefs, [](const std::string& directory) {
    return ::access(fmt::format("{}/trace", directory).c_str(), F_OK) == 0;
  });
  miss(text.error(), mounted ? "a kernel without CONFIG_DYNAMIC_FTRACE has no such list"
                             : "mount -t tracefs tracefs /sys/kernel/tracing");
  return std::nullopt;
}

Error Catalogue::unusable(std::string_view what) const {
  const ErrorKind kind = no_permission_ ? ErrorKind::no_permission : ErrorKind::not_supported;
  return {kind, fmt::format("cannot list {}: {}", what, fmt::join(missing_, "; "))};
}

}  // namespace usdt::kernel
