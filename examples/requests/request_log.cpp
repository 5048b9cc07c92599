// SPDX-License-Identifier: BSD-2-Clause
// A whole application: how long each request of a server takes, as the server's own probes tell it.
//
//   request-log SERVER      as root; a line `pid id path status micros` for each request, until SIGTERM or SIGINT
//
// Two BPF programs of one object sit on two probes and meet in a map; what they find comes through a ring into an epoll
// loop, beside signals and a timer. The server may be restarted, and be replaced by a new version meanwhile.
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <list>
#include <optional>
#include <string>
#include <usdt/usdt.hpp>

#include "requests.h"
// The same application on a BPF program that was written for libbpf.
#ifdef FOR_LIBBPF
#include "requests_libbpf.bpf.hpp"
#define requests_object requests_libbpf_object
#else
#include "requests.bpf.hpp"
#endif

namespace {

/// One version of the server that is traced.
struct Traced {
  usdt::LoadedObject object;
  usdt::Link link;
};

usdt::Result<usdt::AttachPlan> plan_probe(const std::string& server, const char* probe) {
  auto pattern = usdt::ProbePattern::parse("usdt:" + server + ":requests:" + probe);
  if (!pattern) return usdt::fail(pattern.error());
  auto selection = usdt::select({*pattern});
  if (!selection) return usdt::fail(selection.error());
  return usdt::plan_attach(*selection, usdt::kernel_facts());
}

/// One object for both probes, in all processes that run `server` now or later. It shares the maps of `earlier`.
usdt::Result<Traced> trace(const std::string& server, const Traced* earlier) {
  auto begin = plan_probe(server, "begin");
  if (!begin) return usdt::fail(begin.error());
  auto end = plan_probe(server, "end");
  if (!end) return usdt::fail(end.error());
  auto plan = usdt::join_plans({{"on_begin", std::move(*begin)}, {"on_end", std::move(*end)}});
  if (!plan) return usdt::fail(plan.error());

  auto object = usdt::BpfObject::open(requests_object());
  if (!object) return usdt::fail(object.error());
  for (const char* map : {"under_way", "requests"}) {
    if (earlier == nullptr) break;
    auto fd = earlier->object.map_fd(map);
    if (!fd) return usdt::fail(fd.error());
    if (auto reused = object->reuse_map(map, *fd); !reused) return usdt::fail(reused.error());
  }
  auto loaded = object->load(std::move(*plan));
  if (!loaded) return usdt::fail(loaded.error());
  auto link = loaded->attach();
  if (!link) return usdt::fail(link.error());
  return Traced{std::move(*loaded), std::move(*link)};
}

void print(std::span<const std::byte> record) {
  const auto request = usdt::record_as<::request>(record);
  if (!request) return;
  std::printf("%" PRIu32 " %" PRIu64 " %s %" PRId32 " %" PRIu64 "\n", request->pid, std::uint64_t{request->id},
              request->path, request->status, std::uint64_t{request->nanoseconds} / 1000);
}

class RequestLog {
 public:
  explicit RequestLog(std::string server) : server_(std::move(server)) {}
  ~RequestLog() {
    for (const int fd : {signals_, timer_, loop_}) ::close(fd);
  }
  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;

  usdt::Result<void> run() {
    if (auto ready = start(); !ready) return ready;
    bool stop = false;
    while (!stop) {
      epoll_event event{};
      if (::epoll_wait(loop_, &event, 1, -1) != 1) continue;  // a signal
      if (event.data.fd == signals_) stop = true;
      if (event.data.fd == timer_) look_at_files();
      if (event.data.fd == ring_->fd()) {
        if (auto read = ring_->read(print); !read) return usdt::fail(read.error());
        std::fflush(stdout);
      }
    }
    return finish();
  }

 private:
  usdt::Result<void> start() {
    if (auto traced = follow_server(); !traced) return traced;
    auto ring = usdt::RingReader::open(traced_.front().object, "requests");
    if (!ring) return usdt::fail(ring.error());
    ring_.emplace(std::move(*ring));

    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGINT);
    sigprocmask(SIG_BLOCK, &ending, nullptr);
    signals_ = ::signalfd(-1, &ending, SFD_CLOEXEC);
    timer_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    const itimerspec often{{0, 100'000'000}, {0, 100'000'000}};
    ::timerfd_settime(timer_, 0, &often, nullptr);
    loop_ = ::epoll_create1(EPOLL_CLOEXEC);
    for (const int fd : {signals_, timer_, ring_->fd()}) {
      epoll_event readable{};
      readable.events = EPOLLIN;
      readable.data.fd = fd;
      if (::epoll_ctl(loop_, EPOLL_CTL_ADD, fd, &readable) != 0)
        return usdt::fail(usdt::os_failure(usdt::ErrorKind::io, "the event loop", errno));
    }
    return {};
  }

  usdt::Result<void> follow_server() {
    auto traced = trace(server_, traced_.empty() ? nullptr : &traced_.back());
    if (!traced) return usdt::fail(traced.error());
    traced_.push_back(std::move(*traced));
    seen_ = 0;
    std::fprintf(stderr, "request-log: %s: %zu sites\n", server_.c_str(), traced_.back().link.attached());
    return {};
  }

  /// A process that starts anew from the same file is traced as the one before. Where another file has taken its place,
  /// the trace goes on there, beside what still runs from the old one.
  void look_at_files() {
    std::uint64_t times = 0;
    [[maybe_unused]] const ssize_t n = ::read(timer_, &times, sizeof(times));
    const std::size_t changes = traced_.back().link.changes().size();
    if (changes == seen_) return;
    // Not there yet, or half written: the next look will tell.
    if (auto followed = follow_server(); !followed && followed.error().kind == usdt::ErrorKind::no_permission) {
      std::fprintf(stderr, "request-log: %s\n", followed.error().message.c_str());
      seen_ = changes;
    }
  }

  /// Detached first, so that what is in the ring then is all there will be.
  usdt::Result<void> finish() {
    std::uint64_t lost = 0;
    for (Traced& each : traced_) {
      each.link.detach();
      auto count = each.object.global_as<std::uint64_t>("lost");
      if (!count) return usdt::fail(count.error());
      lost += **count;
    }
    auto rest = ring_->read(print);
    if (!rest) return usdt::fail(rest.error());
    std::fprintf(stderr, "request-log: %" PRIu64 " lost\n", lost);
    return {};
  }

  std::string server_;
  std::list<Traced> traced_;  ///< the latest last
  std::size_t seen_ = 0;      ///< of its changes
  std::optional<usdt::RingReader> ring_;
  int signals_ = -1;
  int timer_ = -1;
  int loop_ = -1;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: request-log SERVER\n");
    return 2;
  }
  std::error_code unused;
  const auto done = RequestLog(std::filesystem::absolute(argv[1], unused)).run();
  if (!done) std::fprintf(stderr, "request-log: %s\n", done.error().message.c_str());
  return done ? 0 : 1;
}
