// SPDX-License-Identifier: BSD-2-Clause
#include "http/gzip.hpp"

#include <zlib.h>

#include <algorithm>
#include <utility>

namespace usdt::http {
namespace {

constexpr int kWithGzipHeader = 15 + 16;

}  // namespace

std::string gzip(std::string_view data, GzipEffort effort) {
  constexpr int kMemoryLevel = 8;
  constexpr std::size_t kLeastRoom = 256;
  const int level = effort == GzipEffort::quick ? Z_BEST_SPEED : Z_DEFAULT_COMPRESSION;
  z_stream stream{};
  if (::deflateInit2(&stream, level, Z_DEFLATED, kWithGzipHeader, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) return {};
  // Batches are mostly text that repeats itself: room for all of it would be memory that nobody writes to.
  std::string deflated;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  int state = Z_OK;
  for (std::size_t room = data.size() / 8 + kLeastRoom; state == Z_OK; room *= 2) {
    const std::size_t written = deflated.size();
    deflated.resize(written + room);
    stream.next_out = reinterpret_cast<Bytef*>(deflated.data() + written);
    stream.avail_out = static_cast<uInt>(room);
    state = ::deflate(&stream, Z_FINISH);
    deflated.resize(deflated.size() - stream.avail_out);
  }
  if (state != Z_STREAM_END) deflated.clear();
  ::deflateEnd(&stream);
  return deflated;
}

std::optional<std::string> gunzip(std::string_view deflated, std::size_t most) {
  constexpr std::size_t kFirstRoom = 64 << 10;
  z_stream stream{};
  if (::inflateInit2(&stream, kWithGzipHeader) != Z_OK) return std::nullopt;
  std::string data;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(deflated.data()));
  stream.avail_in = static_cast<uInt>(deflated.size());
  int state = Z_OK;
  while (state == Z_OK && data.size() < most) {
    const std::size_t written = data.size(), room = std::min(std::max(written, kFirstRoom), most - written);
    data.resize(written + room);
    stream.next_out = reinterpret_cast<Bytef*>(data.data() + written);
    stream.avail_out = static_cast<uInt>(room);
    state = ::inflate(&stream, Z_NO_FLUSH);
    data.resize(data.size() - stream.avail_out);
  }
  ::inflateEnd(&stream);
  return state == Z_STREAM_END ? std::optional(std::move(data)) : std::nullopt;
}

}  // namespace usdt::http
