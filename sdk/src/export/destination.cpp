// SPDX-License-Identifier: BSD-2-Clause
#include "export/destination.hpp"

#include <optional>
#include <string_view>
#include <utility>

#include "base/try.hpp"
#include "export/formats.hpp"
#include "export/metric_page.hpp"

namespace usdt::exports {
namespace {

/// A stream that nothing comes through.
io::Stream nowhere() {
  return io::Stream([](std::string_view) { return true; });
}

Result<std::shared_ptr<Destination>> open_server(SinkOptions options) {
  const std::string listen = options.listen;
  auto page = std::make_shared<MetricPage>();
  auto server = TRY(http::Server::listen(
      listen, [page, own = options.own_metrics, health = options.health](const http::Request& request) {
        return answer_with_page(*page, own, health, request);
      }));
  auto destination = std::make_shared<Destination>(nowhere(), std::move(options));
  destination->name = "http://" + server->address() + "/metrics";
  destination->metric_page = std::move(page);
  destination->server = std::move(server);
  return destination;
}

Result<std::shared_ptr<Destination>> open_poster(const FormatRow& row, SinkOptions options) {
  const http::Endpoint endpoint = TRY(find_endpoint(row, options.file));
  std::optional<http::Spool> spool;
  if (!options.spool.empty()) spool.emplace(TRY(http::Spool::open(options.spool, options.spool_size)));
  auto poster = TRY(http::Poster::start(endpoint, std::move(spool)));
  auto destination = std::make_shared<Destination>(nowhere(), std::move(options));
  destination->poster = std::move(poster);
  return destination;
}

Result<std::shared_ptr<Destination>> open_stream(SinkOptions options) {
  if (options.write) {
    io::Stream stream(options.write);
    return std::make_shared<Destination>(std::move(stream), std::move(options));
  }
  if (options.file.empty()) {
    io::Stream stream(options.descriptor);
    return std::make_shared<Destination>(std::move(stream), std::move(options));
  }
  io::Stream stream = TRY(io::Stream::create(options.file));
  return std::make_shared<Destination>(std::move(stream), std::move(options));
}

}  // namespace

Result<std::shared_ptr<Destination>> open_destination(const FormatRow& row, SinkOptions options) {
  if (!options.listen.empty() && !row.is_of_metrics)
    return fail(ErrorKind::invalid_argument,
                fmt::format("{} is no page of metrics that can be served", row.format.name));
  if (!options.listen.empty()) return open_server(std::move(options));
  if (row.format.is_sent) return open_poster(row, std::move(options));
  auto destination = TRY(open_stream(std::move(options)));
  if (row.is_of_metrics) destination->metric_page = std::make_shared<MetricPage>();
  return destination;
}

}  // namespace usdt::exports
