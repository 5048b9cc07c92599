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

std::string module_name(std::string_view module) { return std::string(module.empty() ? "vmlinux" : module); }

std::string signature_of(const usdt::KernelPoint& point) {
  return point.signature.empty() ? "(untyped)" : point.signature;
}

/// "struct file *"; without types "u64".
std::string type_of(const usdt::Arg& arg) {
  return arg.c_type().empty() ? type_name(arg.type) : std::string(arg.c_type());
}

class FunctionPrinter {
 public:
  FunctionPrinter(int verbosity, usdt::tools::Stream& out) : verbosity_(verbosity), out_(out) {}

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
    const bool refused = !point.refused.empty();
    const std::string text = refused ? "refused: " + point.refused : signature_of(point);
    const std::string remark = refused ? std::string() : unreadable_remark(point);
    const Style style = refused ? Style::bad : Style::plain;
    if (!out_.terminal().interactive) {
      out_.print("{}\t{}", point.name, text);
    } else if (std::max(width_, point.name.size()) + 2 + text.size() <= out_.terminal().width) {
      out_.print("{:<{}}  {}", out_.styled(point.name, Style::name), width_, out_.styled(text, style));
    } else {
      constexpr std::size_t kIndent = 4;
      out_.print("{}", out_.styled(point.name, Style::name));
      for (std::string_view rest = text; !rest.empty();)
        out_.print("\n{:{}}{}", "", kIndent, out_.styled(usdt::tools::next_line(rest, out_.room(kIndent, 20)), style));
    }
    if (!remark.empty() && out_.terminal().interactive) out_.print("  {}", out_.styled(remark, Style::bad));
    if (!remark.empty() && !out_.terminal().interactive) out_.print("\t{}", remark);
    out_.print("\n");
  }

  static std::string unreadable_remark(const usdt::KernelPoint& point) {
    auto count = std::ranges::count_if(point.args, [](const usdt::Arg& arg) { return !arg.readable(); });
    if (point.result && !point.result->readable()) ++count;
    return count == 0 ? std::string() : fmt::format("{} unreadable", count);
  }

  void print_details(const ListedFunction& each) {
    detail("module", each.module);
    if (each.function->address != 0) detail("address", fmt::format("{:#x}", each.function->address));
    if (each.function->btf_id != 0) detail("btf id", fmt::format("{}", each.function->btf_id));
    std::size_t name_width = 8;
    std::size_t type_width = 0;
    const auto measure = [&](const usdt::Arg& arg) {
      name_width = std::max(name_width, arg.name().size());
      type_width = std::max(type_width, type_of(arg).size());
    };
    for (const usdt::Arg& arg : each.point.args) measure(arg);
    if (each.point.result) measure(*each.point.result);
    for (const usdt::Arg& arg : each.point.args) print_arg(arg.name(), arg, name_width, type_width);
    if (each.point.result) print_arg("retval", *each.point.result, name_width, type_width);
  }

  void detail(std::string_view label, std::string_view text) { out_.print("  {:<10} {}\n", label, text); }

  void print_arg(std::string_view name, const usdt::Arg& arg, std::size_t name_width, std::size_t type_width) {
    const std::string where = arg.readable() ? location_text(arg.location, usdt::kernel_machine())
                                             : fmt::format("unreadable: {}", arg.why_unreadable());
    out_.print("    {:<{}}  {:<{}}  {}\n", name, name_width, type_of(arg), type_width,
               out_.styled(where, arg.readable() ? Style::plain : Style::bad));
  }

  int verbosity_;
  usdt::tools::Stream& out_;
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
  for (const usdt::Arg& arg : each.point.args) usdt::tools::write_arg(json, arg, usdt::kernel_machine());
  json.EndArray();
  if (each.point.result) {
    json_key(json, "return");
    usdt::tools::write_arg(json, *each.point.result, usdt::kernel_machine());
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

void print_functions_text(const std::vector<ListedFunction>& functions, int verbosity, usdt::tools::Stream& out) {
  FunctionPrinter(verbosity, out).print(functions);
}

void print_functions_json(const std::vector<ListedFunction>& functions, usdt::tools::Stream& out) {
  rapidjson::StringBuffer buffer;
  JsonWriter json(buffer);
  for (const ListedFunction& each : functions) {
    buffer.Clear();
    json.Reset(buffer);
    write_function(json, each);
    out.json({buffer.GetString(), buffer.GetSize()});
  }
}

}  // namespace usdt_list
