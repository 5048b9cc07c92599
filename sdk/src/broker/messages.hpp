// SPDX-License-Identifier: BSD-2-Clause
// The contents of usdt-broker's messages (docs/broker.md). read() takes what anybody may have sent: what it returns is
// within limits.hpp, and its indices lead somewhere. Private to broker/ and serve/.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "usdt/carrier.hpp"
#include "usdt/features.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"

namespace usdt::broker {

/// The first message of a client. Its beginning is the same in all protocols.
struct Hello {
  std::uint32_t protocol = 0;
  std::string version;  ///< of the project
};

struct Welcome {
  std::uint32_t protocol = 0;
  std::string version;
  std::vector<FeatureState> features;  ///< of the kernel, as the broker may ask it
};

/// What is set of a map before it is made.
enum class MapProperty : std::uint8_t { entries, type, flags, key_size, value_size };

struct MapSize {
  std::string map;
  MapProperty what = {};
  std::uint32_t value = 0;
};

/// Asks for the stock programs of a plan. The files of the plan come along as descriptors, in its order.
struct LoadRequest {
  std::uint64_t programs = 0;           ///< digest() of the object, which the broker has itself
  std::vector<std::uint8_t> constants;  ///< a usdt_stock_constants
  std::vector<MapSize> sizes;
  std::uint32_t shares = 0;  ///< the object whose maps it has, of these names; 0: it has its own
  std::vector<std::string> shared_maps;
  std::string program;  ///< empty: the plan names them
  Carrier carrier = Carrier::automatic;
  bool arguments = true;
  std::uint32_t max_programs = 0;
  AttachPlan plan;  ///< what attaching needs of it
};

struct LoadReply {
  std::uint32_t object = 0;
  std::string carriers;  ///< CarrierPlan::describe(): both sides have made the same plan of it
  std::uint32_t programs = 0;
  std::vector<std::string> maps;  ///< the names of the descriptors
};

/// Asks for one planned link of an object, to one process.
struct AttachRequest {
  std::uint32_t object = 0;
  std::uint32_t link = 0;
  pid_t pid = 0;
  std::vector<std::uint32_t> left_out;  ///< places of the link that are not attached
};

struct AttachReply {
  std::uint32_t places = 0;                            ///< that are attached
  std::vector<std::pair<std::uint32_t, int>> refused;  ///< places that the kernel refuses, and its errno
};

void write(ByteWriter& out, const Hello& hello);
void write(ByteWriter& out, const Welcome& welcome);
void write(ByteWriter& out, const Error& error);
void write(ByteWriter& out, const LoadRequest& request);
void write(ByteWriter& out, const LoadReply& reply);
void write(ByteWriter& out, const AttachRequest& request);
void write(ByteWriter& out, const AttachReply& reply);

/// False: it cannot be.
[[nodiscard]] bool read(ByteReader& in, Hello& hello);
[[nodiscard]] bool read(ByteReader& in, Welcome& welcome);
[[nodiscard]] bool read(ByteReader& in, Error& error);
[[nodiscard]] bool read(ByteReader& in, LoadRequest& request);
[[nodiscard]] bool read(ByteReader& in, LoadReply& reply);
[[nodiscard]] bool read(ByteReader& in, AttachRequest& request);
[[nodiscard]] bool read(ByteReader& in, AttachReply& reply);

// The part of a plan that attaching needs: write_plan.cpp, read_plan.cpp.
/// Whether the plan, which has nothing but places in files, is within limits.hpp. Errors: limit, which says what there
/// is too much of.
[[nodiscard]] Result<void> check_size(const AttachPlan& plan);
void write_plan(ByteWriter& out, const AttachPlan& plan);
[[nodiscard]] bool read_plan(ByteReader& in, AttachPlan& plan);

/// A number that tells one object of BPF programs from another: FNV-1a, for mistakes and no attacks.
[[nodiscard]] std::uint64_t digest(std::span<const std::byte> object) noexcept;

}  // namespace usdt::broker
