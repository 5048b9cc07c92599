// SPDX-License-Identifier: BSD-2-Clause
#include "proc/process_context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <protozero/exception.hpp>
#include <protozero/pbf_message.hpp>
#include <span>
#include <utility>

#include "base/try.hpp"
#include "proc/process_maps.hpp"
#include "proc/process_memory.hpp"

namespace usdt::proc {
namespace {

using protozero::pbf_message;
using protozero::pbf_wire_type;

/// Messages of opentelemetry-proto, by the numbers of their fields.
enum class Context : protozero::pbf_tag_type { attribute = 2 };
enum class KeyValue : protozero::pbf_tag_type { key = 1, value = 2 };
enum class AnyValue : protozero::pbf_tag_type { text = 1, array = 5 };
enum class ArrayValue : protozero::pbf_tag_type { value = 1 };

constexpr std::string_view kSchema = "threadlocal.schema_version", kKeys = "threadlocal.attribute_key_map";

/// Calls `take` for each field with this tag that is a text or a message; others are passed over.
template <class Tag, class Take>
void each(std::string_view message, Tag tag, Take take) {
  pbf_message<Tag> fields(message.data(), message.size());
  while (fields.next()) {
    if (fields.tag() != tag || !fields.has_wire_type(pbf_wire_type::length_delimited)) {
      fields.skip();
      continue;
    }
    const protozero::data_view view = fields.get_view();
    take(std::string_view(view.data(), view.size()));
  }
}

/// Returns the last field with this tag, which counts where there are several; nothing: there is none.
template <class Tag>
std::optional<std::string_view> last(std::string_view message, Tag tag) {
  std::optional<std::string_view> found;
  each(message, tag, [&](std::string_view field) { found = field; });
  return found;
}

Result<std::string> text_in(std::string_view value) {
  const auto text = last(value, AnyValue::text);
  if (!text) return fail(ErrorKind::malformed, "a process context with a number in the place of a text");
  return std::string(*text);
}

Result<std::vector<std::string>> keys_in(std::string_view value) {
  const auto array = last(value, AnyValue::array);
  if (!array) return fail(ErrorKind::malformed, "a process context whose keys are no list");
  std::vector<std::string_view> values;
  each(*array, ArrayValue::value, [&](std::string_view element) { values.push_back(element); });
  if (values.size() > kMostContextKeys)
    return fail(ErrorKind::limit,
                fmt::format("a process context with {} keys, of at most {}", values.size(), kMostContextKeys));
  std::vector<std::string> keys;
  for (const std::string_view element : values) {
    auto key = TRY(text_in(element));
    keys.push_back(std::move(key));
  }
  return keys;
}

/// Collects the two attributes that are about threads.
class ContextReader {
 public:
  Result<void> take(std::string_view pair) {
    const std::string_view key = last(pair, KeyValue::key).value_or("");
    if (key != kSchema && key != kKeys) return {};
    if (std::exchange(seen_[key == kKeys ? 1 : 0], true))
      return fail(ErrorKind::malformed, fmt::format("a process context that says {} twice", key));
    const std::string_view value = last(pair, KeyValue::value).value_or("");
    if (key == kSchema) {
      auto schema = TRY(text_in(value));
      read_.schema = std::move(schema);
    } else {
      auto keys = TRY(keys_in(value));
      read_.keys = std::move(keys);
    }
    return {};
  }
  [[nodiscard]] ProcessContext context() && { return std::move(read_); }

 private:
  ProcessContext read_;
  std::array<bool, 2> seen_ = {};
};

/// The header of a page (OTEP 4719).
struct Header {
  std::array<char, 8> signature;
  std::uint32_t version;
  std::uint32_t size;
  std::uint64_t published_at;
  std::uint64_t payload;
};
static_assert(offsetof(Header, published_at) == kPublishedAt && sizeof(Header) == 32);

bool is_page(const Mapping& mapping) {
  constexpr std::array<std::string_view, 3> names{"[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]", "/memfd:OTEL_CTX"};
  return std::ranges::any_of(names, [&](std::string_view name) { return mapping.path.starts_with(name); });
}

Result<Header> header_at(const ProcessMemory& memory, ProcessAddr page) {
  std::array<std::byte, sizeof(Header)> bytes{};
  Header header{};
  if (!memory.read(page, bytes)) return fail(ErrorKind::io, "the page of the process context cannot be read");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::string_view(header.signature.data(), header.signature.size()) != "OTEL_CTX")
    return fail(ErrorKind::malformed, "the page of the process context has another signature");
  return header;
}

/// A process may have mapped several pages of that name: the first with a header is meant.
Result<ProcessAddr> find_page(const ProcessMemory& memory, pid_t pid) {
  std::optional<ProcessAddr> found;
  std::size_t seen = 0;
  constexpr std::size_t most = 16;
  TRY(read_maps(directory_of(pid) / "maps", pid, [&](Mapping& mapping) {
    if (found || seen == most || !is_page(mapping)) return;
    ++seen;
    if (header_at(memory, mapping.start)) found = mapping.start;
  }));
  if (!found) return fail(ErrorKind::not_found, "the process does not say what its attributes are called");
  return *found;
}

/// Reads it once; nothing: it was changed meanwhile.
Result<std::optional<PublishedContext>> read_once(const ProcessMemory& memory, ProcessAddr page) {
  const Header header = TRY(header_at(memory, page));
  if (header.published_at == 0) return std::optional<PublishedContext>();
  if (header.version != 2)
    return fail(ErrorKind::not_supported, fmt::format("a process context of version {}, not 2", header.version));
  if (header.size > kMostContextBytes)
    return fail(ErrorKind::limit,
                fmt::format("a process context of {} bytes, of at most {}", header.size, kMostContextBytes));
  std::string payload(header.size, '\0');
  const bool has_payload = memory.read(ProcessAddr(header.payload), std::as_writable_bytes(std::span(payload)));
  const Header after = TRY(header_at(memory, page));
  if (after.published_at != header.published_at) return std::optional<PublishedContext>();
  if (!has_payload) return fail(ErrorKind::io, "the process context cannot be read");
  return std::optional(PublishedContext{page, header.published_at, TRY(parse_process_context(payload))});
}

Result<PublishedContext> read_at_page(const ProcessMemory& memory, ProcessAddr page) {
  constexpr int most = 4;
  for (int n = 0; n < most; ++n)
    if (auto read = TRY(read_once(memory, page))) {
      const std::string& schema = read->context.schema;
      if (schema == "tlsdesc_v1_dev" || schema == "tls_v1") return *std::move(read);
      return fail(ErrorKind::not_supported,
                  schema.empty() ? "the process does not say what its attributes are called"
                                 : fmt::format("the process has thread contexts of another form ({})", schema));
    }
  return fail(ErrorKind::io, "the process was changing what its attributes are called");
}

}  // namespace

Result<ProcessContext> parse_process_context(std::string_view payload) try {
  if (payload.size() > kMostContextBytes)
    return fail(ErrorKind::limit,
                fmt::format("a process context of {} bytes, of at most {}", payload.size(), kMostContextBytes));
  ContextReader reader;
  Result<void> taken;
  each(payload, Context::attribute, [&](std::string_view pair) {
    if (taken) taken = reader.take(pair);
  });
  if (!taken) return fail(taken.error());
  return std::move(reader).context();
} catch (const protozero::exception&) {
  return fail(ErrorKind::malformed, "a process context that is no message of protobuf");
}

Result<PublishedContext> read_process_context(pid_t pid, ProcessAddr page) {
  const ProcessMemory memory = TRY(ProcessMemory::open(pid));
  if (page.value != 0 && header_at(memory, page)) return read_at_page(memory, page);
  page = TRY(find_page(memory, pid));
  return read_at_page(memory, page);
}

}  // namespace usdt::proc
