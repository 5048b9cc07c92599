// SPDX-License-Identifier: BSD-2-Clause
// A flame graph as one page for a browser, which needs no network: the stacks as a tree in JSON, and a script that
// draws it (flame_page.html).
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "export/formats.hpp"
#include "export/stack_output.hpp"
#include "export/table_words.hpp"
#include "flame_page.hpp"
#include "io/json.hpp"

namespace usdt::exports {
namespace {

using io::json_key;
using io::json_text;

/// The place of the stacks in kFlamePage.
constexpr std::string_view kDataMark = "%DATA%";

/// Stacks with common beginnings put together: each node is behind its parent, and has the number of what ends there.
class StackTree {
 public:
  void add(std::string_view stack, std::string number) {
    std::uint32_t node = 0;
    while (!stack.empty()) {
      const std::size_t end = std::min(stack.find(';'), stack.size());
      node = child_of(node, stack.substr(0, end));
      stack.remove_prefix(std::min(end + 1, stack.size()));
    }
    nodes_[node].number = std::move(number);
  }

  /// Members of an object: "names", and by node "names_of", "parents", "counts".
  void write(io::JsonWriter& json) const {
    json_key(json, "names"), json.StartArray();
    for (const std::string_view name : names_) json_text(json, name);
    json.EndArray();
    json_key(json, "names_of"), json.StartArray();
    for (const Node& node : nodes_) json.Uint(node.name);
    json.EndArray();
    json_key(json, "parents"), json.StartArray();
    for (const Node& node : nodes_) json.Uint(node.parent);
    json.EndArray();
    json_key(json, "counts"), json.StartArray();
    for (const Node& node : nodes_) json.RawValue(node.number.data(), node.number.size(), rapidjson::kNumberType);
    json.EndArray();
  }

 private:
  struct Node {
    std::uint32_t name, parent;
    std::string number = "0";
  };

  std::uint32_t child_of(std::uint32_t parent, std::string_view name) {
    const auto [number, is_new_name] = numbers_.try_emplace(std::string(name), names_.size());
    if (is_new_name) names_.push_back(number->first);
    const auto name_number = static_cast<std::uint32_t>(number->second);
    const auto [child, is_new] = children_.try_emplace({parent, name_number}, nodes_.size());
    if (is_new) nodes_.push_back({name_number, parent});
    return static_cast<std::uint32_t>(child->second);
  }

  std::map<std::string, std::size_t> numbers_ = {{"all", 0}};
  std::vector<std::string_view> names_ = {"all"};  ///< keys of numbers_
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> children_;
  std::vector<Node> nodes_ = {{0, 0}};
};

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
    const std::size_t at = kFlamePage.find(kDataMark);
    out_.lines(kFlamePage.substr(0, at));
    out_.json(safe_in_page({text.GetString(), text.GetSize()}));
    out_.lines(kFlamePage.substr(at + kDataMark.size()));
  }

 private:
  /// Names of others must not end the element of the page that they are in.
  static std::string safe_in_page(std::string_view json) {
    std::string safe;
    for (const char c : json) c == '<' ? safe += "\\u003c" : safe += c;
    return safe;
  }
};

}  // namespace

std::unique_ptr<Output> make_flame_output(const AnswerStart& start, const OutputPlace& place) {
  return std::make_unique<FlameOutput>(start, place);
}

}  // namespace usdt::exports
