// SPDX-License-Identifier: BSD-2-Clause
// What a Broker does for the kernel half. Private to the library.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/messages.hpp"
#include "sys/unique_fd.hpp"
#include "usdt/broker.hpp"

namespace usdt::broker {

/// The maps of programs that are loaded there.
struct LoadedThere {
  LoadReply reply;
  std::vector<sys::UniqueFd> maps;  ///< parallel to LoadReply::maps
};

/// A link that is made there.
struct AttachedThere {
  AttachReply reply;
  std::vector<sys::UniqueFd> links;
};

struct Inside {
  /// Errors: those of the service, in its words; changed (the service has gone).
  [[nodiscard]] static Result<LoadedThere> load(Broker& broker, const LoadRequest& request);
  [[nodiscard]] static Result<AttachedThere> attach(Broker& broker, const AttachRequest& request);
  /// How many hits of an object's programs found no program free; nothing: it is not known.
  [[nodiscard]] static std::optional<std::uint64_t> missed(Broker& broker, std::uint32_t object);
  /// The programs of an object may go.
  static void forget(Broker& broker, std::uint32_t object) noexcept;
};

}  // namespace usdt::broker
