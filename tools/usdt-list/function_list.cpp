// SPDX-License-Identifier: BSD-2-Clause
#include "function_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "common/arg_json.hpp"
#include "io/json.hpp"
#include "io/terminal.hpp"
#include "io/width.hpp"
#include "print.hpp"

namespace usdt_list {
namespace {

using usdt::io::json_hex;
using usdt::io::json_key;
using usdt::io::json_text;
using usdt::io::JsonWriter;
using usdt::io::Style;

std::string module_name(std::string_view module) { return std::string(module.empty() ? "vmlinux" : module); }

std::string signature_of(const ListedFunction& point) {
  return point.signature.empty() ? "(untyped)" : point.signature;
}

class FunctionPrinter {
 public:
  FunctionPrinter(int verbosity, usdt::io::Stream& out) : verbosity_(verbosity), out_(out) {}

  void print(const std::vector<ListedFunction>& functions) {
    for (const ListedFunction& each : functions) {
      const std::size_t columns = usdt::io::shown_width(each.name);
      if (columns <= kWidestName) width_ = std::max(width_, columns);
    }
    for (auto first = functions.begin(); first != functions.end() && out_.error() == 0;) {
      const auto last =
          std::find_if(first, functions.end(), [&](const ListedFunction& each) { return !same(each, *first); });
      print_group({first, last});
      first = last;
    }
  }

 private:
  static constexpr std::size_t kWidestName = 40;  ///< longer ones push their own line

  static bool same(const ListedFunction& a, const ListedFunction& b) {
    return a.name == b.name && a.signature == b.signature && a.refused.empty() == b.refused.empty();
  }

  /// Places with one name and signature have one line.
  void print_group(std::span<const ListedFunction> group) {
    const bool refused = !group.front().refused.empty();
    if (refused && verbosity_ == 0) return;
    print_line(group.front(), group.size());
    if (refused || verbosity_ == 0) return;
    for (const ListedFunction& each : group) print_details(each);
  }

  void print_line(const ListedFunction& point, std::size_t places) {
    const bool refused = !point.refused.empty();
    const std::string text = refused ? "refused: " + point.refused : signature_of(point);
    std::string remark = refused ? std::string() : unreadable_remark(point);
    if (places > 1) remark = fmt::format("{} places{}{}", places, remark.empty() ? "" : ", ", remark);
    const Style style = refused ? Style::bad : Style::plain;
    if (!out_.terminal().interactive) {
      out_.print("{}\t{}", point.name, text);
      if (!remark.empty()) out_.print("\t{}", remark);
    } else if (std::max(width_, usdt::io::shown_width(point.name)) + 2 + usdt::io::shown_width(text) +
                   (remark.empty() ? 0 : 2 + remark.size()) <=
               out_.terminal().width) {
      out_.print("{:<{}}  {}", out_.styled(point.name, Style::name), width_, out_.styled(text, style));
      if (!remark.empty()) out_.print("  {}", out_.styled(remark, Style::bad));
    } else {
      out_.print("{}", out_.styled(point.name, Style::name));
      print_below(text, style);
      print_below(remark, Style::bad);
    }
    out_.print("\n");
  }

  /// Prints it in lines that fit the terminal.
  void print_below(std::string_view text, Style style) {
    constexpr std::size_t kIndent = 4;
    while (!text.empty())
      out_.print("\n{:{}}{}", "", kIndent, out_.styled(usdt::io::next_line(text, out_.room(kIndent, 20)), style));
  }

  static std::string unreadable_remark(const ListedFunction& point) {
    std::size_t count = 0;
    for (std::size_t n = 0; n < point.args.size(); ++n)
      if (!point.args[n].readable() && point.shown_as(n).empty()) ++count;
    if (point.result && !point.result->readable() && point.shown_as(point.args.size()).empty()) ++count;
    return count == 0 ? std::string() : fmt::format("{} unreadable", count);
  }

  void print_details(const ListedFunction& each) {
    for (const auto& [label, text] : each.details) print_detail(out_, label, text);
    std::size_t name_width = 8;
    std::size_t type_width = 0;
    const auto measure = [&](const usdt::Arg& arg) {
      name_width = std::max(name_width, usdt::io::shown_width(arg.name()));
      type_width = std::max(type_width, usdt::io::shown_width(usdt::c_type_text(arg)));
    };
    for (const usdt::Arg& arg : each.args) measure(arg);
    if (each.result) measure(*each.result);
    for (std::size_t n = 0; n < each.args.size(); ++n)
      print_arg(each.args[n].name(), each.args[n], where_text(each, each.args[n], n), name_width, type_width);
    if (each.result)
      print_arg("retval", *each.result, where_text(each, *each.result, each.args.size()), name_width, type_width);
  }

  /// Returns the place of value `n`, or why it cannot be read.
  static std::pair<std::string, Style> where_text(const ListedFunction& point, const usdt::Arg& arg, std::size_t n) {
    if (arg.readable()) return {location_text(arg.location, point.machine), Style::plain};
    const std::string_view shown = point.shown_as(n);
    if (shown.empty()) return {fmt::format("unreadable: {}", arg.why_unreadable()), Style::bad};
    const bool parts = shown == "members" || shown == "elements";
    return {fmt::format("shown {} {}", parts ? "with its" : "as a", shown), Style::plain};
  }

  void print_arg(std::string_view name, const usdt::Arg& arg, const std::pair<std::string, Style>& where,
                 std::size_t name_width, std::size_t type_width) {
    out_.print("    {:<{}}  {:<{}}  {}\n", name, name_width, usdt::c_type_text(arg), type_width,
               out_.styled(where.first, where.second));
  }

  int verbosity_;
  usdt::io::Stream& out_;
  std::size_t width_ = 0;
};

void hex_or_null(JsonWriter& json, std::uint64_t value) {
  value != 0 ? json_hex(json, value) : static_cast<void>(json.Null());
}

/// Writes where a function of the kernel is.
void write_place(JsonWriter& json, const ListedFunction& each) {
  json_key(json, "module");
  json_text(json, each.module);
  json_key(json, "address");
  hex_or_null(json, each.of_kernel ? each.of_kernel->address : 0);
  json_key(json, "btf_id");
  each.of_kernel&& each.of_kernel->btf_id ? json.Uint(each.of_kernel->btf_id) : json.Null();
}

/// Writes where a function of a file is.
void write_place(JsonWriter& json, const usdt::FunctionPoint& point, const usdt::ProbeFile& file) {
  json_key(json, "file");
  json_text(json, file.target.access.string());
  json_key(json, "arch");
  json_text(json, to_string(file.elf->machine()));
  json_key(json, "function");
  json_text(json, point.name);
  json_key(json, "pc");
  json_hex(json, point.pc.value);
  json_key(json, "offset");
  point.offset ? json_hex(json, point.offset->value) : static_cast<void>(json.Null());
  json_key(json, "source");
  if (point.source_file.empty()) {
    json.Null();
  } else {
    json.StartObject();
    json_key(json, "file");
    json_text(json, point.source_file);
    json_key(json, "line");
    json.Uint(point.source_line);
    json.EndObject();
  }
  json_key(json, "inline");
  json.Bool(point.inlined);
  if (!point.caller.empty()) {
    json_key(json, "caller");
    json_text(json, point.caller);
  }
  json_key(json, "site");
  json.StartObject();
  json_key(json, "class");
  json_text(json, to_string(point.site_class));
  if (point.moved > 0) {
    json_key(json, "moved");
    json.Uint(point.moved);
  }
  json.EndObject();
  if (point.rets.empty()) return;
  json_key(json, "rets");
  json.StartArray();
  for (const usdt::FileOffset each : point.rets) json_hex(json, each.value);
  json.EndArray();
}

void write_function(JsonWriter& json, const ListedFunction& each, const usdt::ProbeFile* file) {
  json.StartObject();
  json_key(json, "v");
  json.Uint(1);
  json_key(json, "probe");
  json_text(json, each.name);
  file ? write_place(json, *each.of_file, *file) : write_place(json, each);
  json_key(json, "type");
  usdt::io::json_text_or_null(json, each.signature);
  json_key(json, "args");
  json.StartArray();
  for (std::size_t n = 0; n < each.args.size(); ++n)
    usdt::tools::write_arg(json, each.args[n], each.machine, each.shown_as(n));
  json.EndArray();
  if (each.result) {
    json_key(json, "return");
    usdt::tools::write_arg(json, *each.result, each.machine, each.shown_as(each.args.size()));
  }
  if (!each.refused.empty()) {
    json_key(json, "refused");
    json_text(json, each.refused);
  }
  json.EndObject();
}

/// "int (struct req *r, long n)", as far as types are known.
std::string signature_text(const usdt::FunctionSignature& signature, bool returns) {
  std::vector<std::string> shown;
  for (const usdt::Arg& arg : signature.args) shown.push_back(usdt::declaration_text(arg));
  if (signature.varargs) shown.emplace_back("...");
  const std::string args = shown.empty() ? "void" : fmt::format("{}", fmt::join(shown, ", "));
  if (!returns) return fmt::format("({})", args);
  return fmt::format("{} ({})", signature.result ? usdt::c_type_text(*signature.result) : "void", args);
}

/// Whether the point is a line of source, as "@server.c:120" is.
bool is_line(const usdt::FunctionPoint& point) { return point.name.starts_with('@'); }

/// Whether something of value `n` can be read: a member, or a member of one.
bool has_readable_part(const std::vector<usdt::Arg>& args, std::size_t n) {
  for (std::size_t part = n + 1; part < args.size(); ++part)
    if (args[part].part_of == n && (args[part].readable() || has_readable_part(args, part))) return true;
  return false;
}

std::string_view shown_of(const std::vector<usdt::Arg>& args, std::size_t n) {
  const usdt::Arg& arg = args[n];
  if (arg.is_list()) return args[*arg.length].readable() ? "list" : "";
  if (arg.readable()) return arg.type.kind == usdt::TypeKind::text ? "text" : "";
  if (!has_readable_part(args, n)) return "";
  return arg.type.kind == usdt::TypeKind::array ? "elements" : "members";
}

bool is_opaque(const usdt::Arg& arg) {
  return !arg.readable() && (arg.type.kind == usdt::TypeKind::structure || arg.type.kind == usdt::TypeKind::array);
}

bool has_opaque_values(const ListedFunction& each) {
  return each.refused.empty() &&
         (std::ranges::any_of(each.args, is_opaque) || (each.result && is_opaque(*each.result)));
}

/// An argument, or behind them the result.
const usdt::Arg& value_of(const ListedFunction& each, std::size_t n) {
  return n < each.args.size() ? each.args[n] : *each.result;
}

/// Asks the plan that usdt-trace would make of those functions, how it shows what is no number.
void find_shown(std::vector<ListedFunction>& functions, const usdt::ProbeFile& file) {
  usdt::Selection selection;
  usdt::ProbeFile& asked = selection.files.emplace_back(file);
  asked.functions.clear();
  asked.sites.clear();
  for (const ListedFunction& each : functions)
    if (has_opaque_values(each)) asked.functions.push_back(*each.of_file);
  if (asked.functions.empty()) return;
  usdt::PlanOptions options;
  options.values.open = true;
  const auto plan = usdt::plan_attach(selection, {}, options);
  if (!plan) return;
  std::map<std::pair<std::uint64_t, usdt::Moment>, const std::vector<usdt::Arg>*> values;
  for (const usdt::AttachGroup& group : plan->groups) {
    for (const auto site : group.sites)
      if (const auto pc = pc_of(*plan, plan->sites[site]))
        values[{pc->value, group.moment}] = &plan->args[plan->sites[site].args];
  }
  for (ListedFunction& each : functions) {
    const auto found = values.find({each.of_file->pc.value, each.of_file->moment});
    if (found == values.end() || !has_opaque_values(each)) continue;
    const std::vector<usdt::Arg>& args = *found->second;
    const std::size_t count = each.args.size() + (each.result ? 1 : 0);
    for (std::size_t n = 0; n < std::min(count, args.size()); ++n)
      each.shown.push_back(is_opaque(value_of(each, n)) ? shown_of(args, n) : "");
  }
}

std::string address_text(const usdt::FunctionPoint& point) {
  std::string text = fmt::format("{:#x}, {}", point.pc.value, to_string(point.site_class));
  if (point.moved > 0)
    text += fmt::format(", {:#x} behind the first instruction, which would be single-stepped", point.moved);
  return text;
}

ListedFunction listed(const usdt::FunctionPoint& point, const usdt::ProbeFile& file) {
  ListedFunction out;
  out.name = usdt::function_name(file.target, point.moment, point.name, point.distance);
  out.refused = point.refused;
  out.machine = file.elf->machine();
  out.of_file = &point;
  if (point.signature) {
    if (point.signature->typed) out.signature = signature_text(*point.signature, !point.inlined && !is_line(point));
    if (point.moment != usdt::Moment::exit) out.args = point.signature->args;
    if (point.moment != usdt::Moment::entry) out.result = point.signature->result;
  }
  if (!point.source_file.empty())
    out.details.emplace_back("source", fmt::format("{}:{}", point.source_file, point.source_line));
  if (!point.caller.empty())
    out.details.emplace_back(point.inlined ? "inlined" : "function",
                             fmt::format("{}{}", point.inlined ? "into " : "", point.caller));
  out.details.emplace_back("address", address_text(point));
  if (!point.rets.empty())
    out.details.emplace_back(
        "returns", fmt::format("by {} RET instruction{}", point.rets.size(), point.rets.size() == 1 ? "" : "s"));
  return out;
}

}  // namespace

std::vector<ListedFunction> list_functions(const usdt::KernelSelection& selection) {
  std::vector<ListedFunction> out;
  for (const usdt::KernelSelection::Entry& entry : selection.entries) {
    usdt::KernelPoint point = usdt::describe_point(selection, entry, usdt::kernel_machine());
    ListedFunction& each = out.emplace_back();
    each.name = std::move(point.name);
    each.signature = std::move(point.signature);
    each.args = std::move(point.args);
    each.result = std::move(point.result);
    each.refused = std::move(point.refused);
    each.module = module_name(entry.function->module);
    each.of_kernel = entry.function;
    each.details.emplace_back("module", each.module);
    if (entry.function->address != 0)
      each.details.emplace_back("address", fmt::format("{:#x}", entry.function->address));
    if (entry.function->btf_id != 0) each.details.emplace_back("btf id", fmt::format("{}", entry.function->btf_id));
  }
  std::stable_partition(out.begin(), out.end(), [](const ListedFunction& each) { return each.refused.empty(); });
  for (const usdt::RefusedFunction& refused : selection.refused) {
    ListedFunction& each = out.emplace_back();
    each.name = usdt::kernel_name(refused.kind, refused.module, refused.name);
    each.refused = refused.reason;
    each.module = module_name(refused.module);
  }
  return out;
}

std::vector<ListedFunction> list_functions(const usdt::ProbeFile& file) {
  std::vector<ListedFunction> out;
  for (const usdt::FunctionPoint& point : file.functions) out.push_back(listed(point, file));
  find_shown(out, file);
  std::ranges::stable_sort(out, {}, [](const ListedFunction& each) {
    return std::tuple(!each.refused.empty(), std::string_view(each.name), std::string_view(each.signature));
  });
  return out;
}

void print_functions_text(const std::vector<ListedFunction>& functions, int verbosity, usdt::io::Stream& out) {
  FunctionPrinter(verbosity, out).print(functions);
}

void print_functions_json(const std::vector<ListedFunction>& functions, const usdt::ProbeFile* file,
                          usdt::io::Stream& out) {
  rapidjson::StringBuffer buffer;
  JsonWriter json(buffer);
  for (const ListedFunction& each : functions) {
    buffer.Clear();
    json.Reset(buffer);
    write_function(json, each, file);
    out.json({buffer.GetString(), buffer.GetSize()});
  }
}

}  // namespace usdt_list
