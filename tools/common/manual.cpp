// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>

#include "common/documented.hpp"

namespace usdt::tools {
namespace {

struct Page {
  std::string_view name;
  int section;
};
/// The pages there are, in the order in which man-pages(7) wants references.
constexpr std::array<Page, 4> kPages = {{{"usdt-agent", 1}, {"usdt-list", 1}, {"usdt-trace", 1}, {"usdt-broker", 8}}};

/// Text as roff shows it: a hyphen that can be pasted, a backslash that is one, and no line that is a request.
std::string plain(std::string_view text) {
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out = "\\&";
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

/// Paragraphs, each a line; lines that begin with a space are examples and stay as they are. Text behind "Examples:" or
/// "Exit code:" has a section of its own.
void append_paragraphs(std::string& out, std::string_view text) {
  bool in_example = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool is_example = line.starts_with(' ');
    if (is_example != in_example) out += is_example ? ".nf\n" : ".fi\n";
    in_example = is_example;
    static constexpr std::string_view kExitCode = "Exit code: ";
    if (line == "Examples:") {
      out += ".SH EXAMPLES\n";
      continue;
    }
    if (line.starts_with(kExitCode)) {
      out += ".SH \"EXIT STATUS\"\n";
      line.remove_prefix(kExitCode.size());
    } else if (!is_example) {
      out += ".PP\n";
    }
    out += plain(line) + "\n";
  }
  if (in_example) out += ".fi\n";
}

void append_option(std::string& out, const DocumentedOption& option) {
  out += ".TP\n";
  std::string names;
  if (!option.letter.empty()) names = fmt::format("\\fB\\-{}\\fR", plain(option.letter));
  if (!option.word.empty()) names += fmt::format("{}\\fB\\-\\-{}\\fR", names.empty() ? "" : ", ", plain(option.word));
  if (!option.value.empty()) names += fmt::format("{}\\fI{}\\fR", names.empty() ? "" : " ", plain(option.value));
  if (!option.standard.empty()) names += fmt::format(" (default {})", plain(option.standard));
  out += names + "\n" + plain(option.text) + "\n";
}

int section_of(std::string_view name) {
  const auto* const page = std::ranges::find(kPages, name, &Page::name);
  return page == kPages.end() ? 1 : page->section;
}

/// Names the pages of the other tools.
void append_see_also(std::string& out, std::string_view name) {
  std::string_view between = ".SH \"SEE ALSO\"\n";
  for (const Page& page : kPages) {
    if (page.name == name) continue;
    out += fmt::format("{}.BR {} ({})", between, plain(page.name), page.section);
    between = ",\n";
  }
  out += "\n";
}

}  // namespace

std::string manual_page(const DocumentedProgram& program) {
  const std::string& name = program.name;
  const int section = section_of(name);
  std::string summary = program.description.substr(0, program.description.find(".\n"));
  if (!summary.empty()) summary[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(summary[0])));

  std::string out =
      fmt::format(".\\\" Made from the options of {0}.\n.TH {1} {3} \"\" \"usdt {2}\" \"{4}\"\n.nh\n", name,
                  upper(name), USDT_VERSION, section, section == 8 ? "System Administration" : "User Commands");
  out += fmt::format(".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B {}\n[\\fIOPTIONS\\fR]", plain(name), plain(summary),
                     plain(name));
  for (const DocumentedOption& option : program.options)
    if (option.word.empty() && option.letter.empty()) out += fmt::format(" [\\fI{}\\fR ...]", plain(option.value));
  out += "\n.SH DESCRIPTION\n";
  append_paragraphs(out, program.description);
  out += ".SH OPTIONS\n";
  for (const DocumentedOption& option : program.options) append_option(out, option);
  append_paragraphs(out, program.footer);
  append_see_also(out, name);
  return out;
}

}  // namespace usdt::tools
