// SPDX-License-Identifier: BSD-2-Clause
// Shows from where a probe or a function was reached: the calls that led to each event, or, with "count", each
// different chain of calls once, with how often it was. As root.
//
//   example_10_stacks orders:rejected 5
//   example_10_stacks uprobe:libc.so.6:malloc 5 count
#include "answer.hpp"

namespace {

usdt::Result<void> run(const char* point, const char* seconds, bool counts) {
  auto question = counts ? example::ask({point}, {{"by", "ustack"}, {"top", "10"}, {"duration", seconds}})
                         : example::ask({point}, {{"ustack", "16"}, {"duration", seconds}});
  if (!question) return usdt::fail(question.error());
  return example::answer(std::move(*question));
}

}  // namespace

int main(int argc, char** argv) {
  const bool counts = argc == 4 && std::string_view(argv[3]) == "count";
  if (argc != 3 && !counts) return example::show_usage(argv[0], "POINT SECONDS [count]");
  return example::exit_code(run(argv[1], argv[2], counts));
}
