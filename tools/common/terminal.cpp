// SPDX-License-Identifier: BSD-2-Clause
#include "common/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iterator>

#include "common/utf8.hpp"

namespace usdt::tools {
namespace {

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

}  // namespace

Terminal Terminal::of(int fd) {
  Terminal terminal;
  terminal.interactive = ::isatty(fd) == 1;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  terminal.colour = terminal.interactive && (no_color == nullptr || *no_color == '\0') &&
                    (term == nullptr || std::string_view(term) != "dumb");
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) terminal.width = size.ws_col;
  return terminal;
}

std::string printable(std::string_view text) {
  const bool utf8 = is_utf8(text);
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !utf8)) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

std::string styled(std::string_view text, Style style, bool colour) {
  if (!colour || style == Style::plain || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code_of(style), text);
}

}  // namespace usdt::tools
