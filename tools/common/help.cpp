// SPDX-License-Identifier: BSD-2-Clause
#include "common/help.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/terminal.hpp"

namespace usdt::tools {
namespace {

constexpr std::size_t kNarrowest = 40;

class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::size_t width) : width_(std::max(width, kNarrowest)) {}

  std::string make_description(const CLI::App* app) const override { return wrapped(app->get_description(), width_); }
  std::string make_footer(const CLI::App* app) const override { return wrapped(app->get_footer(), width_); }

  /// The name alone on its line where it leaves the description no room beside it.
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return option_lines(name_of(option, is_positional), option->get_description(), width_);
  }

 private:
  /// "-Z,--string-size N=200", "--print [PROBE=]LIST ...": without what CLI11 adds about other options.
  static std::string name_of(const CLI::Option* option, bool is_positional) {
    std::string name = option->get_name(is_positional, true);
    name.resize(std::min(name.size(), name.find('{')));  // of a flag that says no: "{false}"
    if (const std::string type = option->get_type_name(); !type.empty() && option->get_items_expected_max() > 0)
      name += " " + type;
    if (!option->get_default_str().empty()) name += "=" + option->get_default_str();
    if (option->get_expected_max() > 1) name += " ...";
    return name;
  }

  std::size_t width_;
};

}  // namespace

std::string option_lines(std::string_view option, std::string_view rest, std::size_t width) {
  const std::size_t column = width < 80 ? 8 : 26;
  const std::string name = fmt::format("  {}", option);
  const bool beside = name.size() + 2 <= column;
  std::string text = beside ? fmt::format("{:<{}}", name, column) : name + "\n";
  for (bool first = true; !rest.empty(); first = false) {
    if (!first || !beside) text.append(column, ' ');
    text.append(io::next_line(rest, width - column)).push_back('\n');
  }
  return text;
}

std::string wrapped(std::string_view text, std::size_t width) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view paragraph = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (paragraph.empty() || paragraph.front() == ' ') {
      out.append(paragraph).push_back('\n');
      continue;
    }
    while (!paragraph.empty()) out.append(io::next_line(paragraph, width)).push_back('\n');
  }
  return out;
}

std::shared_ptr<CLI::FormatterBase> help_formatter(std::size_t width) { return std::make_shared<HelpFormatter>(width); }

}  // namespace usdt::tools
