// SPDX-License-Identifier: BSD-2-Clause
// Probes of <usdt/provider.h> on the running kernel and machine: this process makes them, fires them and traces itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <usdt/provider.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "usdt/usdt.hpp"

namespace usdt {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;
using Hits = std::vector<std::vector<std::string>>;

class RunTimeProbes : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "not root";
    ASSERT_EQ(usdtp_provider_create("live", 0, &provider_), 0);
  }
  void TearDown() override { usdtp_provider_retire(provider_); }

  usdtp_probe* add(const char* name, const char* arguments) {
    usdtp_probe* probe = nullptr;
    EXPECT_EQ(usdtp_probe_add(provider_, name, arguments, &probe), 0) << name;
    return probe;
  }
  void publish() { ASSERT_EQ(usdtp_provider_publish(provider_), 0); }

  static Selection found(pid_t pid = ::getpid()) {
    auto selection = select({*ProbePattern::parse("live:*")}, {.targets = {}, .pids = {pid}, .program = {}});
    EXPECT_TRUE(selection) << selection.error().message;
    return selection ? std::move(*selection) : Selection();
  }

  /// What a tracer of this process sees of `fire`.
  template <class Fire>
  static Hits traced(const Fire& fire) {
    PlanOptions options;
    options.scope = *OneProcess::of(::getpid());
    options.texts.typed = true;
    auto plan = plan_attach(found(), kernel_facts(), options);
    EXPECT_TRUE(plan) << plan.error().message;
    auto tracer = Tracer::start(std::move(*plan));
    EXPECT_TRUE(tracer) << tracer.error().message;
    if (!tracer) return {};
    fire();
    tracer->detach();
    Hits hits;
    tracer->drain([&](const Event& event) { hits.push_back(shown(event)); });
    return hits;
  }

  usdtp_provider* provider_ = nullptr;

 private:
  static std::vector<std::string> shown(const Event& event) {
    std::vector<std::string> texts{std::string(event.probe().name)};
    for (std::size_t n = 0; n < event.arg_count(); ++n) {
      if (event.arg_info(n).type.kind == TypeKind::text) {
        const auto text = event.text(n);
        texts.emplace_back(text ? text->bytes : text.error().message);
      } else {
        texts.push_back(std::visit([](const auto& value) { return as_text(value); }, event.value(n)));
      }
    }
    return texts;
  }
  static std::string as_text(const ArgError& error) { return std::string(error.reason); }
  static std::string as_text(double value) { return std::to_string(value); }
  static std::string as_text(std::int64_t value) { return std::to_string(value); }
  static std::string as_text(std::uint64_t value) { return std::to_string(value); }
};

TEST_F(RunTimeProbes, twelve_arguments_are_what_was_passed) {
  usdtp_probe* twelve =
      add("twelve", "i8 a, u8 b, i16 c, u16 d, i32 e, u32 f, i64 g, u64 h, bool i, f32 j, f64 k, ptr l");
  usdtp_probe* numbers =
      add("numbers", "u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h, u64 i, u64 j, u64 k, u64 l");
  publish();
  const Hits hits = traced([&] {
    USDT_PROBE_FIRE(twelve, -128, 255, -32768, 65535, -2147483647, 4294967295U,
                    std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::uint64_t>::max(), 7, 1.5, -2.25F,
                    nullptr);
    USDT_PROBE_FIRE(numbers, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1ULL << 63);
  });
  EXPECT_THAT(
      hits, ElementsAre(ElementsAre("twelve", "-128", "255", "-32768", "65535", "-2147483647", "4294967295",
                                    "-9223372036854775808", "18446744073709551615", "1", "1.500000", "-2.250000", "0"),
                        ElementsAre("numbers", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11",
                                    "9223372036854775808")));
}

TEST_F(RunTimeProbes, texts_have_the_length_that_is_passed) {
  usdtp_probe* texts = add("texts", "str whole, text part, i32 behind");
  publish();
  const Hits hits = traced([&] { USDT_PROBE_FIRE(texts, "all of it", std::string_view("a part", 3), -1); });
  EXPECT_THAT(hits, ElementsAre(ElementsAre("texts", "all of it", "a p", "3", "-1")));
}

TEST_F(RunTimeProbes, nothing_is_evaluated_but_while_they_are_traced) {
  usdtp_probe* probe = add("counts", "i32 number");
  publish();
  int evaluated = 0;
  USDT_PROBE_FIRE(probe, ++evaluated);
  const Hits hits = traced([&] {
    EXPECT_EQ(usdtp_probe_traced(probe), 1);
    USDT_PROBE_FIRE(probe, ++evaluated);
  });
  USDT_PROBE_FIRE(probe, ++evaluated);
  EXPECT_EQ(usdtp_probe_traced(probe), 0);
  EXPECT_EQ(evaluated, 1);
  EXPECT_THAT(hits, ElementsAre(ElementsAre("counts", "1")));
}

TEST_F(RunTimeProbes, one_of_several_publications_is_retired) {
  usdtp_probe* first = add("first", "i32 number");
  publish();
  usdtp_probe* second = add("second", "i32 number");
  publish();
  EXPECT_EQ(found().files.size(), 2U);
  const Hits hits = traced([&] {
    USDT_PROBE_FIRE(first, 1);
    usdtp_probe_retire(first);
    USDT_PROBE_FIRE(first, 2);
    USDT_PROBE_FIRE(second, 3);
  });
  EXPECT_THAT(hits, ElementsAre(ElementsAre("first", "1"), ElementsAre("second", "3")));
  EXPECT_EQ(found().files.size(), 1U) << "the file of the other one is hidden";
}

TEST_F(RunTimeProbes, a_child_has_those_that_were_published) {
  add("inherited", "");
  publish();
  add("waiting", "");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    ::close(ends[1]);
    ::_exit(static_cast<int>(::read(ends[0], &byte, 1)));
  }
  add("of_parent", "");
  publish();
  EXPECT_EQ(found().files.size(), 2U);
  EXPECT_EQ(found(child).files.size(), 1U) << "what the parent publishes later it publishes for itself";
  ::close(ends[1]);
  ::close(ends[0]);
  int status = 1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(RunTimeProbes, tracers_learn_of_publications) {
  auto selection =
      select({*ProbePattern::parse("usdtp:published")}, {.targets = {}, .pids = {::getpid()}, .program = {}});
  ASSERT_TRUE(selection) << selection.error().message;
  PlanOptions options;
  options.scope = *OneProcess::of(::getpid());
  options.texts.typed = true;
  auto plan = plan_attach(*selection, kernel_facts(), options);
  ASSERT_TRUE(plan) << plan.error().message;
  auto tracer = Tracer::start(std::move(*plan));
  ASSERT_TRUE(tracer) << tracer.error().message;
  add("one", "");
  add("two", "");
  publish();
  tracer->detach();
  std::vector<std::string> seen;
  tracer->drain([&](const Event& event) {
    seen.push_back(std::string(event.text(0) ? event.text(0)->bytes : "") + " " +
                   std::to_string(event.arg<std::uint32_t>(1).value_or(0)));
  });
  EXPECT_THAT(seen, ElementsAre("live 2"));
}

}  // namespace
}  // namespace usdt
