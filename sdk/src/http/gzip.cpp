// SPDX-License-Identifier: BSD-2-Clause
#include "http/gzip.hpp"

#include <zlib.h>

namespace usdt::http {

std::string gzip(std::string_view data, GzipEffort effort) {
  constexpr int kWithGzipHeader = 15 + 16, kMemoryLevel = 8;
  const int level = effort == GzipEffort::quick ? Z_BEST_SPEED : Z_DEFAULT_COMPRESSION;
  z_stream stream{};
  if (::deflateInit2(&stream, level, Z_DEFLATED, kWithGzipHeader, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) return {};
  std::string deflated(::deflateBound(&stream, data.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(deflated.data());
  stream.avail_out = static_cast<uInt>(deflated.size());
  const bool whole = ::deflate(&stream, Z_FINISH) == Z_STREAM_END;
  deflated.resize(whole ? stream.total_out : 0);
  ::deflateEnd(&stream);
  return deflated;
}

}  // namespace usdt::http
