// SPDX-License-Identifier: BSD-2-Clause
// Shows how often a value was in which range, counted in the kernel: no event is written. As root.
//
//   example_06_histogram orders:priced real:arg1 5          totals of orders, for five seconds
#include "answer.hpp"

namespace {

usdt::Result<void> run(const char* probe, const char* value, const char* seconds) {
  auto question = example::ask({probe}, {{"hist", value}, {"duration", seconds}});
  if (!question) return usdt::fail(question.error());
  return example::answer(std::move(*question));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return example::show_usage(argv[0], "PROBE EXPRESSION SECONDS");
  return example::exit_code(run(argv[1], argv[2], argv[3]));
}
