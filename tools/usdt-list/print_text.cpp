// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/report.hpp"
#include "common/signature.hpp"
#include "common/terminal.hpp"
#include "describe.hpp"
#include "listing.hpp"
#include "print.hpp"

namespace usdt_list {
namespace {

using usdt::tools::counted;
using usdt::tools::printable;
using usdt::tools::Style;
using usdt::tools::styled;

/// Sites of a probe that have one signature and one argument text.
struct Variant {
  std::string signature;
  std::string args_text;
  std::size_t sites = 0;
};

std::vector<Variant> variants_of(const ListedProbe& probe) {
  std::vector<Variant> out;
  for (const ListedSite& site : probe.sites) {
    Variant variant{site.decoded->signature, site.site->args_text, 1};
    const auto known = std::ranges::find_if(
        out, [&](const Variant& v) { return v.signature == variant.signature && v.args_text == variant.args_text; });
    if (known != out.end()) {
      ++known->sites;
    } else {
      out.push_back(std::move(variant));
    }
  }
  return out;
}

/// The columns of one probe's line.
struct Row {
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
  std::vector<std::string_view> distinct;
  for (const ListedSite& site : probe.sites) {
    const std::string_view text = site.decoded->signature;
    if (std::ranges::find(distinct, text) == distinct.end()) distinct.push_back(text);
  }
  return distinct.size() == 1 ? std::string(distinct[0]) : counted(distinct.size(), "signature");
}

std::string unreadable_remark(const ListedProbe& probe) {
  // At different sites the same argument may be readable or not: the worst site is what counts.
  std::size_t most = 0;
  for (const ListedSite& site : probe.sites) {
    const auto count = std::ranges::count_if(site.decoded->args, [](const usdt::Arg& arg) { return !arg.readable; });
    most = std::max(most, static_cast<std::size_t>(count));
  }
  return most == 0 ? std::string() : fmt::format("{} unreadable", most);
}

Row row_of(const ListedProbe& probe) {
  const bool semaphore = std::ranges::any_of(probe.sites, [](const ListedSite& s) { return s.site->has_semaphore; });
  return {printable(probe.name), signature_column(probe), semaphore ? "semaphore" : "-",
          counted(probe.sites.size(), "site"), unreadable_remark(probe)};
}

class TextPrinter {
 public:
  TextPrinter(const usdt::ProbeFile& file, int verbosity, const usdt::tools::Terminal& terminal, Output& out)
      : file_(file), verbosity_(verbosity), terminal_(terminal), out_(out) {}

  void print() {
    const std::vector<ListedProbe> probes = group_probes(file_, verbosity_ >= 1 ? Costs::yes : Costs::no);
    std::vector<Row> rows;
    for (const ListedProbe& probe : probes) rows.push_back(row_of(probe));
    measure(rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      terminal_.interactive ? print_aligned(rows[i]) : print_tabbed(rows[i]);
      if (verbosity_ >= 1) print_probe(probes[i]);
      if (verbosity_ >= 2) print_sites(probes[i]);
    }
  }

 private:
  /// Columns as wide as their widest cell, but a cell too long for the terminal pushes only its own line.
  void measure(const std::vector<Row>& rows) {
    constexpr std::size_t kAfterName = 30;       // a short signature and what follows it
    constexpr std::size_t kAfterSignature = 24;  // "  semaphore  3 sites" and some air
    name_width_ = widest(rows, &Row::name, room(kAfterName, 60));
    signature_width_ = widest(rows, &Row::signature, room(name_width_ + kAfterSignature, 12));
  }

  [[nodiscard]] std::size_t room(std::size_t taken, std::size_t at_least) const {
    return std::max(terminal_.width > taken ? terminal_.width - taken : 0, at_least);
  }

  static std::size_t widest(const std::vector<Row>& rows, std::string Row::*cell, std::size_t limit) {
    std::size_t width = 0;
    for (const Row& row : rows) {
      if ((row.*cell).size() <= limit) width = std::max(width, (row.*cell).size());
    }
    return width;
  }

  static std::string padding(const std::string& cell, std::size_t width) {
    return std::string(cell.size() < width ? width - cell.size() : 0, ' ') + "  ";
  }

  void print_aligned(const Row& row) {
    const bool colour = terminal_.colour;
    std::string line = styled(row.name, Style::name, colour) + padding(row.name, name_width_);
    line += row.signature + padding(row.signature, signature_width_);
    line += styled(fmt::format("{:<9}", row.semaphore), row.semaphore == "-" ? Style::dim : Style::mark, colour);
    line += "  " + row.sites;
    if (!row.remark.empty()) line += "  " + styled(row.remark, Style::bad, colour);
    out_.append(line + "\n");
  }

  void print_tabbed(const Row& row) {
    std::string line = fmt::format("{}\t{}\t{}\t{}", row.name, row.signature, row.semaphore, row.sites);
    if (!row.remark.empty()) line += "\t" + row.remark;
    out_.append(line + "\n");
  }

  void detail(std::string_view label, std::string_view text) { out_.append(fmt::format("  {:<10} {}\n", label, text)); }

  void print_probe(const ListedProbe& probe) {
    if (file_.target.path != file_.target.access) {
      detail("mapped", printable(file_.target.path.string()) + (file_.target.deleted ? " (deleted)" : ""));
    }
    if (const std::string id = file_.elf->build_id(); !id.empty()) detail("build id", id);
    print_semaphores(probe);
    for (const Variant& variant : variants_of(probe)) {
      const std::string text = variant.args_text.empty() ? "no arguments" : printable(variant.args_text);
      detail("signature", fmt::format("{}  {}  {}", variant.signature, text, counted(variant.sites, "site")));
    }
    print_costs(probe);
  }

  void print_costs(const ListedProbe& probe) {
    std::vector<std::pair<std::string, std::size_t>> costs;
    for (const ListedSite& site : probe.sites) {
      std::string text = cost_text(site);
      const auto known = std::ranges::find(costs, text, &std::pair<std::string, std::size_t>::first);
      if (known == costs.end()) {
        costs.emplace_back(std::move(text), 1);
      } else {
        ++known->second;
      }
    }
    for (const auto& [text, sites] : costs) detail("cost", fmt::format("{}  {}", text, counted(sites, "site")));
  }

  void print_semaphores(const ListedProbe& probe) {
    std::vector<std::string> shown;
    for (const ListedSite& listed : probe.sites) {
      const usdt::Site& site = *listed.site;
      if (!site.has_semaphore) continue;
      std::string text = fmt::format("{:#x}", site.semaphore.value);
      if (site.semaphore_offset) text += fmt::format(", file offset {:#x}", site.semaphore_offset->value);
      if (std::ranges::find(shown, text) != shown.end()) continue;
      detail("semaphore", text);
      shown.push_back(std::move(text));
    }
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
      detail("site", text);
      const std::vector<usdt::Arg>& args = listed.decoded->args;
      if (!args.empty()) out_.append(fmt::format("    {:<8} {}\n", "args", printable(site.args_text)));
      std::size_t width = 0;
      for (const usdt::Arg& arg : args) width = std::max(width, printable(arg.spec.text).size());
      for (std::size_t n = 0; n < args.size(); ++n) print_arg(site, n, args[n], width);
    }
  }

  void print_arg(const usdt::Site& site, std::size_t n, const usdt::Arg& arg, std::size_t width) {
    const std::string what = arg.readable
                                 ? describe_operand(arg)
                                 : styled("unreadable: " + printable(arg.reason), Style::bad, terminal_.colour);
    out_.append(fmt::format("    {:<8} {:<4} {:<{}}  {}\n", fmt::format("arg{}", n), type_name(arg),
                            printable(arg.spec.text), width, what));
    if (arg.readable) return;
    // Below the whole argument text, as a compiler shows it.
    const std::size_t column = printable(std::string_view(site.args_text).substr(0, arg.reason_column)).size();
    out_.append(fmt::format("    {:<8} {}\n    {:<8} {:>{}}\n", "", printable(site.args_text), "", '^', column + 1));
  }

  const usdt::ProbeFile& file_;
  int verbosity_;
  const usdt::tools::Terminal& terminal_;
  Output& out_;
  std::size_t name_width_ = 0;
  std::size_t signature_width_ = 0;
};

}  // namespace

void print_text(const usdt::ProbeFile& file, int verbosity, const usdt::tools::Terminal& terminal, Output& out) {
  TextPrinter(file, verbosity, terminal, out).print();
}

}  // namespace usdt_list
