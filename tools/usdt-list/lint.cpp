// SPDX-License-Identifier: BSD-2-Clause
#include "lint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "common/report.hpp"
#include "io/json.hpp"

namespace usdt_list {
namespace {

using usdt::Site;
using usdt::io::json_key;
using usdt::io::json_text;

/// The letters of a provider's name alone: what a slip of the pen changes least.
std::string folded(std::string_view provider) {
  std::string out;
  for (const char c : provider)
    if (c != '_' && c != '-') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// One letter changed, left out or added.
bool one_letter_apart(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > 1) return false;
  const auto [left, right] = std::ranges::mismatch(a, b);
  const std::string_view rest_a(left, a.end());
  const std::string_view rest_b(right, b.end());
  return a.size() == b.size() ? rest_a.substr(!rest_a.empty()) == rest_b.substr(!rest_b.empty())
                              : rest_a == rest_b.substr(1);
}

bool is_below_stack(const usdt::Arg& arg, usdt::Machine machine) {
  const auto* memory = std::get_if<usdt::Memory>(&arg.location);
  return memory && usdt::register_info(machine, memory->base).name == "rsp" &&
         static_cast<std::int64_t>(memory->displacement) < 0;
}

bool is_nop5(const Site& site) {
  return site.site_class == usdt::SiteClass::nop5 || site.site_class == usdt::SiteClass::nop_nop5;
}

/// Both are the whole, or the lowest bytes, of one register, or the same memory.
bool is_same_place(const usdt::Location& one, const usdt::Location& other, usdt::Machine machine) {
  const auto same = [machine](usdt::RegisterId a, usdt::RegisterId b) {
    const usdt::RegisterInfo left = usdt::register_info(machine, a);
    const usdt::RegisterInfo right = usdt::register_info(machine, b);
    return left.canon == right.canon && left.shift == right.shift;
  };
  const auto* a = std::get_if<usdt::Register>(&one);
  const auto* b = std::get_if<usdt::Register>(&other);
  if (a && b) return same(a->id, b->id) && same(a->high, b->high);
  const auto* memory = std::get_if<usdt::Memory>(&one);
  const auto* beside = std::get_if<usdt::Memory>(&other);
  if (!memory || !beside || !same(memory->base, beside->base)) return false;
  usdt::Memory based = *memory;
  based.base = beside->base;
  return based == *beside;
}

/// Looks at the sites of one file, one by one and beside each other.
class Linter {
 public:
  explicit Linter(const usdt::ProbeFile& file) : file_(file), decoder_(*file.elf) {}

  std::vector<Finding> run() {
    for (const Site& site : file_.sites) {
      look_at_place(site);
      look_at_arguments(site);
      look_at_semaphore(site);
    }
    look_at_signs();
    look_at_probes();
    look_at_providers();
    return std::move(findings_);
  }

 private:
  void add(std::string_view rule, const Site& site, std::string text, bool fault = true) {
    findings_.push_back(
        {rule, fault, usdt::probe_name(file_.target, site.provider, site.name), &site, std::move(text)});
  }

  [[nodiscard]] bool has_code() const {
    const usdt::ElfKind kind = file_.elf->kind();
    return (kind == usdt::ElfKind::executable || kind == usdt::ElfKind::dynamic);
  }

  void look_at_place(const Site& site) {
    if (!has_code() || !site.member.empty()) return;
    if (!site.offset)
      return add("phantom", site, "a note without its code: the linker dropped the one and kept the other");
    if (site.site_class == usdt::SiteClass::single_step)
      add("no-nop", site, "not a nop: the kernel steps the instruction, which costs about ten times as much");
    if (site.site_class == usdt::SiteClass::nop5)
      add("nop5", site, "a 5-byte nop: Linux 6.18 makes a call of it that overwrites the red zone");
    const auto [first, fresh] = at_.try_emplace(site.pc.value, &site);
    if (fresh) return;
    const Site& other = *first->second;
    if (other.provider == site.provider && other.name == site.name)
      add("duplicate", site, "there are two notes of this site");
    else
      add("folded", site,
          fmt::format("at the place of {}:{}: a hit of one is a hit of both (linked with --icf?)", other.provider,
                      other.name));
  }

  void look_at_arguments(const Site& site) {
    const std::vector<usdt::Arg> args = decoder_.decode(site);
    constexpr std::size_t kMost = 12;
    if (args.size() > kMost)
      add("arguments", site, fmt::format("{} arguments; tracers read {} at most", args.size(), kMost));
    for (std::size_t n = 0; n < args.size(); ++n) {
      if (!args[n].readable()) add("unreadable", site, fmt::format("arg{}: {}", n, args[n].why_unreadable()));
      if (is_nop5(site) && is_below_stack(args[n], decoder_.machine()))
        add("red-zone", site,
            fmt::format("arg{} ({}) is below the stack pointer, where the call that Linux 6.18 makes of the nop writes",
                        n, args[n].source));
    }
    const bool described = std::ranges::any_of(args, [](const auto& arg) { return arg.declaration != nullptr; });
    if (site.description && !args.empty() && !described)
      add("description", site, "its provider describes other arguments than the note has", false);
  }

  /// Compares signs with the variables of the source, if there is debug information. A cast looks like a mistake here.
  void look_at_signs() {
    constexpr std::size_t kMost = 1000;  // sites: each reads a unit of the debug information
    const auto sites = std::span(file_.sites).first(std::min(kMost, file_.sites.size()));
    const auto variables = usdt::site_variables(*file_.elf, sites);
    for (std::size_t i = 0; variables && i < sites.size(); ++i) {
      const std::vector<usdt::Arg> args = decoder_.decode(file_.sites[i]);
      for (std::size_t n = 0; n < args.size(); ++n) look_at_sign(file_.sites[i], n, args[n], (*variables)[i]);
    }
  }

  void look_at_sign(const Site& site, std::size_t n, const usdt::Arg& arg, const std::vector<usdt::Arg>& variables) {
    if (arg.type.kind != usdt::TypeKind::integer) return;
    const auto there = [&](const usdt::Arg& variable) {
      return variable.type.kind == usdt::TypeKind::integer && variable.type.size == arg.type.size &&
             variable.steps.empty() && is_same_place(variable.location, arg.location, decoder_.machine());
    };
    const auto other_sign = [&](const usdt::Arg& variable) { return variable.type.is_signed != arg.type.is_signed; };
    const auto found = std::ranges::find_if(variables, there);
    // If several variables are in this place, the argument may be any of them.
    if (found == variables.end() || !std::ranges::all_of(variables, [&](const usdt::Arg& variable) {
          return !there(variable) || other_sign(variable);
        }))
      return;
    add("sign", site,
        fmt::format("arg{} ({}) is {}, and the variable that is there, {} {}, is not", n, arg.source,
                    arg.type.is_signed ? "signed" : "unsigned", found->c_type(), found->name()),
        false);
  }

  void look_at_semaphore(const Site& site) {
    if (has_code() && site.has_semaphore && !site.semaphore_offset && site.offset)
      add("semaphore", site,
          fmt::format("its semaphore at {:#x} is in no writable segment: it can never be enabled",
                      site.semaphore_adjusted.value));
  }

  /// Compares the sites of each probe.
  void look_at_probes() {
    std::map<std::pair<std::string_view, std::string_view>, std::vector<const Site*>> probes;
    for (const Site& site : file_.sites) probes[{site.provider, site.name}].push_back(&site);
    for (const auto& [name, sites] : probes) {
      const Site& first = *sites.front();
      std::set<std::string> signatures;
      for (const Site* site : sites) signatures.insert(usdt::signature_text(decoder_.decode(site->args_text)));
      const auto has = [](const Site* site) { return site->has_semaphore; };
      if (std::ranges::any_of(sites, has) && !std::ranges::all_of(sites, has))
        add("semaphore", first, "some of its sites have a semaphore, some have none");
      if (signatures.size() > 1)
        add("signatures", first,
            fmt::format("its {} sites have {} signatures: {} and {}", sites.size(), signatures.size(),
                        *signatures.begin(), *signatures.rbegin()),
            false);
    }
  }

  void look_at_providers() {
    std::map<std::string_view, const Site*> providers;
    for (const Site& site : file_.sites) providers.try_emplace(site.provider, &site);
    constexpr std::size_t kMost = 200;  // pairs are compared
    if (providers.size() > kMost) return;
    for (auto one = providers.begin(); one != providers.end(); ++one) {
      for (auto other = std::next(one); other != providers.end(); ++other) {
        const std::string a = folded(one->first);
        const std::string b = folded(other->first);
        constexpr std::size_t kShort = 5;
        if (a == b || (std::min(a.size(), b.size()) >= kShort && one_letter_apart(a, b)))
          add("provider", *other->second, fmt::format("provider {} is nearly {}: misspelt?", other->first, one->first),
              false);
      }
    }
  }

  const usdt::ProbeFile& file_;
  usdt::ArgDecoder decoder_;
  std::map<std::uint64_t, const Site*> at_;
  std::vector<Finding> findings_;
};

/// Bytes of the stapsdt notes: header, owner, three addresses, three strings.
std::size_t bytes_of_notes(const usdt::ProbeFile& file) {
  const std::size_t word = address_size(file.elf->machine());
  std::size_t bytes = 0;
  for (const Site& site : file.sites)
    bytes += (20 + 3 * word + site.provider.size() + site.name.size() + site.args_text.size() + 3 + 3) / 4 * 4;
  return bytes;
}

void print_json_line(const Finding& finding, const std::string& path, usdt::io::Stream& out) {
  rapidjson::StringBuffer buffer;
  usdt::io::JsonWriter json(buffer);
  json.StartObject();
  json_key(json, "v"), json.Uint(1);
  json_key(json, "type"), json_text(json, "lint");
  json_key(json, "file"), json_text(json, path);
  json_key(json, "probe"), json_text(json, finding.probe);
  json_key(json, "pc"), json_text(json, fmt::format("{:#x}", finding.site->pc.value));
  json_key(json, "rule"), json_text(json, finding.rule);
  json_key(json, "fault"), json.Bool(finding.fault);
  json_key(json, "text"), json_text(json, finding.text);
  json.EndObject();
  out.json({buffer.GetString(), buffer.GetSize()});
}

}  // namespace

std::vector<Finding> lint(const usdt::ProbeFile& file) { return Linter(file).run(); }

std::size_t print_lint(const usdt::ProbeFile& file, Format format, usdt::io::Stream& out) {
  const std::vector<Finding> findings = lint(file);
  const std::string path = file.target.access.string();
  for (const Finding& finding : findings) {
    if (format == Format::json)
      print_json_line(finding, path, out);
    else
      out.print("{} at {:#x}: {}: {} [{}]\n", finding.probe, finding.site->pc.value, finding.fault ? "fault" : "note",
                finding.text, finding.rule);
  }
  const auto faults = static_cast<std::size_t>(std::ranges::count_if(findings, &Finding::fault));
  if (format == Format::text)
    out.print("{}: {}, {} bytes of notes, {}\n", path, usdt::tools::counted(file.sites.size(), "site"),
              bytes_of_notes(file), usdt::tools::counted(faults, "fault"));
  return faults;
}

}  // namespace usdt_list
