// SPDX-License-Identifier: BSD-2-Clause
#include "io/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace usdt::io {

std::string_view code_of(Style style) {
  switch (style) {
    case Style::plain:
      return {};
    case Style::bold:
      return "1";
    case Style::dim:
      return "2";
    case Style::name:
      return "36";
    case Style::mark:
      return "33";
    case Style::bad:
      return "31";
    case Style::heat1:
      return "38;5;61";
    case Style::heat2:
      return "38;5;97";
    case Style::heat3:
      return "38;5;168";
    case Style::heat4:
      return "38;5;208";
    case Style::heat5:
      return "38;5;226";
  }
  return {};
}

Terminal Terminal::of(int fd) {
  Terminal terminal;
  terminal.interactive = ::isatty(fd) == 1;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  terminal.colour = terminal.interactive && (no_color == nullptr || *no_color == '\0') &&
                    (term == nullptr || std::string_view(term) != "dumb");
  terminal.measure(fd);
  return terminal;
}

void Terminal::measure(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0) return;
  if (size.ws_col > 0) width = size.ws_col;
  if (size.ws_row > 0) height = size.ws_row;
}

bool is_utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;  // the next one counts
    const std::string_view locale(value);
    return locale.find("UTF-8") != locale.npos || locale.find("utf8") != locale.npos ||
           locale.find("UTF8") != locale.npos || locale.find("utf-8") != locale.npos;
  }
  return false;
}

std::string_view next_line(std::string_view& text, std::size_t width) noexcept {
  const std::string_view all = text;
  std::size_t space = text.size() > width ? text.rfind(' ', width) : text.npos;
  if (text.size() > width && (space == text.npos || space == 0)) space = text.find(' ', 1);
  const bool cut = space != text.npos;
  text.remove_prefix(cut ? space + 1 : text.size());
  return cut ? all.substr(0, space) : all;
}

}  // namespace usdt::io
