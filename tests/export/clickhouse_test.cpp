// SPDX-License-Identifier: BSD-2-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "export/clickhouse_place.hpp"
#include "export/clickhouse_rows.hpp"

namespace usdt::exports::clickhouse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

TEST(ClickHousePlace, has_a_server_a_database_and_settings) {
  const auto place = parse_place("http://[::1]:8123/fleet?async_insert=1&max_threads=2");
  ASSERT_TRUE(place) << place.error().message;
  EXPECT_EQ(place->url.authority(), "[::1]:8123");
  EXPECT_EQ(place->url.path, "");
  EXPECT_EQ(place->database, "fleet");
  EXPECT_THAT(place->settings, ElementsAre(Pair("async_insert", "1"), Pair("max_threads", "2")));
  EXPECT_EQ(parse_place("http://x:8123/")->database, "");
  EXPECT_EQ(parse_place("http://x:8123/?")->settings.size(), 0U);
}

/// Errors would not be seen, or others would see a password.
TEST(ClickHousePlace, refuses_what_is_not_for_a_command_line) {
  for (const auto& [text, words] :
       {std::pair("http://u:p@x/", "USDT_CLICKHOUSE_USER"), std::pair("http://x/?user=u", "USDT_CLICKHOUSE_USER"),
        std::pair("http://x/?password=", "USDT_CLICKHOUSE_PASSWORD"), std::pair("http://x/a/b", "database"),
        std::pair("http://x/a;b", "database"), std::pair("http://x/?query=x", "no setting"),
        std::pair("http://x/?wait_for_async_insert=0", "nobody"),
        std::pair("http://x/?wait_for_async_insert=", "nobody"), std::pair("http://x/?a=b c", "NAME=VALUE"),
        std::pair("http://x/?a=b\r\n", "NAME=VALUE"), std::pair("https://x/", "TLS")}) {
    const auto place = parse_place(text);
    ASSERT_FALSE(place) << text;
    EXPECT_EQ(place.error().kind, ErrorKind::invalid_argument);
    EXPECT_THAT(place.error().message, HasSubstr(words)) << text;
  }
}

TEST(ClickHousePlace, rows_are_inserted_by_a_token_and_waited_for) {
  const auto path = [](const char* text) {
    return insert_path(*parse_place(text), "usdt_events", escaped("h\xc3\xa4-1"));
  };
  EXPECT_EQ(path("http://x/d"),
            "/?query=INSERT%20INTO%20usdt_events%20FORMAT%20JSONEachRow&database=d&wait_end_of_query=1"
            "&input_format_skip_unknown_fields=0&insert_deduplication_token=h%C3%A4-1"
            "&deduplicate_blocks_in_dependent_materialized_views=1");
  EXPECT_THAT(path("http://x/?async_insert=1"), HasSubstr("&wait_for_async_insert=1&async_insert=1"));
  EXPECT_THAT(path("http://x/?async_insert=1"), Not(HasSubstr("materialized_views")));
  EXPECT_THAT(path("http://x/?insert_deduplication_token="), Not(HasSubstr("token")));
}

TEST(ClickHouseVerdict, is_by_the_exception_wherever_it_is) {
  using http::Verdict;
  const auto judged = [](unsigned status, std::string code, std::string body) {
    return judge_insertion({.status = status, .body = std::move(body), .exception_code = std::move(code)});
  };
  EXPECT_EQ(judged(200, "", ""), Verdict::accepted);
  EXPECT_EQ(judged(200, "", "Ok.\n"), Verdict::accepted);
  EXPECT_EQ(judged(200, "60", ""), Verdict::refused);
  EXPECT_EQ(judged(200, "", "Code: 60. DB::Exception: Table d.t does not exist"), Verdict::refused);
  EXPECT_EQ(judged(200, "", "Code: 115, e.displayText() = DB::Exception: Unknown setting"), Verdict::refused);
  EXPECT_EQ(judged(200, "", "x\r\n__exception__\r\nCode: 252. DB::Exception: Too many parts"), Verdict::again);
  EXPECT_EQ(judged(500, "252", "Code: 252. DB::Exception: Too many parts"), Verdict::again);
  EXPECT_EQ(judged(500, "241", ""), Verdict::again);
  EXPECT_EQ(judged(408, "159", ""), Verdict::maybe_again);
  EXPECT_EQ(judged(500, "319", ""), Verdict::maybe_again);
  EXPECT_EQ(judged(500, "27", ""), Verdict::refused);
  EXPECT_EQ(judged(500, "", ""), Verdict::refused);
  EXPECT_EQ(judged(503, "", "a proxy says so"), Verdict::again);
  EXPECT_EQ(judged(307, "", ""), Verdict::refused);
}

TEST(ClickHouseRows, have_numbers_texts_and_values_within_values) {
  std::string out;
  RowWriter row(out);
  ValueMaps values;
  row.begin();
  row.number("time", std::int64_t{-1});
  row.text("comm", "a\"\\\n\xff");
  values.begin("whole"), values.whole(-5);
  values.begin("large"), values.natural(UINT64_MAX);
  values.begin("real"), values.real(1.5);
  values.begin("none"), values.error("no page");
  values.begin("some"), values.begin_object(), values.member("x"), values.begin_list(), values.whole(1);
  values.text("q\"\x01"), values.end_list(), values.end_object();
  values.begin("cut"), values.cut_text("abc");
  values.take(row);
  row.end(",\"seq\":1");
  EXPECT_EQ(out, R"({"time":-1,"comm":"a\"\\\\n\\xff",)"
                 R"("args":{"large":"18446744073709551615","real":"1.5","none.error":"no page",)"
                 R"("some":"{\"x\":[1,\"q\\\"\\u0001\"]}","cut":"abc..."},"nums":{"whole":-5},"seq":1})"
                 "\n");
  out.clear();
  row.begin();
  row.real("sum", HUGE_VAL);
  values.take(row);
  row.end("");
  EXPECT_EQ(out, "{\"sum\":\"inf\"}\n");
}

}  // namespace
}  // namespace usdt::exports::clickhouse
