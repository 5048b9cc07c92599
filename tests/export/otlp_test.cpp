// SPDX-License-Identifier: BSD-2-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <protozero/pbf_builder.hpp>
#include <random>
#include <string>

#include "export/otlp_fields.hpp"
#include "export/otlp_json.hpp"
#include "export/otlp_place.hpp"

namespace usdt::exports::otlp {
namespace {

using protozero::pbf_builder;
using ::testing::HasSubstr;

/// A request with one item, which `add` adds to.
template <class Item, class Add>
std::string request_with(const Add& add) {
  std::string item, scope, resource, request;
  pbf_builder<Item> builder(item);
  add(builder);
  pbf_builder<OfScope>(scope).add_message(OfScope::item, item);
  pbf_builder<OfResource>(resource).add_message(OfResource::of_scope, scope);
  pbf_builder<Export>(request).add_message(Export::of_resource, resource);
  return request;
}

TEST(ToJson, writes_identifiers_in_hexadecimal_digits_and_64_bits_as_text) {
  const std::string request = request_with<Span>([](pbf_builder<Span>& span) {
    span.add_bytes(Span::trace_id, std::string("\x5b\x8e\xff\xf7\x98\x03\x81\x03\xd2\x69\xb6\x33\x81\x3f\xc6\x0c"));
    span.add_bytes(Span::span_id, std::string("\xee\xe1\x9b\x7e\xc3\xc1\xb1\x74"));
    span.add_string(Span::name, "I'm a \"span\"\n");
    span.add_enum(Span::kind, kSpanInternal);
    span.add_fixed64(Span::start, 1544712660000000000U);
    span.add_fixed64(Span::end, std::numeric_limits<std::uint64_t>::max());
  });
  EXPECT_EQ(to_json(Signal::traces, request),
            R"({"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c",)"
            R"("spanId":"eee19b7ec3c1b174","name":"I'm a \"span\"\n","kind":1,)"
            R"("startTimeUnixNano":"1544712660000000000","endTimeUnixNano":"18446744073709551615"}]}]}]})");
}

template <class Add>
void add_attribute(pbf_builder<LogRecord>& log, const char* key, const Add& add) {
  pbf_builder<KeyValue> pair(log, LogRecord::attribute);
  pair.add_string(KeyValue::key, key);
  pbf_builder<AnyValue> value(pair, KeyValue::value);
  add(value);
}

TEST(ToJson, writes_values_of_all_kinds_and_within_each_other) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const std::string request = request_with<LogRecord>([&](pbf_builder<LogRecord>& log) {
    add_attribute(log, "n", [](auto& v) { v.add_int64(AnyValue::whole, std::numeric_limits<std::int64_t>::min()); });
    add_attribute(log, "r", [](auto& v) { v.add_double(AnyValue::real, 0.1); });
    add_attribute(log, "i", [&](auto& v) { v.add_double(AnyValue::real, -kInfinite); });
    add_attribute(log, "x", [](auto& v) { v.add_double(AnyValue::real, std::numeric_limits<double>::quiet_NaN()); });
    add_attribute(log, "l", [](auto& v) {
      pbf_builder<Values> list(v, AnyValue::array);
      for (const char* text : {"a", ""}) pbf_builder<AnyValue>(list, Values::value).add_string(AnyValue::text, text);
    });
    add_attribute(log, "none", [](auto& v) { v.add_message(AnyValue::object, std::string()); });
    log.add_string(LogRecord::event_name, "p:n");
  });
  EXPECT_EQ(to_json(Signal::logs, request),
            R"({"resourceLogs":[{"scopeLogs":[{"logRecords":[{"attributes":[)"
            R"({"key":"n","value":{"intValue":"-9223372036854775808"}},{"key":"r","value":{"doubleValue":0.1}},)"
            R"({"key":"i","value":{"doubleValue":"-Infinity"}},{"key":"x","value":{"doubleValue":"NaN"}},)"
            R"({"key":"l","value":{"arrayValue":{"values":[{"stringValue":"a"},{"stringValue":""}]}}},)"
            R"({"key":"none","value":{"kvlistValue":{}}}],"eventName":"p:n"}]}]}]})");
}

TEST(ToJson, leaves_out_what_it_does_not_know) {
  const std::string request = request_with<LogRecord>([](pbf_builder<LogRecord>& log) {
    add_attribute(log, "a", [](auto& v) { v.add_int64(AnyValue::whole, 1); });
    log.add_fixed32(static_cast<LogRecord>(13), 7U);
    log.add_string(LogRecord::event_name, "p:n");
  });
  EXPECT_THAT(to_json(Signal::logs, request), HasSubstr(R"("1"}}],"eventName":"p:n"})"));
}

TEST(ParsePlace, knows_two_encodings) {
  const auto parsed = [](const std::string& text) {
    const auto place = parse_place(text);
    if (!place) return place.error().message;
    return place->url.authority() + place->url.path + (place->encoding == Encoding::json ? " json" : " protobuf");
  };
  EXPECT_EQ(parsed("http://x:1/a/"), "x:1/a protobuf");
  EXPECT_EQ(parsed("http://x:1/v1/traces"), "x:1 protobuf") << "each kind of batches has its path behind the place";
  EXPECT_EQ(parsed("http://x:1/a/v1/metrics/?encoding=json"), "x:1/a json");
  EXPECT_EQ(parsed("http://x:1/v1/tracesx"), "x:1/v1/tracesx protobuf");
  EXPECT_EQ(parsed("http://x:1?encoding=json"), "x:1 json");
  EXPECT_EQ(parsed("http://x:1/a/?encoding=json"), "x:1/a json");
  EXPECT_EQ(parsed("http://x:1?encoding=json&encoding=protobuf"), "x:1 protobuf");
  EXPECT_THAT(parsed("http://x:1?encoding=JSON"), HasSubstr("\"encoding=JSON\" is no option"));
  EXPECT_THAT(parsed("http://x:1?token=1"), HasSubstr("\"token=1\" is no option"));
  EXPECT_THAT(parsed("http://x:1?json"), HasSubstr("NAME=VALUE"));
  EXPECT_THAT(parsed("https://x:1?encoding=json"), HasSubstr("a collector of this host"));
}

http::Reply reply_of(std::string type, std::string body) {
  return {.status = 200, .type = std::move(type), .body = std::move(body)};
}

TEST(RejectedBy, reads_json_whatever_the_signal_is) {
  const auto rejected = [](std::string body) {
    const http::Rejected read = rejected_by(reply_of("application/json", std::move(body)));
    return std::to_string(read.items) + read.why;
  };
  EXPECT_EQ(rejected(R"({"partialSuccess":{"rejectedSpans":"7","errorMessage":"old"}})"), "7old");
  EXPECT_EQ(rejected(R"({"partialSuccess":{"rejectedLogRecords":7}})"), "7");
  EXPECT_EQ(rejected(R"({"partialSuccess":{"rejectedDataPoints":"18446744073709551615"}})"), "18446744073709551615");
  EXPECT_EQ(rejected(R"({"partialSuccess":{"errorMessage":"a warning"}})"), "0a warning");
  EXPECT_EQ(rejected(R"({"partialSuccess":{"rejectedSpans":60.0}})"), "60");
  EXPECT_EQ(rejected_by(reply_of("Application/JSON; charset=utf-8", R"({"partialSuccess":{"rejectedSpans":2}})")).items,
            2U);
  for (const char* nothing :
       {"", "{}", "[]", "null", R"({"partialSuccess":null})", R"({"partialSuccess":[7]})",
        R"({"partialSuccess":{"rejectedSpans":-7}})", R"({"partialSuccess":{"rejectedSpans":"7 of 9"}})",
        R"({"partialSuccess":{"rejectedSpans":-1.5,"errorMessage":7}})", R"({"partialSuccess":{"rejectedSpans":7}} x)"})
    EXPECT_EQ(rejected(nothing), "0") << nothing;
  EXPECT_EQ(rejected(std::string(1 << 20, '[')), "0");
  const std::string odd = "\xef\xbf\xbd";  // for halves of pairs
  EXPECT_EQ(rejected(R"({"partialSuccess":{"errorMessage":"a\ud83d","rejectedSpans":7}})"), "7a" + odd);
  EXPECT_EQ(rejected(R"({"partialSuccess":{"rejectedSpans":7,"errorMessage":"\ude00\ud83d\ude00\\\ud83d\n"}})"),
            "7" + odd + "\xf0\x9f\x98\x80\\" + odd + "\n");
  EXPECT_EQ(rejected(R"({"partialSuccess":{"rejectedSpans":7,"errorMessage":"\ud83d\ud83d\ude00\\ud83d"}})"),
            "7" + odd + "\xf0\x9f\x98\x80\\ud83d");
  EXPECT_EQ(rejected(R"({"partialSuccess":{"rejectedSpans":7,"errorMessage":"\ud83d)"), "0") << "no end";
  EXPECT_EQ(rejected_by(reply_of("", R"({"partialSuccess":{"rejectedSpans":2}})")).items, 2U)
      << "a reply without a type";
}

/// A server may say anything.
TEST(RejectedBy, takes_any_bytes) {
  std::mt19937 random(5);
  const std::string characters("\x0a\x08\x12\x01{}[]\":,7\xff\x00", 15);
  for (int n = 0; n < 20'000; ++n) {
    std::string body;
    for (int i = std::uniform_int_distribution<>(0, 20)(random); i > 0; --i)
      body += characters[std::uniform_int_distribution<std::size_t>(0, characters.size() - 1)(random)];
    for (const char* type : {"", "application/json", "application/x-protobuf"}) {
      EXPECT_LE(rejected_by(reply_of(type, body)).why.size(), body.size());
      EXPECT_LE(message_of(reply_of(type, body)).size(), body.size());
    }
  }
}

TEST(MessageOf, is_that_of_a_status) {
  std::string status;
  pbf_builder<Status> builder(status);
  builder.add_int32(static_cast<Status>(1), 3);
  builder.add_string(Status::message, "no tenant");
  EXPECT_EQ(message_of(reply_of("application/x-protobuf", status)), "no tenant");
  EXPECT_EQ(message_of(reply_of("application/json;charset=utf-8", R"({"code":3,"message":"no tenant"})")), "no tenant");
  EXPECT_EQ(message_of(reply_of("text/plain", "no tenant")), "") << "the body itself says it";
  EXPECT_EQ(message_of(reply_of("application/x-protobuf", status.substr(0, 5))), "");
}

}  // namespace
}  // namespace usdt::exports::otlp
