// SPDX-License-Identifier: BSD-2-Clause
// The service that Broker connects to: usdt-broker calls serve_client() for each connection, in a process of its own.
//     const usdt::BrokerClient client = *usdt::broker_client(socket);
//     usdt::serve_client(socket, client, {.tell = log});
// What is traced is decided here, and nothing of it is left to the client (docs/broker.md). Threads: one connection is
// served by one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "usdt/result.hpp"

namespace usdt {
inline namespace v1 {

/// Who has connected, as the kernel knows it (SO_PEERCRED): at the time of connect(2), and as this process numbers
/// users.
struct BrokerClient {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

/// Returns who is at the other end of a socket. Errors: io, not_supported (one who numbers processes or users otherwise
/// than this process, in a namespace: what is counted of users is not counted of those).
[[nodiscard]] Result<BrokerClient> broker_client(int socket);

/// Says how clients are served.
struct BrokerServiceOptions {
  /// Called with a line for each trace that is granted or refused: who, which file, which probes, how many places.
  /// Texts of others in it are bounded, and not yet made printable.
  std::function<void(const std::string&)> tell = {};
  std::uint64_t most_map_bytes = 256ULL << 20;  ///< of all maps of a connection, the rings of events among them
  std::uint32_t most_links = 1024;              ///< of a connection
  std::uint32_t most_places = 65536;            ///< that are attached for a connection, each process anew
  /// Asked before so many places are attached; false: they are too many for the client's user, who may keep what was
  /// attached by connections that are closed. Null: nobody counts.
  std::function<bool(std::uint64_t places)> may_attach = {};
  /// Asked before maps are made that take so many bytes, in the same way.
  std::function<bool(std::uint64_t bytes)> may_keep = {};
  std::uint32_t requests_per_second = 50;  ///< more wait
};

/// Checks whether this kernel and this process can keep users apart. Errors: not_supported (no uprobe_multi with an
/// exact filter by process, Linux 6.10; no BTF), no_permission (a user namespace, or a capability is missing).
[[nodiscard]] Result<void> check_broker_service();

/// Says why to a client that is not served. It does not wait for it.
void refuse_client(int socket, const Error& why);

/// Answers the requests of one client until it goes. It takes the socket over. Errors: changed (the client went amid a
/// message), malformed and limit (it sent what no client sends). What is attached for it is its own by then.
[[nodiscard]] Result<void> serve_client(int socket, const BrokerClient& client,
                                        const BrokerServiceOptions& options = {});

}  // namespace v1
}  // namespace usdt
