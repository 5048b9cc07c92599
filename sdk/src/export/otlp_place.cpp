// SPDX-License-Identifier: BSD-2-Clause
#include "export/otlp_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <protozero/pbf_message.hpp>
#include <string_view>
#include <utility>

#include "base/try.hpp"
#include "export/otlp_fields.hpp"
#include "io/json.hpp"
// Behind io/json.hpp, by which RapidJSON is set up.
#include <rapidjson/document.h>

namespace usdt::exports::otlp {
namespace {

using Json = rapidjson::Document::ValueType;
using protozero::pbf_wire_type;

/// Names of types have no case.
bool is_type(const http::Reply& reply, std::string_view type) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return reply.type.size() >= type.size() &&
         std::equal(type.begin(), type.end(), reply.type.begin(), [&](char a, char b) { return a == lower(b); });
}

/// A reply without a type is JSON where it looks so: no message of protobuf begins with "{".
bool is_json(const http::Reply& reply) {
  if (reply.type.empty()) return reply.body.starts_with('{');
  return is_type(reply, "application/json");
}

/// The unit that "\\uHHHH" at the beginning is in UTF-16; 0: there is none of a pair.
unsigned surrogate_at(std::string_view json) {
  unsigned unit = 0;
  if (json.size() < 6 || !json.starts_with("\\u")) return 0;
  const auto [end, error] = std::from_chars(json.data() + 2, json.data() + 6, unit, 16);
  const bool is_surrogate = error == std::errc() && end == json.data() + 6 && unit >= 0xd800 && unit <= 0xdfff;
  return is_surrogate ? unit : 0;
}

/// Puts U+FFFD in the place of halves of pairs: what a server quotes may have been cut.
std::string without_lone_surrogates(std::string_view json) {
  constexpr std::size_t kEscape = 6, kPair = 2 * kEscape;
  std::string whole;
  while (!json.empty()) {
    const unsigned first = surrogate_at(json);
    const unsigned second = first == 0 || json.size() < kPair ? 0 : surrogate_at(json.substr(kEscape));
    const bool is_pair = first >= 0xd800 && first < 0xdc00 && second >= 0xdc00;
    std::size_t taken = json[0] == '\\' ? std::min<std::size_t>(2, json.size()) : 1;
    if (first != 0) taken = is_pair ? kPair : kEscape;
    whole.append(first != 0 && !is_pair ? "\\ufffd" : json.substr(0, taken));
    json.remove_prefix(taken);
  }
  return whole;
}

/// Parses an object; null: it is none. Without recursion, however many brackets lie within each other.
rapidjson::Document object_of(const std::string& body) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(body.data(), body.size());
  if (document.GetParseError() == rapidjson::kParseErrorStringUnicodeSurrogateInvalid) {
    const std::string whole = without_lone_surrogates(body);
    document.Parse<rapidjson::kParseIterativeFlag>(whole.data(), whole.size());
  }
  if (document.HasParseError() || !document.IsObject()) document.SetNull();
  return document;
}

const Json* member_of(const Json& object, const char* name) {
  if (!object.IsObject()) return nullptr;
  const auto found = object.FindMember(name);
  return found == object.MemberEnd() ? nullptr : &found->value;
}

std::string text_of(const Json* value) {
  return value != nullptr && value->IsString() ? std::string(value->GetString(), value->GetStringLength())
                                               : std::string();
}

/// A count, which may be text in JSON.
std::uint64_t count_of(const Json& value) {
  if (value.IsUint64()) return value.GetUint64();
  if (value.IsDouble() && value.GetDouble() >= 0 && value.GetDouble() < 0x1p63)
    return static_cast<std::uint64_t>(value.GetDouble());
  const std::string digits = text_of(&value);
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  return error == std::errc() && end == digits.data() + digits.size() ? count : 0;
}

http::Rejected rejected_in_json(const std::string& body) {
  const rapidjson::Document answer = object_of(body);
  const Json* const part = member_of(answer, "partialSuccess");
  if (part == nullptr) return {};
  http::Rejected rejected{.items = 0, .why = text_of(member_of(*part, "errorMessage"))};
  for (const char* name : {"rejectedSpans", "rejectedLogRecords", "rejectedDataPoints"})
    if (const Json* const count = member_of(*part, name)) rejected.items = std::max(rejected.items, count_of(*count));
  return rejected;
}

http::Rejected rejected_in_protobuf(const std::string& body) {
  http::Rejected rejected;
  protozero::pbf_message<Answer> answer(body);
  if (!answer.next(Answer::partial_success, pbf_wire_type::length_delimited)) return rejected;
  protozero::pbf_message<PartialSuccess> part = answer.get_message();
  while (part.next()) {
    if (part.tag() == PartialSuccess::rejected && part.has_wire_type(pbf_wire_type::varint))
      rejected.items = static_cast<std::uint64_t>(std::max(part.get_int64(), std::int64_t{0}));
    else if (part.tag() == PartialSuccess::message && part.has_wire_type(pbf_wire_type::length_delimited))
      rejected.why = part.get_string();
    else
      part.skip();
  }
  return rejected;
}

std::string message_in_protobuf(const std::string& body) {
  protozero::pbf_message<Status> status(body);
  return status.next(Status::message, pbf_wire_type::length_delimited) ? status.get_string() : std::string();
}

tl::unexpected<Error> wrong(std::string_view why) {
  return fail(ErrorKind::invalid_argument, fmt::format("of otlp=http://HOST:PORT: {}", why));
}

/// People have the address of one kind of batches at hand. Each kind has its own behind the place.
void take_out_kind(std::string& path) {
  for (const std::string_view kind : {"/v1/traces", "/v1/metrics", "/v1/logs"})
    if (path.ends_with(kind)) return path.resize(path.size() - kind.size());
}

}  // namespace

Result<Place> parse_place(const std::string& text) {
  const auto split = http::split_options(text);
  if (!split) return wrong("options are NAME=VALUE&NAME=VALUE");
  Place place{.url = TRY(http::parse_url(split->first))};
  take_out_kind(place.url.path);
  for (const auto& [name, value] : split->second) {
    if (name != "encoding" || (value != "protobuf" && value != "json"))
      return wrong(fmt::format("\"{}={}\" is no option: encoding=protobuf, encoding=json", name, value));
    place.encoding = value == "json" ? Encoding::json : Encoding::protobuf;
  }
  return place;
}

http::Rejected rejected_by(const http::Reply& reply) try {
  return is_json(reply) ? rejected_in_json(reply.body) : rejected_in_protobuf(reply.body);
} catch (const protozero::exception&) {
  return {};  // it took the batch, and says something else
}

std::string message_of(const http::Reply& reply) try {
  if (is_json(reply)) return text_of(member_of(object_of(reply.body), "message"));
  return is_type(reply, "application/x-protobuf") ? message_in_protobuf(reply.body) : std::string();
} catch (const protozero::exception&) {
  return {};
}

Result<http::Endpoint> find_endpoint(const std::string& place) {
  return http::Endpoint{.url = TRY(parse_place(place)).url, .rejected_by = rejected_by, .message_of = message_of};
}

}  // namespace usdt::exports::otlp
