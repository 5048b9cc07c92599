// SPDX-License-Identifier: BSD-2-Clause
// Passes texts that have a length and no NUL, and says each as "PROBE HEX". Behind each of them there is more.
#include <sys/sdt.h>
#include <usdt/probe.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace texts {

constexpr std::string_view kAll = "GET /index.html that goes on and on, much longer than the longest key of a table is";
constexpr std::string_view kNuls("a\0b\0\0and more", 14);

void say(const char* probe, std::string_view text) {
  std::printf("%s ", probe);
  for (const char c : text) std::printf("%02x", static_cast<unsigned char>(c));
  std::printf("\n");
}

__attribute__((noinline)) std::size_t view(std::string_view what) {
  asm volatile("" ::: "memory");
  say("view", what);
  return what.size();
}

__attribute__((noinline)) std::size_t text(const std::string& what) {
  asm volatile("" ::: "memory");
  say("text", what);
  return what.size();
}

__attribute__((noinline)) void java(std::string_view what) {
  DTRACE_PROBE3(hotspot, class__loaded, what.data(), static_cast<int>(what.size()), 7L);
  say("java", what);
}

__attribute__((noinline)) void described(std::string_view what) {
  USDT_PROBE(lengths, described, what);
  say("described", what);
}

// An array of characters that is as far as its first NUL, if there is one.
struct Named {
  char name[8] = {};
  char behind[8] = {'!', '!', '!', '!', '!', '!', '!', 0};
};

__attribute__((noinline)) std::size_t member(const Named& named) {
  asm volatile("" ::: "memory");
  say("member", {named.name, strnlen(named.name, sizeof(named.name))});
  return static_cast<std::size_t>(named.name[0]);
}

void each(std::string_view what) {
  Named named;
  what.copy(named.name, sizeof(named.name));
  member(named);
  view(what);
  text(std::string(what));
  java(what);
  described(what);
}

}  // namespace texts

int main() {
  for (int i = 0; i < 40; i++) {
    texts::each(texts::kAll.substr(0, static_cast<std::size_t>(i % 5)));
    texts::each(texts::kNuls.substr(0, static_cast<std::size_t>(i % 6)));
  }
  for (std::size_t length = 13; length < 18; length++) texts::each(texts::kAll.substr(0, length));
  for (std::size_t length = 60; length < 67; length++) texts::each(texts::kAll.substr(0, length));
  // No text has such a length.
  DTRACE_PROBE3(hotspot, class__loaded, texts::kAll.data(), -1, 7L);
}
