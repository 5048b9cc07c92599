// SPDX-License-Identifier: BSD-2-Clause
#include "tracer_record.hpp"

#include <utility>

namespace usdtc {

usdt::Result<TracerRecord> TracerRecord::open(const char* path, const usdt::Tracer& tracer,
                                              const usdt::Question& question, usdt::Surroundings& around) {
  auto sink = usdt::Sink::open("record", {.file = path, .program = kProgram});
  if (!sink) return usdt::fail(std::move(sink.error()));
  if (auto taken = (*sink)->check(tracer.plan()); !taken) return usdt::fail(std::move(taken.error()));
  TracerRecord record;
  record.sink_ = std::move(*sink);
  record.printed_ = std::make_unique<usdt::Printed>(
      usdt::Printed{.lists = {{}}, .of_probe = std::vector<usdt::ListNumber>(tracer.plan().probes.size())});
  record.sink_->begin({.question = question,
                       .plan = tracer.plan(),
                       .layout = &tracer.layout(),
                       .printed = *record.printed_,
                       .around = around});
  record.sink_->flush_rest();
  return record;
}

usdt::Result<void> TracerRecord::finish(const usdt::Tracer& tracer) {
  sink_->flush_rest();
  sink_->summary(usdt::summarize(tracer));
  sink_->flush_rest();
  return sink_->check_written();
}

}  // namespace usdtc
