// SPDX-License-Identifier: BSD-2-Clause
// Records events while it shows them, and then asks the file something else: a recording answers questions that nobody
// thought of while the program ran, on any machine. Recording wants root, replaying does not.
//
//   example_08_record_and_replay 'orders:*' orders.rec 5     shows events, then how many there were of each probe
//   example_08_record_and_replay orders.rec                  asks the file again
#include "answer.hpp"

namespace {

usdt::Result<void> record(const char* probe, const char* file, const char* seconds) {
  auto question = example::ask({probe}, {{"duration", seconds}});
  if (!question) return usdt::fail(question.error());
  auto recording = usdt::Sink::open("record", {.file = file});
  if (!recording) return usdt::fail(recording.error());
  return example::answer(std::move(*question), {recording->get()});
}

usdt::Result<void> replay(const char* file) {
  auto question = example::ask({}, {{"replay", file}, {"count", ""}});
  if (!question) return usdt::fail(question.error());
  return example::answer(std::move(*question));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 4) return example::show_usage(argv[0], "PROBE FILE SECONDS | FILE");
  if (argc == 2) return example::exit_code(replay(argv[1]));
  const auto recorded = record(argv[1], argv[2], argv[3]);
  return example::exit_code(recorded ? replay(argv[2]) : recorded);
}
