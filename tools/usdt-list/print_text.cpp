// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/report.hpp"
#include "describe.hpp"
#include "io/terminal.hpp"
#include "io/width.hpp"
#include "listing.hpp"
#include "print.hpp"

namespace usdt_list {
namespace {

using usdt::io::printable;
using usdt::io::shown_width;
using usdt::io::Style;
using usdt::io::width_of;
using usdt::tools::counted;

/// How often each of some texts comes, in the order they came first. A probe can have as many as it has sites.
class Tally {
 public:
  void add(const std::string& text) {
    const auto [known, fresh] = number_.try_emplace(text, counts_.size());
    if (fresh)
      counts_.emplace_back(text, 1);
    else
      ++counts_[known->second].second;
  }
  [[nodiscard]] const std::vector<std::pair<std::string, std::size_t>>& counts() const { return counts_; }

 private:
  std::map<std::string, std::size_t> number_;
  std::vector<std::pair<std::string, std::size_t>> counts_;
};

/// The columns of one probe's line.
struct ProbeRow {
  std::string name;
  std::string signature;  ///< "(i32, u64)", or "2 signatures" where sites differ
  std::string semaphore;  ///< "semaphore" or "-"
  std::string sites;      ///< "3 sites"
  std::string remark;     ///< "1 unreadable", most often empty
};

std::string cost_word(const ListedSite& listed) {
  return listed.cost ? std::string(to_string(listed.cost->cost)) : "cost not known here";
}

/// "trap: breakpoint, nop emulated".
std::string cost_text(const ListedSite& listed) {
  return listed.cost ? fmt::format("{}: {}", cost_word(listed), listed.cost->text)
                     : "not known here: this kernel does not run files of that machine";
}

std::string signature_column(const ListedProbe& probe) {
  std::set<std::string_view> distinct;
  for (const ListedSite& site : probe.sites) distinct.insert(site.described->signature);
  return distinct.size() == 1 ? std::string(*distinct.begin()) : counted(distinct.size(), "signature");
}

std::string unreadable_remark(const ListedProbe& probe) {
  // At different sites the same argument may be readable or not: the worst site is what counts.
  std::size_t most = 0;
  for (const ListedSite& site : probe.sites) most = std::max(most, site.described->unreadable);
  return most == 0 ? std::string() : fmt::format("{} unreadable", most);
}

/// The part of an argument text to show with a mark at `column`, which is moved along: all of it, unless it is longer
/// than anyone reads.
std::string_view excerpt(std::string_view text, std::size_t& column) {
  constexpr std::size_t kMost = 1000, kBefore = 200;
  if (text.size() <= kMost) return text;
  const std::size_t start = column > kBefore ? column - kBefore : 0;
  column -= start;
  return text.substr(start, kMost);
}

ProbeRow row_of(const ListedProbe& probe) {
  const bool semaphore = std::ranges::any_of(probe.sites, [](const ListedSite& s) { return s.site->has_semaphore; });
  return {printable(probe.name), signature_column(probe), semaphore ? "semaphore" : "-",
          counted(probe.sites.size(), "site"), unreadable_remark(probe)};
}

constexpr std::size_t kIndent = 4;  ///< of what goes below a name

class TextPrinter {
 public:
  TextPrinter(const usdt::ProbeFile& file, int verbosity, bool heading, usdt::io::Stream& out)
      : file_(file),
        decoder_(file, verbosity >= 1 ? Costs::yes : Costs::no),
        verbosity_(verbosity),
        heading_(heading),
        out_(out) {}

  void print() {
    const std::vector<ListedProbe> probes = group_probes(file_, decoder_);
    std::vector<ProbeRow> rows;
    if (out_.terminal().interactive && heading_) rows.push_back({"PROBE", "ARGUMENTS", "SEMAPHORE", "SITES", ""});
    const std::size_t headings = rows.size();
    for (const ListedProbe& probe : probes) rows.push_back(row_of(probe));
    if (out_.terminal().interactive) measure(rows);
    for (std::size_t i = 0; i < headings; ++i) print_aligned(rows[i], true);
    for (std::size_t i = 0; i < probes.size(); ++i) {
      const ProbeRow& row = rows[headings + i];
      out_.terminal().interactive ? print_aligned(row) : print_tabbed(row);
      if (verbosity_ >= 1) print_probe(probes[i]);
      if (verbosity_ >= 2) print_sites(probes[i]);
      out_.flush_if_full();
    }
  }

 private:
  /// Columns as wide as their widest cell, as far as the terminal has room for all of them; what does not fit goes
  /// below the name.
  void measure(const std::vector<ProbeRow>& rows) {
    const std::size_t tail = 2 + std::size("semaphore") - 1 + 2 + widest(rows, &ProbeRow::sites, SIZE_MAX) +
                             (has_remarks(rows) ? 2 + widest(rows, &ProbeRow::remark, SIZE_MAX) : 0);
    signature_width_ = widest(rows, &ProbeRow::signature, out_.room(kIndent + tail, std::size("ARGUMENTS") - 1));
    name_width_ = widest(rows, &ProbeRow::name, out_.room(2 + signature_width_ + tail, kIndent));
    if (name_width_ < std::size("PROBE") - 1) name_width_ = kIndent - 2;
  }

  static bool has_remarks(const std::vector<ProbeRow>& rows) {
    return std::ranges::any_of(rows, [](const ProbeRow& row) { return !row.remark.empty(); });
  }

  static std::size_t widest(const std::vector<ProbeRow>& rows, std::string ProbeRow::*cell, std::size_t limit) {
    std::size_t width = 0;
    for (const ProbeRow& row : rows) {
      if (const std::size_t columns = width_of(row.*cell); columns <= limit) width = std::max(width, columns);
    }
    return width;
  }

  void print_aligned(const ProbeRow& row, bool heading = false) {
    const Style name = heading ? Style::bold : Style::name;
    const bool fits = width_of(row.signature) <= signature_width_;
    if (fits && width_of(row.name) <= name_width_) {
      out_.print("{:<{}}", out_.styled(row.name, name), name_width_);
    } else {
      out_.print("{}\n{:{}}", out_.styled(row.name, name), "", fits ? name_width_ : kIndent - 2);
    }
    const Style semaphore = heading ? Style::bold : row.semaphore == "-" ? Style::dim : Style::mark;
    const Style plain = heading ? Style::bold : Style::plain;
    out_.print("  {:<{}}  {:<9}  {}", out_.styled(row.signature, plain), signature_width_,
               out_.styled(row.semaphore, semaphore), out_.styled(row.sites, plain));
    if (!row.remark.empty()) out_.print("  {}", out_.styled(row.remark, Style::bad));
    out_.print("\n");
  }

  void print_tabbed(const ProbeRow& row) {
    out_.print("{}\t{}\t{}\t{}", row.name, row.signature, row.semaphore, row.sites);
    if (!row.remark.empty()) out_.print("\t{}", row.remark);
    out_.print("\n");
  }

  void print_probe(const ListedProbe& probe) {
    if (file_.target.path != file_.target.access) {
      print_detail(out_, "mapped", printable(file_.target.path.string()) + (file_.target.deleted ? " (deleted)" : ""));
    }
    if (!build_id_.empty()) print_detail(out_, "build id", build_id_);
    print_semaphores(probe);
    Tally variants;
    for (const ListedSite& listed : probe.sites) {
      const std::string& args = listed.site->args_text;
      variants.add(fmt::format("{}  {}", listed.described->signature, args.empty() ? "no arguments" : printable(args)));
    }
    for (const auto& [text, sites] : variants.counts()) {
      print_detail(out_, "signature", fmt::format("{}  {}", text, counted(sites, "site")));
    }
    print_costs(probe);
  }

  void print_costs(const ListedProbe& probe) {
    Tally costs;
    for (const ListedSite& site : probe.sites) costs.add(cost_text(site));
    for (const auto& [text, sites] : costs.counts())
      print_detail(out_, "cost", fmt::format("{}  {}", text, counted(sites, "site")));
  }

  void print_semaphores(const ListedProbe& probe) {
    Tally semaphores;
    for (const ListedSite& listed : probe.sites) {
      const usdt::Site& site = *listed.site;
      if (!site.has_semaphore) continue;
      std::string text = fmt::format("{:#x}", site.semaphore.value);
      if (site.semaphore_offset) text += fmt::format(", file offset {:#x}", site.semaphore_offset->value);
      semaphores.add(text);
    }
    for (const auto& [text, sites] : semaphores.counts()) print_detail(out_, "semaphore", text);
  }

  void print_sites(const ListedProbe& probe) {
    const bool agree = std::ranges::all_of(
        probe.sites, [&](const ListedSite& site) { return cost_text(site) == cost_text(probe.sites[0]); });
    for (const ListedSite& listed : probe.sites) {
      const usdt::Site& site = *listed.site;
      std::string text = fmt::format("pc {:#x}", site.pc.value);
      if (site.offset) text += fmt::format("  file offset {:#x}", site.offset->value);
      if (!site.member.empty()) text += fmt::format("  in {}", printable(site.member));
      if (site.bytes.size != 0) {
        text += fmt::format("  {}  {}  ({})", describe_bytes(site), to_string(site.site_class),
                            agree ? cost_word(listed) : cost_text(listed));
      }
      print_detail(out_, "site", text);
      if (const auto& described = site.description; described && !described->file.empty())
        print_detail(out_, "source", fmt::format("{}:{}", printable(described->file), described->line));
      const WrittenArgs args = decoder_.args(site);
      if (!args.parsed.empty()) out_.print("    {:<8} {}\n", "args", printable(site.args_text));
      std::size_t width = 0;
      for (const usdt::ParsedArg& arg : args.parsed) width = std::max(width, shown_width(arg.text));
      width = std::min<std::size_t>(width, 80);  // one long argument widens no other line
      for (std::size_t n = 0; n < args.parsed.size(); ++n) print_arg(site, n, args, width);
      out_.flush_if_full();
    }
  }

  void print_arg(const usdt::Site& site, std::size_t n, const WrittenArgs& args, std::size_t width) {
    const usdt::Arg& arg = args.decoded[n];
    const auto* unreadable = std::get_if<usdt::Unreadable>(&arg.location);
    const std::string what =
        unreadable ? "unreadable: " + unreadable->reason : describe_operand(arg, args.parsed[n], decoder_.machine());
    const std::string named = usdt::signature_text({arg});
    out_.print("    {:<8} {:<4} {:<{}}  {}\n", fmt::format("arg{}", n), named.substr(1, named.size() - 2),
               args.parsed[n].text, width, out_.styled(what, unreadable ? Style::bad : Style::plain));
    if (!unreadable) return;
    // Below the whole argument text, as a compiler shows it.
    std::size_t place = unreadable->column;
    const std::string_view text = excerpt(site.args_text, place);
    const std::size_t column = shown_width(text.substr(0, place));
    out_.print("    {:<8} {}\n    {:<8} {:>{}}\n", "", text, "", '^', column + 1);
  }

  const usdt::ProbeFile& file_;
  const SiteDecoder decoder_;
  const std::string build_id_ = file_.elf->build_id();
  int verbosity_;
  bool heading_;
  usdt::io::Stream& out_;
  std::size_t name_width_ = 0;
  std::size_t signature_width_ = 0;
};

}  // namespace

void print_text(const usdt::ProbeFile& file, int verbosity, bool heading, usdt::io::Stream& out) {
  TextPrinter(file, verbosity, heading, out).print();
}

}  // namespace usdt_list
