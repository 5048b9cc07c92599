// SPDX-License-Identifier: BSD-2-Clause
#include "export/directive_text.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>
#include <vector>

#include "io/stream.hpp"

namespace usdt::exports {
namespace {

/// What printf makes of it.
template <class T>
std::string judged(const std::string& format, T value) {
  char text[400];
  std::snprintf(text, sizeof text, format.c_str(), value);
  return text;
}

FormatPiece piece_of(const std::string& directive) { return parse_format_string(directive)->pieces[0]; }

/// All directives for `conversions`: each set of flags, with widths and precisions, but what C leaves undefined.
std::vector<std::string> directives_for(std::string_view conversions, std::string_view undefined_flags) {
  std::vector<std::string> all;
  for (unsigned set = 0; set < 32; ++set) {
    std::string flags;
    for (unsigned i = 0; i < 5; ++i)
      if ((set >> i & 1) != 0) flags += "-0+ #"[i];
    if (flags.find_first_of(undefined_flags) != flags.npos) continue;
    for (const char* size : {"", "1", "7", "25", ".0", ".1", ".3", ".20", "9.4", "12.0", "2.12"})
      for (const char conversion : conversions) all.push_back("%" + flags + size + conversion);
  }
  return all;
}

/// `text` as a line has it: filled up to the directive's width.
std::string fitted(const FormatPiece& piece, std::string text) {
  const std::size_t missing = piece.width - std::min(piece.width, text.size());
  return piece.left ? text + std::string(missing, ' ') : std::string(missing, ' ') + text;
}

std::string with_ll(const std::string& directive) {
  return directive.substr(0, directive.size() - 1) + "ll" + directive.back();
}

TEST(DirectiveText, numbers_are_what_printf_makes_of_them_with_all_flags_widths_and_precisions) {
  const std::int64_t signeds[] = {
      0, 1, -1, 42, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
  for (const std::string& directive : directives_for("di", "#"))
    for (const std::int64_t value : signeds)
      EXPECT_EQ(fitted(piece_of(directive), integer_text(piece_of(directive), value, 8)),
                judged(with_ll(directive), value))
          << directive;
  for (const auto& [conversions, undefined] : {std::pair("u", "+ #"), {"xXo", "+ "}})
    for (const std::string& directive : directives_for(conversions, undefined))
      for (const std::uint64_t value : {0ULL, 1ULL, 8ULL, 255ULL, 0xffffffffffffffffULL})
        EXPECT_EQ(fitted(piece_of(directive), integer_text(piece_of(directive), value, 8)),
                  judged(with_ll(directive), value))
            << directive;
  for (const std::string& directive : directives_for("fegFEG", ""))
    for (const double value : {0.0, -0.0, 1.5, -5.0, -1234567.875, 1e-7, 1e300, HUGE_VAL, -HUGE_VAL})
      EXPECT_EQ(fitted(piece_of(directive), real_text(piece_of(directive), value)), judged(directive, value))
          << directive;
  EXPECT_EQ(real_text(piece_of("%f"), std::nan("")), "nan");
}

TEST(DirectiveText, an_integer_keeps_its_value_and_its_own_width_whatever_the_directive) {
  EXPECT_EQ(integer_text(piece_of("%u"), std::int64_t{-5}, 4), "-5");
  EXPECT_EQ(integer_text(piece_of("%d"), ~std::uint64_t{0}, 8), "18446744073709551615");
  EXPECT_EQ(integer_text(piece_of("%x"), std::int64_t{-1}, 2), "ffff");
  EXPECT_EQ(integer_text(piece_of("%p"), std::uint64_t{16}, 8), "0x10");
}

TEST(Stream, fits_text_into_columns_by_characters) {
  const std::string path = ::testing::TempDir() + "fit_test." + std::to_string(::getpid());
  {
    auto out = io::Stream::create(path);
    ASSERT_TRUE(out);
    const auto fitted = [&](const char* text, std::size_t least, std::size_t most, bool left) {
      const std::uint64_t at = out->printed();
      out->print("{}", text);
      out->fit(at, least, most, left);
      out->print("|");
    };
    fitted("abc", 5, SIZE_MAX, false);
    fitted("abc", 5, SIZE_MAX, true);
    fitted("äöü", 4, 2, false);
    fitted("abcdef", 0, 3, true);
    fitted("", 2, 0, true);
    fitted("abc", 3, 3, true);
    EXPECT_EQ(out->flush(nullptr), io::Stream::Flushed::all);
  }
  std::ostringstream written;
  written << std::ifstream(path).rdbuf();
  EXPECT_EQ(written.str(), "  abc|abc  |  äö|abc|  |abc|");
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace usdt::exports
