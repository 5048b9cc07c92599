// SPDX-License-Identifier: BSD-2-Clause
#include "common/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace usdt::tools {

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

std::string_view next_line(std::string_view& text, std::size_t width) noexcept {
  const std::string_view all = text;
  const std::size_t space = text.size() > width ? text.rfind(' ', width) : text.npos;
  const bool cut = space != text.npos && space != 0;
  text.remove_prefix(cut ? space + 1 : text.size());
  return cut ? all.substr(0, space) : all;
}

}  // namespace usdt::tools
