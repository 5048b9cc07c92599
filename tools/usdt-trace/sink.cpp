// SPDX-License-Identifier: BSD-2-Clause
#include "sink.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "common/report.hpp"

namespace usdt_trace {

usdt::Result<Sink> Sink::open(const std::string& file) {
  if (file.empty()) return Sink("standard output", std::make_unique<usdt::tools::Stream>(STDOUT_FILENO));
  auto stream = usdt::tools::Stream::create(file);
  if (!stream) return usdt::fail(stream.error());
  return Sink(file, std::make_unique<usdt::tools::Stream>(std::move(*stream)));
}

void Sink::flush(const usdt::tools::Stream::Patience& patience) {
  if (!written_) return;
  const auto result = output_->flush(patience);
  written_ = result == Output::Flushed::all;
  if (result == Output::Flushed::waiting) output_->give_up();
}

bool Sink::failed() const {
  if (written_ || stream_->error() == EPIPE) return false;
  const std::string why = stream_->error() == 0       ? "its reader took nothing for a second"
                          : stream_->error() == EBADF ? "it is closed"
                                                      : std::system_category().message(stream_->error());
  usdt::tools::print_notice("usdt-trace",
                            fmt::format("{}: {}; what is missing there is counted as not_written", name_, why));
  return true;
}

}  // namespace usdt_trace
