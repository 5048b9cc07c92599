// SPDX-License-Identifier: BSD-2-Clause
// The client is libdebuginfod of elfutils, which keeps what it fetched below $XDG_CACHE_HOME. It is loaded when it is
// first needed: it comes with an HTTP client and its cryptography, which nobody else has a use for. Its functions are
// declared here as its header declares them (elfutils/debuginfod.h, symbol versions ELFUTILS_0.178 and 0.179), so that
// the header is no requirement either.
#include "elf/debuginfod.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

#include "sys/unique_fd.hpp"

extern ElfW(Dyn) _DYNAMIC[] __attribute__((weak));  // what linkers give to each file that a loader is for

namespace usdt::elf {
namespace {

constexpr const char* library = "libdebuginfod.so.1";
/// Hex digits: the client takes ids of up to 64 bytes.
constexpr std::size_t kLongestId = 128;

struct Session;
using Progress = int (*)(Session*, long, long);

/// The client library's functions.
struct Client {
  Session* (*begin)() = nullptr;
  void (*end)(Session*) = nullptr;
  int (*find_debuginfo)(Session*, const unsigned char*, int, char**) = nullptr;
  void (*set_progress)(Session*, Progress) = nullptr;
  void (*set_user_data)(Session*, void*) = nullptr;
  void* (*user_data)(Session*) = nullptr;
  std::string missing;  ///< why there is none
};

template <class Function>
void load(void* from, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(::dlsym(from, name));
  if (function == nullptr) missing = fmt::format("{} has no {}", library, name);
}

bool is_linked_statically() { return _DYNAMIC == nullptr; }

Client load_client() {
  Client client;
  // It would bring the C library of the system beside the one that is inside.
  if (is_linked_statically()) {
    client.missing = "a program that is linked statically does not load it";
    return client;
  }
  void* const loaded = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    const char* why = ::dlerror();
    client.missing = why == nullptr ? library : why;
    return client;
  }
  load(loaded, "debuginfod_begin", client.begin, client.missing);
  load(loaded, "debuginfod_end", client.end, client.missing);
  load(loaded, "debuginfod_find_debuginfo", client.find_debuginfo, client.missing);
  load(loaded, "debuginfod_set_progressfn", client.set_progress, client.missing);
  load(loaded, "debuginfod_set_user_data", client.set_user_data, client.missing);
  load(loaded, "debuginfod_get_user_data", client.user_data, client.missing);
  return client;
}

const Client& client() {
  static const Client loaded = load_client();
  return loaded;
}

bool stopped(const OpenOptions& options) {
  return options.stop.stop_requested() || options.stop_asking.stop_requested();
}

int go_on(Session* session, long, long) {
  return stopped(*static_cast<const OpenOptions*>(client().user_data(session))) ? 1 : 0;
}

/// Nobody asks a server twice at once for the same file.
std::timed_mutex one_at_a_time;
/// How often a server did not answer as servers do, and how often none had the file: a program whose files nobody
/// knows could keep us asking.
unsigned failures = 0;
unsigned unknown = 0;
constexpr unsigned kMostFailures = 2;
constexpr unsigned kMostUnknown = 64;

bool may_be_id(const std::string& id) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return id.size() >= 4 && id.size() <= kLongestId && id.size() % 2 == 0 && std::ranges::all_of(id, is_hex);
}

}  // namespace

Result<std::filesystem::path> fetch_debug_file(const std::string& build_id, const OpenOptions& options) {
  if (!may_be_id(build_id)) return fail(ErrorKind::not_found, "debuginfod: there is no build id to ask for");
  const char* const servers = std::getenv("DEBUGINFOD_URLS");
  if (servers == nullptr || *servers == '\0')
    return fail(ErrorKind::not_found, "debuginfod: DEBUGINFOD_URLS names no servers");
  if (!client().missing.empty()) return fail(ErrorKind::not_supported, "debuginfod: " + client().missing);
  std::unique_lock lock(one_at_a_time, std::defer_lock);
  while (!stopped(options) && !lock.try_lock_for(std::chrono::milliseconds(100))) {
  }
  if (stopped(options)) return fail(ErrorKind::stopped, "stopped before a server was asked for debug information");
  if (failures >= kMostFailures) return fail(ErrorKind::io, "debuginfod: the servers failed before");
  if (unknown >= kMostUnknown)
    return fail(ErrorKind::limit, fmt::format("debuginfod: {} files were not known, no more are asked for", unknown));
  const std::unique_ptr<Session, void (*)(Session*)> session(client().begin(), client().end);
  if (!session) return fail(ErrorKind::io, "debuginfod: no session can be had");
  client().set_user_data(session.get(), const_cast<OpenOptions*>(&options));
  client().set_progress(session.get(), go_on);
  char* name = nullptr;
  const int found =
      client().find_debuginfo(session.get(), reinterpret_cast<const unsigned char*>(build_id.c_str()), 0, &name);
  const std::unique_ptr<char, void (*)(void*)> place(name, std::free);
  if (stopped(options)) return fail(ErrorKind::stopped, "stopped while a server was asked for debug information");
  if (found < 0) ++(found == -ENOENT ? unknown : failures);
  if (found < 0)
    return fail(found == -ENOENT ? ErrorKind::not_found : ErrorKind::io,
                fmt::format("debuginfod: {} of {}: {}", build_id, servers, std::strerror(-found)));
  const sys::UniqueFd descriptor(found);
  if (!place) return fail(ErrorKind::io, "debuginfod: what was fetched has no place");
  return std::filesystem::path(place.get());
}

}  // namespace usdt::elf
