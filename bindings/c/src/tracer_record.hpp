// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <memory>
#include <string>

#include "handles.hpp"
#include "usdt/sink.hpp"

namespace usdtc {

/// The recording of what a tracer hands out: a sink, which is given what a session would give it.
class TracerRecord {
 public:
  /// Errors: no_permission, io (the file), invalid_argument (it is traced itself).
  static usdt::Result<TracerRecord> open(const char* path, const usdt::Tracer& tracer, const usdt::Question& question,
                                         usdt::Surroundings& around);

  /// Records an event, the one that `around` was asked about last. finish() says what failed.
  void event(const usdt::Event& event) { sink_->event(event); }
  /// Writes what has waited for a second.
  void flush() { static_cast<void>(sink_->flush()); }
  /// Writes the rest, and the account. Errors: io.
  usdt::Result<void> finish(const usdt::Tracer& tracer);

 private:
  TracerRecord() = default;

  std::unique_ptr<usdt::Printed> printed_;  // where it is, it stays
  std::unique_ptr<usdt::Sink> sink_;
};

}  // namespace usdtc
