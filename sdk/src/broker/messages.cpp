// SPDX-License-Identifier: BSD-2-Clause
#include "broker/messages.hpp"

#include <algorithm>
#include <string_view>

#include "broker/limits.hpp"

namespace usdt::broker {
namespace {

constexpr std::size_t kMostFeatures = 256;
constexpr std::size_t kMostConstants = 4096;
constexpr int kMostErrno = 4095;

std::string read_text(ByteReader& in, std::size_t most) {
  const std::string_view text = in.text();
  if (text.size() > most) in.fail();
  return std::string(text.substr(0, most));
}

/// One of the enumerators up to `last`.
template <class Enum>
Enum read_enum(ByteReader& in, Enum last) {
  return static_cast<Enum>(in.below(static_cast<std::size_t>(last) + 1));
}

/// Reads a list with a function for each element, as long as all is well.
template <class Function>
void read_list(ByteReader& in, std::size_t most, const Function& read_one) {
  for (std::uint64_t left = in.up_to(most); left > 0 && !in.failed(); --left) read_one();
}

/// Whether all of a message was read, and is well.
bool is_done(ByteReader& in) { return !in.failed() && in.at_end(); }

}  // namespace

void write(ByteWriter& out, const Hello& hello) {
  out.varint(hello.protocol);
  out.text(hello.version);
}

bool read(ByteReader& in, Hello& hello) {
  hello.protocol = in.u32();
  hello.version = read_text(in, kMostName);
  return !in.failed();  // later protocols may have more
}

void write(ByteWriter& out, const Welcome& welcome) {
  out.varint(welcome.protocol);
  out.text(welcome.version);
  out.varint(welcome.features.size());
  for (const FeatureState& state : welcome.features) {
    out.text(to_string(state.feature));
    out.varint(static_cast<std::uint64_t>(state.answer));
    out.text(std::string_view(state.detail).substr(0, kMostName));
  }
}

bool read(ByteReader& in, Welcome& welcome) {
  welcome.protocol = in.u32();
  welcome.version = read_text(in, kMostName);
  read_list(in, kMostFeatures, [&] {
    const auto feature = feature_by_name(read_text(in, kMostName));
    const auto answer = read_enum(in, Answer::unknown);
    std::string detail = read_text(in, kMostName);
    if (feature) welcome.features.push_back({*feature, answer, std::move(detail)});  // else of another version
  });
  return !in.failed();
}

void write(ByteWriter& out, const Error& error) {
  out.varint(static_cast<std::uint64_t>(error.kind));
  out.varint(static_cast<std::uint64_t>(std::clamp(error.os_error, 0, kMostErrno)));
  out.text(std::string_view(error.message).substr(0, kMostText));
  const std::string_view log(error.log);
  out.text(log.substr(log.size() - std::min(log.size(), kMostText)));
}

bool read(ByteReader& in, Error& error) {
  error.kind = read_enum(in, ErrorKind::verifier);
  error.os_error = static_cast<int>(in.up_to(kMostErrno));
  error.message = read_text(in, kMostText);
  error.log = read_text(in, kMostText);
  return !in.failed();
}

void write(ByteWriter& out, const LoadRequest& request) {
  out.varint(request.programs);
  out.varint(request.constants.size());
  out.raw(request.constants.data(), request.constants.size());
  out.varint(request.sizes.size());
  for (const MapSize& size : request.sizes) {
    out.text(size.map);
    out.varint(static_cast<std::uint64_t>(size.what));
    out.varint(size.value);
  }
  out.varint(request.shares);
  out.varint(request.shared_maps.size());
  for (const std::string& map : request.shared_maps) out.text(map);
  out.text(request.program);
  out.varint(static_cast<std::uint64_t>(request.carrier));
  out.u8(request.arguments ? 1 : 0);
  out.varint(request.max_programs);
  write_plan(out, request.plan);
}

bool read(ByteReader& in, LoadRequest& request) {
  request.programs = in.varint();
  const ByteSpan constants = in.raw(in.up_to(kMostConstants));
  request.constants.assign(constants.begin(), constants.end());
  read_list(in, kMostMaps, [&] {
    MapSize& size = request.sizes.emplace_back();
    size.map = read_text(in, kMostName);
    size.what = read_enum(in, MapProperty::value_size);
    size.value = in.u32();
  });
  request.shares = in.u32();
  read_list(in, kMostMaps, [&] { request.shared_maps.push_back(read_text(in, kMostName)); });
  // Shared maps are paid for by the object that has them: without one, nobody would have counted what they take.
  if (request.shares == 0 && !request.shared_maps.empty()) in.fail();
  request.program = read_text(in, kMostName);
  request.carrier = read_enum(in, Carrier::ip_hash);
  request.arguments = in.below(2) == 1;
  request.max_programs = static_cast<std::uint32_t>(in.up_to(kMostPrograms));
  return !in.failed() && read_plan(in, request.plan) && is_done(in);
}

void write(ByteWriter& out, const LoadReply& reply) {
  out.varint(reply.object);
  out.text(reply.carriers);
  out.varint(reply.programs);
  out.varint(reply.maps.size());
  for (const std::string& map : reply.maps) out.text(map);
}

bool read(ByteReader& in, LoadReply& reply) {
  reply.object = in.u32();
  reply.carriers = read_text(in, kMostName);
  reply.programs = in.u32();
  read_list(in, kMostMaps, [&] { reply.maps.push_back(read_text(in, kMostName)); });
  return is_done(in);
}

void write(ByteWriter& out, const AttachRequest& request) {
  out.varint(request.object);
  out.varint(request.link);
  out.varint(static_cast<std::uint64_t>(std::max(request.pid, 0)));
  out.varint(request.left_out.size());
  for (const std::uint32_t place : request.left_out) out.varint(place);
}

bool read(ByteReader& in, AttachRequest& request) {
  request.object = in.u32();
  request.link = in.u32();
  request.pid = static_cast<pid_t>(in.up_to(INT32_MAX));
  read_list(in, kMostPlaces, [&] { request.left_out.push_back(in.below(kMostPlaces)); });
  return is_done(in);
}

void write(ByteWriter& out, const AttachReply& reply) {
  out.varint(reply.places);
  out.varint(reply.refused.size());
  for (const auto& [place, os_error] : reply.refused) {
    out.varint(place);
    out.varint(static_cast<std::uint64_t>(std::clamp(os_error, 0, kMostErrno)));
  }
}

bool read(ByteReader& in, AttachReply& reply) {
  reply.places = static_cast<std::uint32_t>(in.up_to(kMostPlaces));
  read_list(in, kMostPlaces, [&] {
    const std::uint32_t place = in.below(kMostPlaces);
    reply.refused.emplace_back(place, static_cast<int>(in.up_to(kMostErrno)));
  });
  return is_done(in);
}

std::uint64_t digest(std::span<const std::byte> object) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::byte each : object) hash = (hash ^ static_cast<std::uint64_t>(each)) * 0x100000001b3;
  return hash;
}

}  // namespace usdt::broker
