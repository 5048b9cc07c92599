// SPDX-License-Identifier: BSD-2-Clause
// libusdt-provider within one process and untraced: what it takes, what it refuses, what is left of it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <usdt/provider.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

extern "C" {
#include "provider/src/arguments.h"
}

namespace {

class Provider {
 public:
  explicit Provider(const char* name = "test") { EXPECT_EQ(usdtp_provider_create(name, 0, &provider_), 0); }
  ~Provider() { usdtp_provider_retire(provider_); }
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;

  int add(const char* name, const char* arguments) { return usdtp_probe_add(provider_, name, arguments, &last); }
  int publish() { return usdtp_provider_publish(provider_); }

  usdtp_probe* last = nullptr;

 private:
  usdtp_provider* provider_ = nullptr;
};

TEST(Provider, names_are_what_every_tool_takes) {
  Provider provider;
  usdtp_provider* other = nullptr;
  const std::string longest(127, 'x');
  for (const char* name : {"a", "_x9", "http.request-done", "A__b", longest.c_str()}) {
    EXPECT_EQ(provider.add(name, ""), 0) << name;
    EXPECT_EQ(usdtp_provider_create(name, 0, &other), 0) << name;
    usdtp_provider_retire(other);
  }
  const std::string too_long(128, 'x');
  const std::string very_long(300, 'x');
  for (const char* name : {"", " ", "a b", "a:b", "9a", "-a", ".a", "a*", "a\n", "a\"", "a,b", "caf\xc3\xa9",
                           "\xff\xfe", "a/b", "a%s", too_long.c_str(), very_long.c_str()}) {
    EXPECT_EQ(provider.add(name, ""), -EINVAL) << name;
    EXPECT_EQ(usdtp_provider_create(name, 0, &other), -EINVAL) << name;
    EXPECT_EQ(other, nullptr);
  }
  EXPECT_EQ(provider.add("ends\0here", ""), 0) << "a NUL is the end of a name";
  EXPECT_EQ(provider.add("ends", ""), -EEXIST);
  EXPECT_EQ(provider.add(nullptr, ""), -EINVAL);
  EXPECT_EQ(provider.add("null", nullptr), -EINVAL);
  EXPECT_EQ(usdtp_provider_create("flags", 0x80, &other), -EINVAL);
}

TEST(Provider, declarations_say_types_names_and_meanings) {
  struct Case {
    const char* text;
    std::vector<int> types;
    const char* items;
  };
  const Case cases[] = {
      {"", {}, ""},
      {"  ", {}, ""},
      {"i32 a", {USDTP_INT}, "a"},
      {" i8 a ,u8 b,i16 c", {USDTP_SIGNED_CHAR, USDTP_UNSIGNED_CHAR, USDTP_SHORT}, "a,b,c"},
      {"str sql, i64 took : duration [ us ]", {USDTP_CONST_STRING, USDTP_LONG_LONG}, "sql,took:duration[us]"},
      {"text t, u64 size[bytes]", {USDTP_TEXT, USDTP_LENGTH, USDTP_UNSIGNED_LONG_LONG}, "t,size[bytes]"},
      {"i32 state : { 0 = idle,0x10=in use , -1=gone}, u8 n:{1=a}",
       {USDTP_INT, USDTP_UNSIGNED_CHAR},
       "state:{0=idle,0x10=in use,-1=gone},n:{1=a}"},
      {"bytes b,ptr p,bool o,f32 f,f64 g",
       {USDTP_BYTES, USDTP_LENGTH, USDTP_CONST_POINTER, USDTP_BOOL, USDTP_FLOAT, USDTP_DOUBLE},
       "b,p,o,f,g"},
  };
  for (const Case& each : cases) {
    usdtp_arguments arguments{};
    std::array<char, 256> items{};
    ASSERT_EQ(usdtp_read_arguments(each.text, &arguments, items.data()), 0) << each.text;
    EXPECT_EQ(std::vector<int>(arguments.types, arguments.types + arguments.count), each.types) << each.text;
    EXPECT_STREQ(items.data(), each.items);
    EXPECT_EQ(arguments.has_meanings != 0, std::string_view(each.items).find_first_of(":[") != std::string_view::npos);
  }
}

TEST(Provider, a_declaration_with_a_mistake_is_refused_whole) {
  Provider provider;
  const std::string long_one = "i32 " + std::string(5000, 'a');
  for (const char* text : {"i32",           "i32 ",        "int a",        "i32 a b",      "i32 9a",
                           "i32 a,",        ",i32 a",      "i32 a,,i32 b", "i32 a, i32 a", "i32 a:",
                           "i32 a[",        "i32 a[us",    "i32 a[]",      "i32 a:{}",     "i32 a:{0=b",
                           "i32 a:{0=}",    "i32 a:{b=0}", "i32 a:{0=b,}", "i32 a:{0=b}c", "i32 a]",
                           "i32 \xc3\xa9",  "i32 a;",      "I32 a",        "i3 a",         "text a, u64 b:x y",
                           long_one.c_str()})
    EXPECT_EQ(provider.add("probe", text), -EINVAL) << text;
  EXPECT_EQ(provider.add("probe", "i32 a"), 0) << "nothing of it was left";
}

/// Whatever is accepted has a name for each type; under the sanitizers nothing is read or written beside the texts.
TEST(Provider, any_text_is_a_declaration_or_refused) {
  constexpr std::array<std::string_view, 16> pieces = {"i32", "text", "f64", "str",      " ", " a", " b", ",",
                                                       ":",   "[",    "]",   "duration", "7", "\n", "%",  "\xff"};
  std::mt19937 random(1);
  int accepted = 0;
  for (int round = 0; round < 50'000; ++round) {
    std::string text;
    for (auto left = random() % 12; left > 0; --left) text += pieces[random() % pieces.size()];
    usdtp_arguments arguments{};
    const std::unique_ptr<char[]> items(new char[text.size() + 1]);
    if (usdtp_read_arguments(text.c_str(), &arguments, items.get()) != 0) continue;
    ++accepted;
    const std::string_view names = items.get();
    const auto lengths = std::count(arguments.types, arguments.types + arguments.count, USDTP_LENGTH);
    const auto commas = std::count(names.begin(), names.end(), ',');
    EXPECT_EQ(arguments.count - lengths, names.empty() ? 0 : commas + 1) << text;
  }
  EXPECT_GT(accepted, 300);
}

TEST(Provider, thirteen_arguments_are_too_many) {
  Provider provider;
  EXPECT_EQ(provider.add("twelve", "i8 a,i8 b,i8 c,i8 d,i8 e,i8 f,i8 g,i8 h,i8 i,i8 j,i8 k,i8 l"), 0);
  EXPECT_EQ(provider.add("thirteen", "i8 a,i8 b,i8 c,i8 d,i8 e,i8 f,i8 g,i8 h,i8 i,i8 j,i8 k,i8 l,i8 m"), -E2BIG);
  EXPECT_EQ(provider.add("texts", "text a,text b,text c,text d,text e,text f,i8 g"), -E2BIG);
  EXPECT_EQ(provider.add("lastText", "i8 a,i8 b,i8 c,i8 d,i8 e,i8 f,i8 g,i8 h,i8 i,i8 j,i8 k,text l"), -E2BIG);
}

TEST(Provider, what_could_not_be_added_is_harmless) {
  Provider provider;
  EXPECT_EQ(provider.add("bad name", "i32 a"), -EINVAL);
  usdtp_probe* none = provider.last;
  ASSERT_NE(none, nullptr);
  bool evaluated = false;
  USDT_PROBE_FIRE(none, (evaluated = true));
  EXPECT_FALSE(evaluated);
  EXPECT_EQ(usdtp_probe_traced(none), 0);
  EXPECT_EQ(usdtp_fire(none, nullptr, 7), 0);
  usdtp_probe_retire(none);
  usdtp_probe_retire(nullptr);
  usdtp_provider_retire(nullptr);
  EXPECT_EQ(usdtp_provider_publish(nullptr), -EINVAL);
  EXPECT_EQ(usdtp_probe_add(nullptr, "a", "", &none), -EINVAL);
}

TEST(Provider, a_name_is_free_once_its_probe_is_retired) {
  Provider provider;
  ASSERT_EQ(provider.add("probe", "i32 a"), 0);
  usdtp_probe* first = provider.last;
  EXPECT_EQ(provider.add("probe", "i64 b"), -EEXIST);
  EXPECT_EQ(provider.publish(), 0);
  EXPECT_EQ(provider.add("probe", ""), -EEXIST);
  usdtp_probe_retire(first);
  usdtp_probe_retire(first);
  EXPECT_EQ(provider.add("probe", "str other"), 0);
  EXPECT_NE(provider.last, first);
  EXPECT_EQ(provider.publish(), 0);
  EXPECT_EQ(provider.publish(), 0) << "nothing new is no error";
}

/// Enabled as tracers do it; nobody sits on the stub.
TEST(Provider, a_retired_probe_does_nothing_though_it_is_traced) {
  Provider provider;
  ASSERT_EQ(provider.add("probe", "i32 a, f64 b"), 0);
  usdtp_probe* probe = provider.last;
  const std::array<std::uint64_t, 3> values{};
  EXPECT_EQ(usdtp_fire(probe, values.data(), 2), 0);
  EXPECT_EQ(usdtp_fire(probe, values.data(), 3), -EINVAL) << "also while nobody traces it";
  probe->semaphore = 1;
  EXPECT_EQ(usdtp_probe_traced(probe), 1);
  EXPECT_EQ(usdtp_fire(probe, values.data(), 2), 0);
  EXPECT_EQ(usdtp_fire(probe, values.data(), 1), -EINVAL);
  USDT_PROBE_FIRE(probe, 1, 2.0);
  USDT_PROBE_FIRE(probe, 1);
  usdtp_probe_retire(probe);
  EXPECT_EQ(usdtp_probe_traced(probe), 0);
  EXPECT_EQ(usdtp_fire(probe, values.data(), 3), 0);
  USDT_PROBE_FIRE(probe, 1, 2.0);
}

TEST(Provider, errno_is_left_alone) {
  Provider provider;
  ASSERT_EQ(provider.add("probe", "f32 a"), 0);
  provider.last->semaphore = 1;
  errno = 77;
  USDT_PROBE_FIRE(provider.last, 1e300);
  EXPECT_EQ(errno, 77);
}

std::size_t count_of(const char* directory) {
  const std::filesystem::directory_iterator entries(directory);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

std::size_t maps_with(std::string_view what) {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find(what) != line.npos;
  return count;
}

TEST(Provider, descriptors_go_with_their_provider) {
  const std::size_t before = count_of("/proc/self/fd");
  for (int i = 0; i < 20; ++i) {
    Provider provider("goes");
    ASSERT_EQ(provider.add("probe", "i32 a"), 0);
    ASSERT_EQ(provider.publish(), 0);
    EXPECT_EQ(count_of("/proc/self/fd"), before + 1);
  }
  EXPECT_EQ(count_of("/proc/self/fd"), before);
  usdtp_provider* closed = nullptr;
  usdtp_probe* probe = nullptr;
  ASSERT_EQ(usdtp_provider_create("closed", USDTP_CLOSE_FILES, &closed), 0);
  ASSERT_EQ(usdtp_probe_add(closed, "probe", "", &probe), 0);
  ASSERT_EQ(usdtp_provider_publish(closed), 0);
  EXPECT_EQ(count_of("/proc/self/fd"), before);
  EXPECT_EQ(maps_with("usdt-closed"), 3U) << "head, text and data are mapped nevertheless";
  usdtp_provider_retire(closed);
  EXPECT_EQ(maps_with("usdt-closed"), 1U) << "the code, for whoever may be in it";
  EXPECT_EQ(probe->semaphore, 0);
}

/// A file of the test's own, empty, under the number `fd`.
class OtherFile {
 public:
  explicit OtherFile(int fd) : file_(std::tmpfile()), fd_(fd) { EXPECT_EQ(::dup2(::fileno(file_), fd), fd); }
  ~OtherFile() {
    ::close(fd_);
    std::fclose(file_);
  }
  OtherFile(const OtherFile&) = delete;
  OtherFile& operator=(const OtherFile&) = delete;
  bool is_open() const { return ::fcntl(fd_, F_GETFL) >= 0; }
  off_t size() const { return ::lseek(::fileno(file_), 0, SEEK_END); }

 private:
  std::FILE* file_;
  int fd_;
};

/// The descriptor that this process would get next.
int next_descriptor() {
  const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(next);
  return next;
}

/// As programs do that become daemons: they close all descriptors, and open others.
TEST(Provider, a_file_that_took_the_number_of_a_closed_one_is_left_alone) {
  for (const bool published : {false, true}) {
    const int fd = next_descriptor();
    const std::string name = published ? "late" : "early";
    std::optional<Provider> provider(std::in_place, name.c_str());
    ASSERT_EQ(provider->add("probe", "i32 a"), 0);
    if (published) {
      ASSERT_EQ(provider->publish(), 0);
    }
    const OtherFile other(published ? next_descriptor() - 1 : fd);
    EXPECT_EQ(provider->publish(), 0);
    EXPECT_EQ(maps_with("usdt-" + name), 3U);
    provider.reset();
    EXPECT_TRUE(other.is_open());
    EXPECT_EQ(other.size(), 0);
  }
}

TEST(Provider, no_descriptor_is_in_the_place_of_a_closed_standard_stream) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int stream : {0, 1, 2}) ::close(stream);
    Provider provider;
    bool taken = provider.add("probe", "i32 a") != 0;
    for (const int stream : {0, 1, 2}) taken |= ::fcntl(stream, F_GETFL) >= 0;
    taken |= provider.publish() != 0;
    for (const int stream : {0, 1, 2}) taken |= ::fcntl(stream, F_GETFL) >= 0;
    ::_exit(taken);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

void* publish_until_cancelled(void*) {
  for (;;) {
    Provider provider;
    provider.add("probe", "i32 a");
    provider.publish();
    ::pthread_testcancel();
  }
}

TEST(Provider, a_cancelled_thread_lets_the_others_go_on) {
  ::alarm(60);  // fork() waited for ever
  for (int i = 0; i < 50; ++i) {
    pthread_t thread;
    ASSERT_EQ(::pthread_create(&thread, nullptr, publish_until_cancelled, nullptr), 0);
    ::usleep(static_cast<useconds_t>(i % 10 * 100));
    ASSERT_EQ(::pthread_cancel(thread), 0);
    ASSERT_EQ(::pthread_join(thread, nullptr), 0);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  }
  ::alarm(0);
}

TEST(Provider, a_handler_of_signals_may_fork) {
  struct sigaction action = {};
  action.sa_handler = [](int) {
    if (::fork() == 0) ::_exit(0);
  };
  ASSERT_EQ(::sigaction(SIGALRM, &action, nullptr), 0);
  for (int i = 0; i < 300; ++i) {
    const itimerval soon = {{0, 0}, {0, 1 + i % 30 * 5}};
    Provider provider;
    ASSERT_EQ(::setitimer(ITIMER_REAL, &soon, nullptr), 0);
    EXPECT_EQ(provider.add("probe", "i32 a"), 0);
    EXPECT_EQ(provider.publish(), 0);
  }
  while (::wait(nullptr) > 0 || errno == EINTR) {
  }
}

TEST(Provider, the_interface_is_the_headers) {
  EXPECT_EQ(usdtp_version(), std::uint32_t{USDTP_API_MAJOR} << 16 | USDTP_API_MINOR);
  static_assert(sizeof(usdtp_probe) == 2 && offsetof(usdtp_probe, semaphore) == 0);
}

/// The compiler's own conversions are what the library's are held against.
template <class From, class To>
void expect_conversions(std::uint8_t from, std::uint8_t to) {
  for (const double number : {0.0, 1.0, -1.0, 2.5, -2.5, 100.0, 127.0, -128.0, 1e6, 1e18}) {
    if (number < static_cast<double>(std::numeric_limits<From>::lowest()) ||
        number > static_cast<double>(std::numeric_limits<From>::max()))
      continue;
    const From value = static_cast<From>(number);
    // What C leaves undefined is not compared.
    if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>) {
      if (!(value >= static_cast<From>(std::numeric_limits<To>::min()) &&
            value <= static_cast<From>(std::numeric_limits<To>::max())))
        continue;
    }
    std::uint64_t passed = 0;
    std::memcpy(&passed, &value, sizeof value);
    const std::uint64_t made = usdtp_convert(passed, from, to);
    const To wanted = static_cast<To>(value);
    EXPECT_EQ(std::memcmp(&made, &wanted, sizeof wanted), 0)
        << int{from} << " to " << int{to} << " of " << number << ": " << made;
  }
}

template <class... T>
struct Types {};
using All = Types<bool, signed char, unsigned char, short, unsigned short, int, unsigned int, long, unsigned long,
                  long long, unsigned long long, float, double, char, char16_t, char32_t, wchar_t>;

template <class From, class... To>
void expect_all(Types<To...>) {
  (expect_conversions<From, To>(usdtp::Type<From>::code, usdtp::Type<To>::code), ...);
}
template <class... From>
void expect_all_from(Types<From...>) {
  (expect_all<From>(All{}), ...);
}

TEST(Provider, arguments_are_converted_as_assigned) { expect_all_from(All{}); }

TEST(Provider, a_float_keeps_its_bits) {
  const std::uint32_t signalling = 0x7fa00001;
  EXPECT_EQ(usdtp_convert(signalling, USDTP_FLOAT, USDTP_FLOAT), signalling);
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(usdtp_convert(std::bit_cast<std::uint64_t>(infinite), USDTP_DOUBLE, USDTP_FLOAT),
            std::bit_cast<std::uint32_t>(std::numeric_limits<float>::infinity()));
}

}  // namespace
