// SPDX-License-Identifier: BSD-2-Clause
// Shows how long it takes from one probe to another, or from a function's entry to its return: percentiles for each
// key, and the account of all hits. As root.
//
//   example_07_latency 'orders:received ~~ orders:stock' 'str(arg1)' 5           for each customer
//   example_07_latency ucall:./server:handle 'req->kind' 10                       a function
#include "answer.hpp"

namespace {

/// Takes what the text does not say: how many hits there were, and how many of them nobody saw.
class Losses final : public usdt::AnswerConsumer {
  void end(const usdt::AnswerEnd& end) override {
    const usdt::Account total = end.summary.total();
    std::fprintf(stderr, "%s hits, %s lost\n", std::to_string(total.hits).c_str(),
                 std::to_string(total.lost()).c_str());
  }
};

usdt::Result<void> run(const char* span, const char* keys, const char* seconds) {
  auto question = example::ask({span}, {{"latency", ""}, {"by", keys}, {"duration", seconds}});
  if (!question) return usdt::fail(question.error());
  Losses losses;
  return example::answer(std::move(*question), {&losses});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return example::show_usage(argv[0], "SPAN|FUNCTION KEYS SECONDS");
  return example::exit_code(run(argv[1], argv[2], argv[3]));
}
