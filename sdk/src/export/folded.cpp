// SPDX-License-Identifier: BSD-2-Clause
// Folded stacks, which programs that draw flame graphs read: a line for each, its frames from the outermost on with ';'
// between them, a space, and a whole number.
#include "export/formats.hpp"
#include "export/stack_output.hpp"

namespace usdt::exports {
namespace {

class FoldedOutput final : public FoldedStackOutput {
 public:
  FoldedOutput(const AnswerStart& start, const OutputPlace& place) : FoldedStackOutput(start, place) {
    trace(start.plan, start.plan.probes.size());
  }

 protected:
  void write_stacks(const std::vector<FoldedRow>& rows, const SessionSummary& /*summary*/) override {
    for (const FoldedRow& row : rows) out_.print("{} {}\n", row.stack, row.number);
  }
};

}  // namespace

std::unique_ptr<Output> make_folded_output(const AnswerStart& start, const OutputPlace& place) {
  return std::make_unique<FoldedOutput>(start, place);
}

}  // namespace usdt::exports
