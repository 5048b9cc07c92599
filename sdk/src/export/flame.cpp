// SPDX-License-Identifier: BSD-2-Clause
// A flame graph as one page for a browser, which needs no network: the stacks as a tree in JSON, and a script that
// draws it (flame_page.html).
#include <string>
#include <vector>

#include "export/formats.hpp"
#include "export/page.hpp"
#include "export/stack_output.hpp"
#include "export/stack_tree.hpp"
#include "export/table_words.hpp"
#include "flame_page.hpp"
#include "io/json.hpp"

namespace usdt::exports {
namespace {

using io::json_key;
using io::json_text;

class FlameOutput final : public FoldedStackOutput {
 public:
  FlameOutput(const AnswerStart& start, const OutputPlace& place) : FoldedStackOutput(start, place) {
    trace(start.plan, start.plan.probes.size());
  }

 protected:
  void write_stacks(const std::vector<FoldedRow>& rows, const SessionSummary& summary) override {
    StackTree tree;
    for (const FoldedRow& row : rows) tree.add(row.stack, row.number);
    rapidjson::StringBuffer text;
    io::JsonWriter json(text);
    json.StartObject();
    json_key(json, "title"), json_text(json, title());
    const bool sums = view().shown.size() == 2;
    json_key(json, "unit"), json_text(json, sums ? header_of(RowNumber::sum, view()) : "hits");
    json_key(json, "ledger"), json_text(json, ledger_text(summary));
    tree.write(json);
    json.EndObject();
    put_in_page(out_, kFlamePage, {text.GetString(), text.GetSize()});
  }
};

}  // namespace

std::unique_ptr<Output> make_flame_output(const AnswerStart& start, const OutputPlace& place) {
  return std::make_unique<FlameOutput>(start, place);
}

}  // namespace usdt::exports
