// SPDX-License-Identifier: BSD-2-Clause
#include "http/gzip.hpp"

#include <zlib.h>

namespace usdt::http {

std::string gzip(std::string_view data, GzipEffort effort) {
  constexpr int kWithGzipHeader = 15 + 16, kMemoryLevel = 8;
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

}  // namespace usdt::http
