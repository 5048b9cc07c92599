// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include "base/no_memory.hpp"
#include "base/try.hpp"
#include "find/find_functions.hpp"
#include "parsers/args.hpp"
#include "resolve/describe.hpp"
#include "sys/descriptor_room.hpp"
#include "usdt/probe_file.hpp"

namespace usdt {
inline namespace v1 {
namespace {

template <class Pattern>
std::vector<Pattern> those_of(const std::vector<PointPattern>& patterns) {
  std::vector<Pattern> out;
  for (const PointPattern& pattern : patterns) {
    if (const auto* wanted = std::get_if<Pattern>(&pattern)) out.push_back(*wanted);
  }
  return out;
}

/// What the patterns declare of a probe, best with as many arguments as the site has; null: nothing.
const ProbeDeclaration* declaration_of(const std::vector<ProbePattern>& patterns, const Site& site, Machine machine) {
  const ProbeDeclaration* found = nullptr;
  for (const ProbePattern& pattern : patterns) {
    if (!pattern.declarations || !pattern.matches(site.provider, site.name)) continue;
    for (const ProbeDeclaration& each : *pattern.declarations) {
      if (each.provider != site.provider || each.name != site.name) continue;
      if (resolve::declared_count(each.declared) == parsers::parse_args(site.args_text, machine).size()) return &each;
      if (found == nullptr) found = &each;
    }
  }
  return found;
}

/// Gives sites what patterns declare of them. Sites of one probe with equal descriptions go on sharing one.
void declare_arguments(const std::vector<ProbePattern>& patterns, Machine machine, std::vector<Site>& sites) {
  if (std::ranges::none_of(patterns, [](const ProbePattern& pattern) { return pattern.declarations != nullptr; }))
    return;
  std::map<std::pair<const ProbeDeclaration*, const SiteDescription*>, std::shared_ptr<const SiteDescription>> made;
  for (Site& site : sites) {
    if (site.description && !site.description->declared.empty()) continue;
    const ProbeDeclaration* declaration = declaration_of(patterns, site, machine);
    if (declaration == nullptr) continue;
    auto& shared = made[{declaration, site.description.get()}];
    if (!shared) {
      SiteDescription both = site.description ? *site.description : SiteDescription();
      both.declared = declaration->declared;
      shared = std::make_shared<const SiteDescription>(std::move(both));
    }
    site.description = shared;
  }
}

Result<void> add_sites(const std::vector<ProbePattern>& patterns, ProbeFile& file) {
  Result<ScanResult> scanned = file.elf->scan();
  if (!scanned) return fail(std::move(scanned.error()));
  file.sites = std::move(scanned->sites);
  file.warnings = std::move(scanned->warnings);
  if (patterns.empty()) return {};
  std::erase_if(file.sites, [&patterns](const Site& site) {
    return std::ranges::none_of(
        patterns, [&site](const ProbePattern& pattern) { return pattern.matches(site.provider, site.name); });
  });
  declare_arguments(patterns, file.elf->machine(), file.sites);
  return {};
}

}  // namespace

Result<ProbeFile> find_probes(const TargetFile& target, const std::vector<PointPattern>& patterns,
                              const OpenOptions& options) {
  return find::find_probes(target, patterns, {}, options);
}

}  // namespace v1
}  // namespace usdt

namespace usdt::find {

Result<ProbeFile> find_probes(const TargetFile& target, const std::vector<PointPattern>& patterns,
                              const FilesBeside& beside, const OpenOptions& options) try {
  TRY(sys::need_descriptors(sys::kDescriptorsToRead, "reading a file and its debug information"));
  const auto probes = those_of<ProbePattern>(patterns);
  const auto functions = those_of<FunctionPattern>(patterns);
  OpenOptions asked = options;
  asked.debuginfod = options.debuginfod || std::ranges::any_of(functions, &FunctionPattern::debuginfod);
  Result<ElfFile> elf = ElfFile::open(target.access, asked);
  if (!elf) return fail(std::move(elf.error()));
  ProbeFile file{.target = target, .elf = std::make_shared<const ElfFile>(std::move(*elf)), .sites = {}};
  if (patterns.empty() || !probes.empty()) {
    TRY(add_sites(probes, file));
  }
  if (!functions.empty()) {
    TRY(add_functions(functions, options.stop, beside, file));
  }
  return file;
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

}  // namespace usdt::find
