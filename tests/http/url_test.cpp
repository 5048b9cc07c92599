// SPDX-License-Identifier: BSD-2-Clause
#include "http/url.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace usdt::http {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ParseUrl, takes_hosts_addresses_ports_and_prefixes) {
  const auto parsed = [](std::string_view text) {
    const auto url = parse_url(text);
    return url ? url->authority() + " " + url->path : url.error().message;
  };
  EXPECT_EQ(parsed("http://collector"), "collector:80 ");
  EXPECT_EQ(parsed("http://127.0.0.1:4318"), "127.0.0.1:4318 ");
  EXPECT_EQ(parsed("http://127.0.0.1:4318/"), "127.0.0.1:4318 ");
  EXPECT_EQ(parsed("http://[::1]:4318/a/b//"), "[::1]:4318 /a/b");
  EXPECT_EQ(parsed("http://x.example:9/api/v1/otlp"), "x.example:9 /api/v1/otlp");
}

TEST(ParseUrl, says_what_is_wrong) {
  for (const auto& [text, words] :
       {std::pair("", "http://HOST:PORT"), std::pair("ftp://x", "http://HOST:PORT"), std::pair("https://x", "TLS"),
        std::pair("http://", "host"), std::pair("http://:80", "host"), std::pair("http://x:", "port"),
        std::pair("http://x:0", "port"), std::pair("http://x:65536", "port"), std::pair("http://x:8x", "port"),
        std::pair("http://[::1", "host"), std::pair("http://[x]:1", "host"), std::pair("http://[::1]x", "port"),
        std::pair("http://a\r\nb", "characters"), std::pair("http://a b", "characters"),
        std::pair("http://u@x", "users"), std::pair("http://x/?q", "'?'"), std::pair("http://x#y", "'?'"),
        std::pair("http://\xc3\xa4", "characters")}) {
    const auto url = parse_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().kind, ErrorKind::invalid_argument);
    EXPECT_THAT(url.error().message, HasSubstr(words)) << text;
  }
  EXPECT_THAT(parse_url("http://" + std::string(3000, 'x')).error().message, HasSubstr("too long"));
}

TEST(ParseUrl, says_no_password) {
  for (const char* text : {"http://u:secret@h", "https://u:secret@h:1/x", "http://u:se/secret@h", "http://secret@h?x",
                           "u:secret@h:4318", "ftp://secret@h", "http://u:secret@h\x01"})
    EXPECT_THAT(parse_url(text).error().message, Not(HasSubstr("secret"))) << text;
  EXPECT_THAT(parse_url("http://u:" + std::string(3000, 's') + "@h").error().message, Not(HasSubstr("ss")));
}

TEST(WithoutUser, leaves_everything_else_as_it_is) {
  EXPECT_EQ(without_user("otlp=http://u:secret@h:4318/x"), "otlp=http://...@h:4318/x");
  EXPECT_EQ(without_user("from http://a@b to \"http://c:d@e/f\""), "from http://...@b to \"http://...@e/f\"");
  for (const char* text : {"", "//", "/", "http://h", "otlp=http://h:4318/x?a=b", "uprobe:./x:@file.c:3", "a // b@c"})
    EXPECT_EQ(without_user(text), text);
}

TEST(SplitOptions, splits_what_is_behind_a_question_mark) {
  const auto split = [](std::string_view text) {
    const auto found = split_options(text);
    std::string all = found ? found->first : "none";
    if (found)
      for (const auto& [name, value] : found->second)
        all.append(" [").append(name).append("|").append(value).append("]");
    return all;
  };
  EXPECT_EQ(split("http://x/a"), "http://x/a");
  EXPECT_EQ(split("http://x/a?"), "http://x/a");
  EXPECT_EQ(split("x?a=b&c=&d=e=f"), "x [a|b] [c|] [d|e=f]");
  EXPECT_EQ(split("x?a=b?c"), "x [a|b?c]");
  EXPECT_EQ(split("x?a"), "none");
  EXPECT_EQ(split("x?a=b&&c=d"), "none");
}

/// Whatever is taken can break neither a request line nor a header.
TEST(ParseUrl, takes_nothing_that_could_end_a_line) {
  std::mt19937 random(3);
  const std::string characters = "htp:/[]a1.@?#-% \r\n\x01";
  for (int n = 0; n < 20'000; ++n) {
    std::string text = "http://";
    for (int i = std::uniform_int_distribution<>(0, 12)(random); i > 0; --i)
      text += characters[std::uniform_int_distribution<std::size_t>(0, characters.size() - 1)(random)];
    const auto url = parse_url(text);
    if (!url) continue;
    EXPECT_EQ((url->authority() + url->path).find_first_of(" \r\n\x01?#"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace usdt::http
