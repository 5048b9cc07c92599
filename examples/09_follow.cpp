// SPDX-License-Identifier: BSD-2-Clause
// Waits for a program that does not run yet, traces it as soon as it starts, and goes on with those that start later
// and with libraries that they load. Each thing that came is told on standard error. As root.
//
//   example_09_follow order-service:orders:shipped 30          start order-service meanwhile, more than once
#include "answer.hpp"

namespace {

/// Tells what came, and whether it is traced.
class Arrivals final : public usdt::AnswerConsumer {
  void notice(const usdt::SessionNotice& notice) override { std::fprintf(stderr, "%s\n", notice.text.c_str()); }
};

usdt::Result<void> run(const char* probe, const char* seconds) {
  auto question = example::ask({probe}, {{"wait", ""}, {"duration", seconds}});
  if (!question) return usdt::fail(question.error());
  Arrivals arrivals;
  return example::answer(std::move(*question), {&arrivals});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return example::show_usage(argv[0], "PROBE SECONDS");
  return example::exit_code(run(argv[1], argv[2]));
}
