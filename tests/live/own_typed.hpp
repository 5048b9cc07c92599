// SPDX-License-Identifier: BSD-2-Clause
// Two readers of the probe own:typed of the test's own process: the stock program's Tracer, and a RingReader of
// numbers.bpf.c. Both hand over the probe's second argument.
#pragma once

#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

#include "numbers.bpf.hpp"
#include "probed.hpp"
#include "usdt/usdt.hpp"

namespace usdt::test {

template <class T>
T or_throw(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

inline AttachPlan plan_own_typed(std::uint64_t user_cookie = 0) {
  const auto selection =
      or_throw(select({*ProbePattern::parse("own:typed")}, {.targets = {}, .pids = {::getpid()}, .program = {}}));
  PlanOptions options;
  options.scope = *OneProcess::of(::getpid());
  options.user_cookie = user_cookie;
  options.texts.numbers = {0};
  return or_throw(plan_attach(selection, kernel_facts(), options));
}

inline void pass_typed(int count, int first = 0) {
  for (int i = 0; i < count; ++i) probed::typed("text", first + i, 1);
}

using OnNumber = std::function<void(int)>;

class StockProgram {
 public:
  [[nodiscard]] int fd() { return or_throw(tracer_->fd()); }
  Result<std::size_t> read(const OnNumber& on_number, std::size_t limit = SIZE_MAX) {
    return tracer_->poll([&](const Event& event) { on_number(event.arg<int>(1).value_or(-1)); },
                         std::chrono::milliseconds(0), limit);
  }
  void wake() const noexcept { tracer_->wake(); }
  void detach() { tracer_->detach(); }

 private:
  std::unique_ptr<Tracer> tracer_ = std::make_unique<Tracer>(or_throw(Tracer::start(plan_own_typed())));
};

class OwnProgram {
 public:
  [[nodiscard]] int fd() const { return ring_.fd(); }
  Result<std::size_t> read(const OnNumber& on_number, std::size_t limit = SIZE_MAX) {
    return ring_.read([&](std::span<const std::byte> record) { on_number(record_as<int>(record).value_or(-1)); },
                      limit);
  }
  void wake() const noexcept { ring_.wake(); }
  void detach() { link_.detach(); }

 private:
  LoadedObject object_ = or_throw(or_throw(BpfObject::open(numbers_object())).load(plan_own_typed()));
  Link link_ = or_throw(object_.attach());
  RingReader ring_ = or_throw(RingReader::open(object_, "numbers"));
};

}  // namespace usdt::test
