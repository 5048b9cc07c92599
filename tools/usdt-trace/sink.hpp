// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <memory>
#include <string>

#include "common/stream.hpp"
#include "output.hpp"

namespace usdt_trace {

/// Where events are shown or recorded, and whether they got there.
class Sink {
 public:
  /// A file; empty: standard output.
  [[nodiscard]] static usdt::Result<Sink> open(const std::string& file);

  /// Another one that writes there.
  [[nodiscard]] Sink sibling() const { return Sink(name_, stream_); }
  [[nodiscard]] usdt::tools::Stream& stream() noexcept { return *stream_; }
  [[nodiscard]] const usdt::tools::Stream& stream() const noexcept { return *stream_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// From here on there is an output, which writes to stream(). A file keeps what it had until then: a command line
  /// that comes to nothing takes no recording away.
  void show_by(std::unique_ptr<Output> output) {
    stream_->make_empty();
    output_ = std::move(output);
  }
  [[nodiscard]] Output& output() const noexcept { return *output_; }

  /// Everything so far is written.
  [[nodiscard]] bool is_written() const noexcept { return written_; }
  /// Hands on what is printed. Where the reader sleeps on, or there is none, the rest is given up.
  void flush(const usdt::tools::Stream::Patience& patience);
  /// True, and said, where output could not be written. A reader who has seen enough (`| head`) is no failure.
  [[nodiscard]] bool failed() const;

 private:
  Sink(std::string name, std::shared_ptr<usdt::tools::Stream> stream)
      : name_(std::move(name)), stream_(std::move(stream)) {}

  std::string name_;
  std::shared_ptr<usdt::tools::Stream> stream_;
  std::unique_ptr<Output> output_;
  bool written_ = true;
};

}  // namespace usdt_trace
