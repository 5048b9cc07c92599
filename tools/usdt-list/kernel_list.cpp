// SPDX-License-Identifier: BSD-2-Clause
#include "kernel_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "common/arg_json.hpp"
#include "common/json.hpp"
#include "common/terminal.hpp"

namespace usdt_list {
namespace {

using usdt::tools::json_hex;
using usdt::tools::json_key;
using usdt::tools::json_text;
using usdt::tools::JsonWriter;
using usdt::tools::Style;
using usdt::tools::styled;

std::string module_name(std::string_view module) { return std::string(module.empty() ? "vmlinux" : module); }

std::string signature_of(const usdt::KernelPoint& point) {
  return point.signature.empty() ? "(untyped)" : point.signature;
}

/// "struct file *"; without types "u64".
std::string type_of(const usdt::Arg& arg) { return arg.type.empty() ? type_name(arg) : arg.type; }

class FunctionPrinter {
 public:
  FunctionPrinter(int verbosity, const usdt::tools::Terminal& terminal, Output& out)
      : verbosity_(verbosity), terminal_(terminal), out_(out) {}

  void print(const std::vector<ListedFunction>& functions) {
    for (const ListedFunction& each : functions) {
      if (each.point.name.size() <= kWidestName) width_ = std::max(width_, each.point.name.size());
    }
    for (const ListedFunction& each : functions) {
      const bool refused = !each.point.refused.empty();
      if (refused && verbosity_ == 0) continue;
      print_line(each.point);
      if (!refused && verbosity_ > 0) print_details(each);
      if (out_.error() != 0) return;
    }
  }

 private:
  static constexpr std::size_t kWidestName = 40;  ///< longer ones push their own line

  void print_line(const usdt::KernelPoint& point) {
    std::string line = styled(point.name, Style::name, terminal_.colour);
    if (terminal_.interactive) {
      line.append(point.name.size() < width_ ? width_ - point.name.size() : 0, ' ');
      line += "  ";
    } else {
      line += "\t";
    }
    if (!point.refused.empty()) {
      line += styled("refused: " + point.refused, Style::bad, terminal_.colour);
    } else {
      line += signature_of(point);
      line += unreadable_remark(point);
    }
    out_.append(line + "\n");
  }

  [[nodiscard]] std::string unreadable_remark(const usdt::KernelPoint& point) const {
    auto count = std::ranges::count_if(point.args, [](const usdt::Arg& arg) { return !arg.readable; });
    if (point.result && !point.result->readable) ++count;
    if (count == 0) return {};
    return (terminal_.interactive ? "  " : "\t") +
           styled(fmt::format("{} unreadable", count), Style::bad, terminal_.colour);
  }

  void print_details(const ListedFunction& each) {
    detail("module", each.module);
    if (each.function->address != 0) detail("address", fmt::format("{:#x}", each.function->address));
    if (each.function->btf_id != 0) detail("btf id", fmt::format("{}", each.function->btf_id));
    std::size_t name_width = 8;
    std::size_t type_width = 0;
    const auto measure = [&](const usdt::Arg& arg) {
      name_width = std::max(name_width, arg.name.size());
      type_width = std::max(type_width, type_of(arg).size());
    };
    for (const usdt::Arg& arg : each.point.args) measure(arg);
    if (each.point.result) measure(*each.point.result);
    for (const usdt::Arg& arg : each.point.args) print_arg(arg.name, arg, name_width, type_width);
    if (each.point.result) print_arg("retval", *each.point.result, name_width, type_width);
  }

  void detail(std::string_view label, std::string_view text) { out_.append(fmt::format("  {:<10} {}\n", label, text)); }

  void print_arg(std::string_view name, const usdt::Arg& arg, std::size_t name_width, std::size_t type_width) {
    const std::string where =
        arg.readable ? arg.spec.text : styled("unreadable: " + arg.reason, Style::bad, terminal_.colour);
    out_.append(fmt::format("    {:<{}}  {:<{}}  {}\n", name, name_width, type_of(arg), type_width, where));
  }

  int verbosity_;
  const usdt::tools::Terminal& terminal_;
  Output& out_;
  std::size_t width_ = 0;
};

void write_function(JsonWriter& json, const ListedFunction& each) {
  json.StartObject();
  json_key(json, "v");
  json.Uint(1);
  json_key(json, "probe");
  json_text(json, each.point.name);
  json_key(json, "module");
  json_text(json, each.module);
  json_key(json, "address");
  each.function&& each.function->address ? json_hex(json, each.function->address) : static_cast<void>(json.Null());
  json_key(json, "btf_id");
  each.function&& each.function->btf_id ? json.Uint(each.function->btf_id) : json.Null();
  json_key(json, "type");
  usdt::tools::json_text_or_null(json, each.point.signature);
  json_key(json, "args");
  json.StartArray();
  for (const usdt::Arg& arg : each.point.args) usdt::tools::write_arg(json, arg);
  json.EndArray();
  if (each.point.result) {
    json_key(json, "return");
    usdt::tools::write_arg(json, *each.point.result);
  }
  if (!each.point.refused.empty()) {
    json_key(json, "refused");
    json_text(json, each.point.refused);
  }
  json.EndObject();
}

}  // namespace

std::vector<ListedFunction> list_functions(const usdt::KernelSelection& selection) {
  std::vector<ListedFunction> out;
  for (const usdt::KernelSelection::Entry& entry : selection.entries) {
    out.push_back({usdt::describe_point(selection, entry, usdt::kernel_machine()), entry.function,
                   module_name(entry.function->module)});
  }
  std::stable_partition(out.begin(), out.end(), [](const ListedFunction& each) { return each.point.refused.empty(); });
  for (const usdt::RefusedFunction& refused : selection.refused) {
    usdt::KernelPoint point;
    point.name = usdt::kernel_name(refused.kind, refused.module, refused.name);
    point.refused = refused.reason;
    out.push_back({std::move(point), nullptr, module_name(refused.module)});
  }
  return out;
}

void print_functions_text(const std::vector<ListedFunction>& functions, int verbosity,
                          const usdt::tools::Terminal& terminal, Output& out) {
  FunctionPrinter(verbosity, terminal, out).print(functions);
}

void print_functions_json(const std::vector<ListedFunction>& functions, Output& out) {
  rapidjson::StringBuffer buffer;
  JsonWriter json(buffer);
  for (const ListedFunction& each : functions) {
    buffer.Clear();
    json.Reset(buffer);
    write_function(json, each);
    out.append({buffer.GetString(), buffer.GetSize()});
    out.append("\n");
  }
}

}  // namespace usdt_list
