// SPDX-License-Identifier: BSD-2-Clause
#include "proc/process_context.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <random>
#include <string>

#include "support.hpp"

namespace usdt::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A field of protobuf that has a length, byte for byte (protobuf.dev: Encoding).
std::string field(unsigned number, std::string_view bytes) {
  std::string encoded(1, static_cast<char>(number << 3 | 2));
  std::size_t size = bytes.size();
  for (; size > 0x7f; size >>= 7) encoded += static_cast<char>(size | 0x80);
  encoded += static_cast<char>(size);
  return encoded.append(bytes);
}
std::string text(std::string_view bytes) { return field(1, bytes); }
std::string list(std::initializer_list<std::string> values) {
  std::string all;
  for (const std::string& value : values) all += field(1, value);
  return field(5, all);
}
std::string attribute(std::string_view key, std::string_view value) {
  return field(2, field(1, key) + field(2, value));
}
const std::string kSchema = attribute("threadlocal.schema_version", text("tlsdesc_v1_dev"));
std::string keys(const std::string& value) { return attribute("threadlocal.attribute_key_map", value); }

TEST(ProcessContext, has_the_keys_of_threads_among_all_else) {
  const std::string resource = field(1, field(1, field(1, "service.name") + field(2, text("shop"))));
  const auto read = proc::parse_process_context(resource + kSchema + attribute("other", text("x")) +
                                                keys(list({text("http.route"), text(""), text("\xff")})));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->schema, "tlsdesc_v1_dev");
  EXPECT_THAT(read->keys, ElementsAre("http.route", "", "\xff"));
  EXPECT_EQ(proc::parse_process_context("").value(), proc::ProcessContext());
  // Fields of numbers that nobody knows, and of known numbers with another type.
  EXPECT_TRUE(proc::parse_process_context(std::string("\x08\x01\x10\x02", 4) + kSchema + field(15, "?")));
}

TEST(ProcessContext, is_refused_where_it_is_another_thing) {
  const auto why = [](std::string_view payload) {
    const auto read = proc::parse_process_context(payload);
    return read ? "" : read.error().message;
  };
  EXPECT_THAT(why(std::string_view(kSchema).substr(0, kSchema.size() - 1)), HasSubstr("no message of protobuf"));
  EXPECT_THAT(why(kSchema + kSchema), HasSubstr("twice"));
  EXPECT_THAT(why(keys(text("http.route"))), HasSubstr("no list"));
  EXPECT_THAT(why(keys(list({text("a"), std::string("\x18\x01", 2)}))), HasSubstr("number in the place of a text"));
  std::string many;
  for (int n = 0; n < 257; ++n) many += field(1, text("k"));
  EXPECT_THAT(why(keys(field(5, many))), HasSubstr("257 keys, of at most 256"));
  EXPECT_EQ(why(keys(field(5, many.substr(0, many.size() / 257 * 256)))), "");
  EXPECT_THAT(why(std::string(65537, '\0')), HasSubstr("65537 bytes"));
}

TEST(ProcessContext, of_any_bytes_is_read_or_refused) {
  const std::string whole = kSchema + keys(list({text("http.route"), text("user.id")}));
  std::mt19937 random(4719);
  std::size_t read = 0;
  for (int n = 0; n < 20'000; ++n) {
    std::string bytes = whole;
    for (unsigned change = random() % 4 + 1; change > 0; --change)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto found = proc::parse_process_context(bytes);
    read += found ? 1 : 0;
    ASSERT_LE(found ? found->keys.size() : 0, bytes.size() / 2) << "each takes two bytes";
  }
  EXPECT_GT(read, 100U);
  EXPECT_LT(read, 19'900U);
}

/// A process with a page of that name. `published_at` 0: it is changing it.
struct Publisher {
  Publisher(std::uint32_t version, std::uint64_t published_at, const std::string& payload, std::uint32_t size)
      : child([&] {
          const int file = ::memfd_create("OTEL_CTX", 0);
          if (::ftruncate(file, 4096) != 0) return;
          auto* page = static_cast<char*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0));
          const std::uint64_t at = reinterpret_cast<std::uint64_t>(payload.data());
          std::memcpy(page, "OTEL_CTX", 8);
          std::memcpy(page + 8, &version, 4);
          std::memcpy(page + 12, &size, 4);
          std::memcpy(page + 16, &published_at, 8);
          std::memcpy(page + 24, &at, 8);
          static_cast<void>(::write(STDOUT_FILENO, "x", 1));
          ::pause();
        }) {}
  Child child;
};

TEST(ProcessContext, of_a_process_is_found_by_the_name_of_its_page) {
  const std::string payload = kSchema + keys(list({text("a"), text("b")}));
  const auto size = static_cast<std::uint32_t>(payload.size());
  const Publisher good(2, 77, payload, size);
  const auto read = proc::read_process_context(good.child.pid);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->published_at, 77U);
  EXPECT_THAT(read->context.keys, ElementsAre("a", "b"));
  const auto again = proc::read_process_context(good.child.pid, read->page);
  EXPECT_EQ(again.value().context, read->context);
  EXPECT_EQ(proc::read_process_context(good.child.pid, ProcessAddr(4096)).value().page, read->page);

  const auto why = [](const Publisher& of) { return proc::read_process_context(of.child.pid).error(); };
  EXPECT_EQ(why({1, 77, payload, size}).kind, ErrorKind::not_supported);
  EXPECT_THAT(why({2, 0, payload, size}).message, HasSubstr("was changing"));
  EXPECT_EQ(why({2, 77, payload, 65537}).kind, ErrorKind::limit);
  EXPECT_EQ(why({2, 77, payload, size - 1}).kind, ErrorKind::malformed);
  const std::string of_go = attribute("threadlocal.schema_version", text("go_pprof_labels_v1"));
  EXPECT_THAT(why({2, 77, of_go, static_cast<std::uint32_t>(of_go.size())}).message, HasSubstr("another form"));
  EXPECT_EQ(why({2, 77, "", 0}).kind, ErrorKind::not_supported) << "no word of threads";
  const Child sleeper = Child::running(PROC_SLEEPER);
  EXPECT_EQ(proc::read_process_context(sleeper.pid).error().kind, ErrorKind::not_found);
  EXPECT_EQ(proc::read_process_context(1 << 30).error().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace usdt::test
