// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "http/poster.hpp"
#include "http/server.hpp"
#include "io/stream.hpp"
#include "usdt/sink.hpp"

namespace usdt::exports {

struct FormatRow;
class MetricPage;

/// The destination that a sink and its siblings share.
struct Destination {
  Destination(io::Stream opened, SinkOptions asked)
      : stream(std::move(opened)),
        options(std::move(asked)),
        name(options.write             ? "the caller"
             : !options.file.empty()   ? options.file
             : options.descriptor == 1 ? "standard output"
                                       : fmt::format("descriptor {}", options.descriptor)) {}

  io::Stream stream;
  SinkOptions options;
  std::string name;
  bool has_header = false;                       ///< one of them has said what the columns of events are
  std::uint32_t flows = 0;                       ///< of such traces: as tracks, arrows from one track to another
  std::uint32_t tracks = 0;                      ///< of traces with tracks: how many they have, each with a number
  std::shared_ptr<MetricPage> metric_page = {};  ///< of forms that are metrics
  std::unique_ptr<http::Server> server = {};     ///< which serves it
  std::unique_ptr<http::Poster> poster = {};     ///< of forms that are sent
  // Sessions may begin in other threads.
  std::atomic<std::size_t> posting_outputs = 0;  ///< that use the poster so far
  std::atomic<const void*> owner = nullptr;      ///< of forms that are of one question: the sink that writes
};

/// Opens the place that a sink of this form writes to. Errors: as Sink::open().
[[nodiscard]] Result<std::shared_ptr<Destination>> open_destination(const FormatRow& row, SinkOptions options);

}  // namespace usdt::exports
