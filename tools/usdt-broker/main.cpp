// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <optional>
#include <string>
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

/// Has a process that is made for a client wait until the broker has closed the client's socket. Whoever closes it last
/// closes what the client has sent and nobody has taken, which may be sockets that linger (SO_LINGER) for as long as
/// the client likes. A process that ends waits for none of them.
class HandOver {
 public:
  HandOver() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) ends_ = {-1, -1};
  }
  HandOver(const HandOver&) = delete;
  HandOver& operator=(const HandOver&) = delete;
  ~HandOver() {
    for (const int end : ends_)
      if (end >= 0) ::close(end);
  }
  [[nodiscard]] bool is_possible() const noexcept { return ends_[0] >= 0; }
  /// In the new process.
  void wait() {
    ::close(std::exchange(ends_[1], -1));
    char none = 0;
    while (::read(ends_[0], &none, 1) < 0 && errno == EINTR) {
    }
  }

 private:
  std::array<int, 2> ends_{};
};

/// Says why a client is not served, in a process of its own: to read what it has sent is to close the descriptors in
/// it.
int refuse(int socket, const usdt::Error& why) {
  ::signal(SIGALRM, [](int) { ::_exit(0); });
  ::alarm(1);
  usdt::refuse_client(socket, why);
  return 0;
}

class Broker {
 public:
  Broker(const Options& options, const Signals& signals, Listener listener, const Nobody& nobody)
      : options_(options), signals_(signals), listener_(std::move(listener)), nobody_(nobody), connections_(options) {}

  /// Returns the exit code: of the broker, or of a worker that it was copied into.
  usdt::Result<int> run() {
    while (true) {
      const int next = socket_ < 0 ? listener_.fd() : -1;
      std::array<pollfd, 2> ready{pollfd{next, POLLIN, 0}, {signals_.fd(), POLLIN, 0}};
      if (::poll(ready.data(), ready.size(), socket_ < 0 ? -1 : kRetryMs) < 0 && errno != EINTR)
        return usdt::fail(usdt::os_failure(usdt::ErrorKind::io, "wait for clients", errno));
      if (ready[1].revents != 0 && signals_.take()) return 0;
      if (const std::size_t killed = connections_.reap(); killed > 0)
        usdt::tools::print_notice(
            kTool, fmt::format("{} that served a client ended by a signal", usdt::tools::counted(killed, "process")));
      if (ready[0].revents == 0 && socket_ < 0) continue;
      if (const auto code = serve_next()) return *code;
    }
  }

 private:
  /// Why a client is not served; nothing: it is.
  [[nodiscard]] std::optional<usdt::Error> why_not(const usdt::Result<usdt::BrokerClient>& client,
                                                   const Budget* budget) const {
    if (!client) return client.error();
    auto too_many = connections_.refuses(client->uid);
    if (!too_many && budget == nullptr)
      too_many = "usdt-broker has traced for as many users within an hour as it keeps account of: later";
    if (!too_many) return std::nullopt;
    return usdt::Error{.kind = usdt::ErrorKind::limit, .message = std::move(*too_many)};
  }

  /// Returns an exit code in the new process alone.
  std::optional<int> serve_next() {
    if (socket_ < 0) socket_ = listener_.accept();
    if (socket_ < 0) return std::nullopt;
    const auto client = usdt::broker_client(socket_);
    Budget* const budget =
        client ? budgets_.of(client->uid, [&](uid_t user) { return connections_.has(user); }) : nullptr;
    const auto why = why_not(client, budget);
    const pid_t broker = ::getpid();
    HandOver hand_over;
    const pid_t process = hand_over.is_possible() ? ::fork() : -1;
    if (process == 0) {
      hand_over.wait();
      signals_.leave_to_worker();
      listener_.leave_to_broker();
      if (!why) return serve_in_worker(socket_, *client, nobody_, broker, *budget, options_);
      return connections_.refusing() < kMostRefusing ? refuse(socket_, *why) : 0;
    }
    if (process < 0) return std::nullopt;  // there are too many processes, or descriptors: again a little later
    if (why)
      connections_.add_refusing(process);
    else
      connections_.add(process, client->uid);
    ::close(std::exchange(socket_, -1));
    return std::nullopt;
  }

  static constexpr int kRetryMs = 100;
  /// Clients that are told at once why they are not served. What comes beyond that is a flood, and closed.
  static constexpr std::size_t kMostRefusing = 64;

  const Options& options_;
  const Signals& signals_;
  Listener listener_;
  Nobody nobody_;
  Connections connections_;
  Budgets budgets_ = {};
  int socket_ = -1;  ///< of a client that waits for its process
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

constinit const usdt::tools::Tool usdt::tools::kThisTool{.name = usdt_broker::kTool,
                                                         .trouble = usdt_broker::kRunTimeFailure};

int main(int argc, char** argv) {
  return usdt::tools::guarded([&] { return usdt_broker::run_tool(argc, argv); });
}
