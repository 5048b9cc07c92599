// SPDX-License-Identifier: BSD-2-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "export/clickhouse_json.hpp"
#include "export/clickhouse_place.hpp"
#include "export/clickhouse_rows.hpp"
#include "http/gzip.hpp"
#include "tests/places.hpp"

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
  EXPECT_EQ(place->encoding, Encoding::row_binary);
  const auto asked = parse_place("http://x:8123/?format=JSONEachRow&max_threads=2");
  EXPECT_EQ(asked->encoding, Encoding::json);
  EXPECT_THAT(asked->settings, ElementsAre(Pair("max_threads", "2")));
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
        std::pair("http://x/?format=CSV", "RowBinary or JSONEachRow"),
        std::pair("http://x/?input_format_with_types_use_header=0", "another type"),
        std::pair("http://x/?input_format_with_names_use_header=", "another type"),
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
  const std::string rest =
      "&database=d&wait_end_of_query=1&input_format_skip_unknown_fields=0&insert_deduplication_token=h%C3%A4-1"
      "&wait_for_async_insert=1";
  const std::string of_view = "&deduplicate_blocks_in_dependent_materialized_views=1";
  EXPECT_EQ(path("http://x/d"), "/?query=INSERT%20INTO%20usdt_events%20FORMAT%20RowBinaryWithNamesAndTypes" + rest +
                                    "&input_format_with_names_use_header=1&input_format_with_types_use_header=1" +
                                    of_view);
  EXPECT_EQ(path("http://x/d?format=JSONEachRow"),
            "/?query=INSERT%20INTO%20usdt_events%20FORMAT%20JSONEachRow" + rest + of_view);
  EXPECT_THAT(path("http://x/?async_insert=1"), HasSubstr("&async_insert_deduplicate=1&async_insert=1"));
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

/// Words of ClickHouse 18.16, and of 26.7.
TEST(ClickHouseVerdict, knows_servers_that_are_older_than_the_format) {
  using http::Verdict;
  const auto judged = [](std::string body) { return judge_insertion({.status = 404, .body = std::move(body)}); };
  EXPECT_EQ(judged("Code: 73, e.displayText() = DB::Exception: Unknown format RowBinaryWithNamesAndTypes, e.what() ="),
            Verdict::unknown_form);
  EXPECT_EQ(judged("Code: 115, e.displayText() = DB::Exception: Unknown setting input_format_with_types_use_header"),
            Verdict::unknown_form);
  EXPECT_EQ(judged("Code: 115, e.displayText() = DB::Exception: Unknown setting wait_for_async_insert, e.what() ="),
            Verdict::unknown_form);
  EXPECT_EQ(judged("Code: 115, e.displayText() = DB::Exception: Unknown setting async_insert, e.what() ="),
            Verdict::refused);
  EXPECT_EQ(judged("Code: 117. DB::Exception: Type of 'pid' must be UInt16, not UInt32: (while reading header)"),
            Verdict::refused);
}

/// A value as a column has it.
template <class Value>
std::string bytes(const Value& value) {
  std::string out;
  append(out, value);
  return out;
}

/// By clickhouse.com/docs/reference/formats/RowBinary: "All integer types are encoded with an appropriate number of
/// bytes as little-endian. Signed types use two's complement"; Float32 and Float64 are those of IEEE 754, Bool one
/// byte.
TEST(ClickHouseBinary, has_numbers_with_their_lowest_byte_first) {
  EXPECT_EQ(bytes(std::uint8_t{42}), "\x2a");
  EXPECT_EQ(bytes(std::uint16_t{0x1234}), "\x34\x12");
  EXPECT_EQ(bytes(std::uint32_t{4294967295}), "\xff\xff\xff\xff");
  EXPECT_EQ(bytes(std::uint64_t{1} << 63U), std::string("\0\0\0\0\0\0\0\x80", 8));
  EXPECT_EQ(bytes(std::int32_t{-2}), "\xfe\xff\xff\xff");
  EXPECT_EQ(bytes(std::int64_t{-9223372036854775807 - 1}), std::string("\0\0\0\0\0\0\0\x80", 8));
  EXPECT_EQ(bytes(true), "\x01");
  EXPECT_EQ(bytes(1.0F), std::string("\0\0\x80\x3f", 4));
  EXPECT_EQ(bytes(-2.0), std::string("\0\0\0\0\0\0\0\xc0", 8));
  EXPECT_EQ(bytes(HUGE_VAL), std::string("\0\0\0\0\0\0\xf0\x7f", 8));
  EXPECT_EQ(bytes(std::nan("")), std::string("\0\0\0\0\0\0\xf8\x7f", 8));
}

/// DateTime64 "is stored as Int64", here of nanoseconds; Enum8 "as Int8".
TEST(ClickHouseBinary, has_times_and_kinds_as_numbers) {
  EXPECT_EQ(bytes(Time{1}), std::string("\1\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(bytes(Time{-1}), "\xff\xff\xff\xff\xff\xff\xff\xff");
  EXPECT_EQ(bytes(Kind::hit), std::string(1, '\0'));
  EXPECT_EQ(bytes(Kind::in_flight), "\x02");
}

/// The length of a String is LEB128 without a sign (Wikipedia has 624485 as e5 8e 26); LowCardinality is "just the
/// underlying type".
TEST(ClickHouseBinary, has_a_length_before_each_text) {
  EXPECT_EQ(bytes(std::string_view()), std::string(1, '\0'));
  EXPECT_EQ(bytes(Label{"foo"}),
            "\x03"
            "foo");
  EXPECT_EQ(bytes(FreeText{std::string(127, 'x')}).substr(0, 2),
            "\x7f"
            "x");
  EXPECT_EQ(bytes(FreeText{std::string(128, 'x')}).substr(0, 3),
            "\x80\x01"
            "x");
  std::string length;
  append_length(length, 624485);
  EXPECT_EQ(length, "\xe5\x8e\x26");
}

/// "A single byte that indicates whether the value is NULL"; arrays have their length, maps likewise, with each key
/// before its value.
TEST(ClickHouseBinary, has_values_that_may_be_absent_and_values_within_values) {
  EXPECT_EQ(bytes(std::optional<double>()), "\x01");
  EXPECT_EQ(bytes(std::optional<std::uint64_t>(7)), std::string("\0\7\0\0\0\0\0\0\0", 9));
  Array<std::int32_t> numbers;
  EXPECT_EQ(bytes(numbers), std::string(1, '\0'));
  numbers.add(1), numbers.add(-1);
  EXPECT_EQ(bytes(numbers), std::string("\2\1\0\0\0\xff\xff\xff\xff", 9));
  Array<Label> texts;
  texts.add({"a"}), texts.add({""});
  EXPECT_EQ(bytes(texts), std::string("\2\1a\0", 4));
  Map<std::int64_t> map;
  map.add("k", -1);
  EXPECT_EQ(bytes(map), "\1\1k\xff\xff\xff\xff\xff\xff\xff\xff");
  map.clear();
  EXPECT_EQ(bytes(map), std::string(1, '\0'));
}

/// A header is the number of columns, then their names, then their types.
TEST(ClickHouseRows, begin_with_the_names_and_types_of_their_columns) {
  EXPECT_EQ(header_of(LedgerRow()), std::string("\4\5probe\4role\4name\5value") +
                                        "\x16LowCardinality(String)\x16LowCardinality(String)"
                                        "\x16LowCardinality(String)\6UInt64");
  std::string row;
  append_values(row, LedgerRow{{"p"}, {"hits"}, {""}, 258});
  EXPECT_EQ(row, std::string("\1p\4hits\0\2\1\0\0\0\0\0\0", 16));
}

/// The columns in a CREATE TABLE of tables.sql that are not computed: "name type", in the order of names.
std::vector<std::string> columns_of_table(const std::string& table) {
  std::ifstream file(test::source_dir() / "examples/fleet/clickhouse/tables.sql");
  std::vector<std::string> columns;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("CREATE TABLE")) inside = line.ends_with(table);
    static const std::regex kColumn(R"(    (\w+) +(.*?)( CODEC.*| DEFAULT.*|),?)");
    std::smatch found;
    if (inside && !line.starts_with("    INDEX") && line.find("MATERIALIZED") == line.npos &&
        std::regex_match(line, found, kColumn))
      columns.push_back(found.str(1) + " " + found.str(2));
  }
  std::ranges::sort(columns);
  return columns;
}

template <class... Parts>
std::vector<std::string> columns_that_are_sent(const Parts&... parts) {
  std::vector<std::string> columns;
  const auto add = [&]<class Value>(std::string_view name, const Value&) {
    columns.push_back(std::string(name) + " " + std::string(kTypeName<Value>));
  };
  (each_column(parts, add), ...);
  std::ranges::sort(columns);
  return columns;
}

TEST(ClickHouseRows, have_the_columns_and_types_of_the_tables) {
  ValueMaps values;
  EXPECT_EQ(columns_that_are_sent(EventRow{.values = &values}, Source()), columns_of_table("usdt_events"));
  EXPECT_EQ(columns_that_are_sent(TableRow(), Look(), Source()), columns_of_table("usdt_tables"));
  EXPECT_EQ(columns_that_are_sent(LedgerRow(), Look(), Source()), columns_of_table("usdt_ledger"));
}

/// Rows of events as they are sent, without a source.
std::string event_rows(const std::vector<EventRow>& rows) {
  std::string all = header_of(rows[0]);
  for (const EventRow& row : rows) append_values(all, row);
  return all;
}

TEST(ClickHouseRows, have_numbers_texts_and_values_within_values) {
  ValueMaps values;
  values.begin("whole"), values.whole(-5);
  values.begin("large"), values.natural(UINT64_MAX);
  values.begin("real"), values.real(1.5);
  values.begin("none"), values.error("no page");
  values.begin("some"), values.begin_object(), values.member("x"), values.begin_list(), values.whole(1);
  values.text("q\"\x01"), values.end_list(), values.end_object();
  values.begin("c\nt"), values.cut_text("a\"\\\n\xff");
  const auto json = json_rows(event_rows({{.time = {-1}, .kind = Kind::span, .values = &values}}));
  ASSERT_TRUE(json);
  EXPECT_EQ(*json,
            R"({"time":-1,"duration":0,"kind":"span","probe":"","service":"","container":"","pid":0,"tid":0,"cpu":0,)"
            R"("comm":"","weight":1,"nums":{"whole":-5},)"
            R"("args":{"large":"18446744073709551615","real":"1.5","none.error":"no page",)"
            R"("some":"{\"x\":[1,\"q\\\"\\u0001\"]}","c\u000at":"a\"\\\u000a)"
            "\xef\xbf\xbd"
            R"(ff..."},"ustack":[],"kstack":[]})"
            "\n");
  values.clear();
  EXPECT_THAT(*json_rows(event_rows({{.values = &values}})), HasSubstr(R"("nums":{},"args":{})"));
}

TEST(ClickHouseRows, have_every_type_of_column_as_json) {
  TableRow row{.count = UINT64_MAX, .sum = -HUGE_VAL, .min = std::nan(""), .distinct = 0, .unit = {"ns"}, .scale = 3};
  row.keys.add("a\"b", {"\\"});
  row.positive_index.add(-8), row.positive_count.add(2);
  row.bounds.add(0.5), row.bounds.add(HUGE_VAL);
  std::string rows = header_of(row, Look());
  for (const bool last : {false, true}) append_values(rows, row), append_values(rows, Look{.time = {1}, .last = last});
  const std::string line =
      R"({"keys":{"a\"b":"\\"},"count":18446744073709551615,"sum":"-inf","min":"nan","max":null,"distinct":0,)"
      R"("unit":"ns","scale":3,"zeros":0,"positive_index":[-8],"positive_count":[2],"negative_index":[],)"
      R"("negative_count":[],"bounds":[0.5,"inf"],"bound_counts":[],"time":1,"last":)";
  EXPECT_EQ(*json_rows(rows), line + R"(false,"service":"","container":""})" + "\n" + line +
                                  R"(true,"service":"","container":""})" + "\n");
}

/// A file of a spool may be anything.
TEST(ClickHouseRows, that_are_damaged_are_no_json) {
  ValueMaps values;
  values.begin("n"), values.whole(1), values.begin("t"), values.text("text");
  const std::string rows = event_rows({{.values = &values}}), header = header_of(EventRow{.values = &values});
  EXPECT_EQ(*json_rows(header), "");
  for (std::size_t size = 0; size < rows.size(); ++size) {
    if (size == header.size()) continue;
    EXPECT_FALSE(json_rows(rows.substr(0, size))) << size;
  }
  for (std::size_t at = 0; at < rows.size(); ++at) {
    std::string damaged = rows;
    damaged[at] = '\xff';
    (void)json_rows(damaged);  // whatever it is: it ends, and reads nothing beyond
  }
}

TEST(ClickHousePlace, older_servers_are_sent_lines_of_json) {
  std::string rows = header_of(LedgerRow());
  append_values(rows, LedgerRow{{"p"}, {"hits"}, {"hits"}, 5});
  const std::string deflated = http::gzip(rows);
  const std::string path = insert_path(*parse_place("http://x/?insert_deduplication_token="), "usdt_ledger", "t");
  const auto older = older_insertion({.path = path, .type = "a/b", .body = deflated, .is_gzip = true});
  ASSERT_TRUE(older);
  EXPECT_EQ(older->path,
            "/?query=INSERT%20INTO%20usdt_ledger%20FORMAT%20JSONEachRow&wait_end_of_query=1"
            "&input_format_skip_unknown_fields=0&deduplicate_blocks_in_dependent_materialized_views=1");
  EXPECT_EQ(http::gunzip(older->deflated, 1000), "{\"probe\":\"p\",\"role\":\"hits\",\"name\":\"hits\",\"value\":5}\n");
  EXPECT_FALSE(http::gunzip(older->deflated, 10)) << "more than it may have";
  const http::Message again{.path = older->path, .type = older->type, .body = older->deflated, .is_gzip = true};
  EXPECT_FALSE(older_insertion(again)) << "there is none that is older still";
  EXPECT_FALSE(older_insertion({.path = path, .type = "a/b", .body = "damaged", .is_gzip = true}));
}

}  // namespace
}  // namespace usdt::exports::clickhouse
