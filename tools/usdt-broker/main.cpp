// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <optional>
#include <utility>

#include "common/guarded.hpp"
#include "common/report.hpp"
#include "connections.hpp"
#include "io/stream.hpp"
#include "listener.hpp"
#include "options.hpp"
#include "usdt/features.hpp"
#include "worker.hpp"

namespace usdt_broker {
namespace {

/// The signals that a broker waits for; its workers have none of them blocked.
class Signals {
 public:
  Signals() {
    ::sigemptyset(&wanted_);
    for (const int number : {SIGTERM, SIGINT, SIGCHLD}) ::sigaddset(&wanted_, number);
    ::sigprocmask(SIG_BLOCK, &wanted_, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    fd_ = ::signalfd(-1, &wanted_, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  [[nodiscard]] int fd() const noexcept { return fd_; }
  void leave_to_worker() const {
    ::close(fd_);
    ::sigprocmask(SIG_UNBLOCK, &wanted_, nullptr);
  }
  /// Returns whether the end was asked for.
  [[nodiscard]] bool take() const {
    bool end = false;
    signalfd_siginfo came{};
    while (::read(fd_, &came, sizeof(came)) == static_cast<ssize_t>(sizeof(came))) end |= came.ssi_signo != SIGCHLD;
    return end;
  }

 private:
  sigset_t wanted_{};
  int fd_ = -1;
};

class Broker {
 public:
  Broker(const Options& options, const Signals& signals, Listener listener, const Nobody& nobody)
      : options_(options), signals_(signals), listener_(std::move(listener)), nobody_(nobody), connections_(options) {}

  /// Returns the exit code: of the broker, or of a worker that it was copied into.
  usdt::Result<int> run() {
    while (true) {
      std::array<pollfd, 2> ready{pollfd{listener_.fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}};
      if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR)
        return usdt::fail(usdt::os_failure(usdt::ErrorKind::io, "wait for clients", errno));
      if (ready[1].revents != 0 && signals_.take()) return 0;
      if (const std::size_t killed = connections_.reap(); killed > 0)
        usdt::tools::print_notice(
            kTool, fmt::format("{} that served a client ended by a signal", usdt::tools::counted(killed, "process")));
      if (ready[0].revents == 0) continue;
      if (const auto code = serve_next()) return *code;
    }
  }

 private:
  /// Returns an exit code in the worker alone.
  std::optional<int> serve_next() {
    const int socket = listener_.accept();
    if (socket < 0) return std::nullopt;
    const auto client = usdt::broker_client(socket);
    Budget* const budget = client ? budgets_.of(client->uid) : nullptr;
    auto why = client ? connections_.refuses(client->uid) : client.error().message;
    if (!why && budget == nullptr) why = "usdt-broker has served more users than it remembers: it is to be restarted";
    if (why) {
      usdt::refuse_client(socket, {.kind = usdt::ErrorKind::limit, .message = *why});
      ::close(socket);
      return std::nullopt;
    }
    const pid_t broker = ::getpid();
    const pid_t worker = ::fork();
    if (worker == 0) {
      signals_.leave_to_worker();
      listener_.leave_to_broker();
      return serve_in_worker(socket, *client, nobody_, broker, *budget, options_);
    }
    if (worker > 0)
      connections_.add(worker, client->uid);
    else
      usdt::refuse_client(socket, usdt::os_failure(usdt::ErrorKind::limit, "usdt-broker: make a process", errno));
    ::close(socket);
    return std::nullopt;
  }

  const Options& options_;
  const Signals& signals_;
  Listener listener_;
  Nobody nobody_;
  Connections connections_;
  Budgets budgets_ = {};
};

usdt::Result<int> serve(const Options& options) {
  if (auto can = usdt::check_broker_service(); !can) return usdt::fail(can.error());
  static_cast<void>(usdt::probe_features());  // once, for all workers
  auto nobody = find_user(options.user);
  if (!nobody) return usdt::fail(nobody.error());
  const Signals signals;  // before there is a socket, which whoever ends the broker finds removed
  auto listener = Listener::open(options.socket);
  if (!listener) return usdt::fail(listener.error());
  return Broker(options, signals, std::move(*listener), *nobody).run();
}

int run_tool(int argc, char** argv) {
  usdt::io::reserve_standard_streams();
  int exit_code = 0;
  const auto options = parse_options(argc, argv, exit_code);
  if (!options) return exit_code;
  auto served = serve(*options);
  if (served) return *served;
  usdt::tools::print_error(kTool, served.error());
  return kRunTimeFailure;
}

}  // namespace
}  // namespace usdt_broker

int main(int argc, char** argv) {
  return usdt::tools::guarded(usdt_broker::kTool, usdt_broker::kRunTimeFailure,
                              [&] { return usdt_broker::run_tool(argc, argv); });
}
