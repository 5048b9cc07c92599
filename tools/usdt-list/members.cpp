// SPDX-License-Identifier: BSD-2-Clause
#include "members.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "common/arg_json.hpp"
#include "common/report.hpp"
#include "exit_code.hpp"
#include "io/json.hpp"
#include "io/width.hpp"
#include "print.hpp"
#include "usdt/usdt.hpp"

namespace usdt_list {
namespace {

using usdt::io::json_key;
using usdt::io::json_text;
using usdt::io::JsonWriter;
using usdt::io::Style;
using usdt::tools::print_error;
using usdt::tools::print_notice;

/// A member, or bytes between two of them that none has.
struct Row {
  std::string name;  ///< empty: anonymous, a base class, or a hole
  std::string type;  ///< empty: a hole
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint8_t bits = 0;
  std::uint8_t shift = 0;
  bool is_base = false;
  bool is_virtual = false;
  unsigned depth = 0;
};

struct Layout {
  std::string type;
  std::uint64_t size = 0;
  usdt::TypeKind kind = usdt::TypeKind::integer;
  bool is_union = false;
  std::vector<Row> rows;
  std::vector<usdt::Enumerator> enumerators;
};

/// Goes through a type and what in it has no name, whose members count as its own.
class LayoutReader {
 public:
  explicit LayoutReader(const usdt::TypeGraph& graph) : graph_(graph) {}

  usdt::Result<Layout> read(usdt::TypeId type) {
    const auto info = graph_.info(type);
    if (!info) return usdt::fail(info.error());
    layout_.type = info->text;
    layout_.size = info->type.size;
    layout_.kind = info->type.kind;
    layout_.is_union = info->is_union;
    layout_.enumerators = graph_.enumerators(type);
    if (auto added = add_members(type, *info, 0, 0); !added) return usdt::fail(added.error());
    return std::move(layout_);
  }

 private:
  static constexpr unsigned kDeepest = 32;
  static constexpr std::size_t kMostRows = 1U << 20;

  usdt::Result<void> add_members(usdt::TypeId type, const usdt::TypeInfo& outer, std::uint64_t start, unsigned depth) {
    if (depth == kDeepest || layout_.rows.size() > kMostRows)
      return usdt::fail(usdt::ErrorKind::limit, fmt::format("'{}' nests too deep to be shown", layout_.type));
    auto members = graph_.members(type);
    if (!members) return usdt::fail(members.error());
    // Rust's debug information lists members in any order.
    std::ranges::stable_sort(*members, {}, [](const usdt::MemberInfo& each) {
      return std::tuple(each.is_virtual, each.offset, each.shift);
    });
    std::uint64_t end = 8 * start;  // bits
    bool is_open = false;           // what is behind the last member is not known
    for (const usdt::MemberInfo& member : *members) {
      const auto info = graph_.info(member.type);
      if (!info) return usdt::fail(info.error());
      Row row = row_of(member, *info, start, depth);
      is_open = row.is_virtual || (info->type.kind == usdt::TypeKind::array && !info->count);
      if (!outer.is_union && !row.is_virtual) add_hole(end, 8 * row.offset + row.shift, depth);
      if (!row.is_virtual) end = std::max(end, 8 * row.offset + (row.bits ? row.shift + row.bits : 8 * row.size));
      layout_.rows.push_back(std::move(row));
      if (!member.name.empty() || member.is_virtual) continue;
      if (auto added = add_members(member.type, *info, start + member.offset, depth + 1); !added) return added;
    }
    if (!members->empty() && !outer.is_union && !is_open) add_hole(end, 8 * (start + outer.type.size), depth);
    return {};
  }

  static Row row_of(const usdt::MemberInfo& member, const usdt::TypeInfo& info, std::uint64_t start, unsigned depth) {
    return {.name = member.name,
            .type = info.text,
            .offset = start + member.offset,
            .size = info.type.size,
            .bits = member.bits,
            .shift = member.shift,
            .is_base = member.is_base,
            .is_virtual = member.is_virtual,
            .depth = depth};
  }

  /// Adds the whole bytes that lie between two members.
  void add_hole(std::uint64_t end, std::uint64_t begin, unsigned depth) {
    const std::uint64_t first = (end + 7) / 8;
    if (begin / 8 <= first) return;
    layout_.rows.push_back({.name = {}, .type = {}, .offset = first, .size = begin / 8 - first, .depth = depth});
  }

  const usdt::TypeGraph& graph_;
  Layout layout_;
};

std::string name_of(const Row& row) {
  if (row.type.empty()) return "(hole)";
  if (row.is_base) return row.is_virtual ? "(virtual base)" : "(base)";
  return row.name.empty() ? "(anonymous)" : row.name;
}

std::string offset_of(const Row& row) { return row.is_virtual ? "?" : fmt::format("{}", row.offset); }
std::string size_of(const Row& row) { return row.size == 0 ? "-" : fmt::format("{}", row.size); }
/// "bits 3-7" of the number at the offset.
std::string bits_of(const Row& row) {
  if (row.bits == 0) return {};
  if (row.bits == 1) return fmt::format("{}", row.shift);
  return fmt::format("{}-{}", row.shift, row.shift + row.bits - 1);
}

void print_text(const Layout& layout, const std::string& source, usdt::io::Stream& out) {
  out.print("{}, {}, of {}\n", out.styled(layout.type, Style::bold),
            layout.size == 0 ? "of no known size" : usdt::tools::counted(layout.size, "byte"), source);
  for (const usdt::Enumerator& each : layout.enumerators)
    out.print("  {} = {}\n", out.styled(each.name, Style::name), static_cast<std::int64_t>(each.bits));
  if (layout.rows.empty()) return;
  std::size_t width = 4;
  for (const Row& row : layout.rows)
    width = std::max(width, std::min<std::size_t>(usdt::io::shown_width(name_of(row)) + 2 * row.depth, 40));
  out.print("  {:>6} {:>6} {:>6}  {:<{}}  {}\n", "OFFSET", "SIZE", "BITS", "NAME", width, "TYPE");
  for (const Row& row : layout.rows) {
    out.print("  {:>6} {:>6} {:>6}  {:{}}", offset_of(row), size_of(row), bits_of(row), "", 2 * row.depth);
    if (row.type.empty()) {
      out.print("{}\n", out.styled(name_of(row), Style::mark));
    } else {
      const std::size_t room = width - std::min<std::size_t>(width, 2 * row.depth);
      out.print("{:<{}}  {}\n", out.styled(name_of(row), Style::name), room, row.type);
    }
  }
}

void write_row(JsonWriter& json, const Row& row) {
  json.StartObject();
  json_key(json, "name");
  usdt::io::json_text_or_null(json, row.name);
  json_key(json, "type");
  usdt::io::json_text_or_null(json, row.type);
  json_key(json, "offset");
  row.is_virtual ? json.Null() : json.Uint64(row.offset);
  json_key(json, "size");
  json.Uint64(row.size);
  json_key(json, "depth");
  json.Uint(row.depth);
  if (row.bits != 0) {
    json_key(json, "bits");
    json.Uint(row.bits);
    json_key(json, "shift");
    json.Uint(row.shift);
  }
  if (row.is_base) {
    json_key(json, "base");
    json_text(json, row.is_virtual ? "virtual" : "plain");
  }
  json.EndObject();
}

/// `file`: empty for the kernel.
void print_json(const Layout& layout, const std::string& file, usdt::io::Stream& out) {
  rapidjson::StringBuffer buffer;
  JsonWriter json(buffer);
  json.StartObject();
  json_key(json, "v");
  json.Uint(1);
  json_key(json, "type");
  json_text(json, layout.type);
  json_key(json, "file");
  usdt::io::json_text_or_null(json, file);
  json_key(json, "size");
  json.Uint64(layout.size);
  json_key(json, "union");
  json.Bool(layout.is_union);
  json_key(json, "members");
  json.StartArray();
  for (const Row& row : layout.rows) write_row(json, row);
  json.EndArray();
  usdt::tools::write_enumerators(json, layout.enumerators);
  json.EndObject();
  out.json({buffer.GetString(), buffer.GetSize()});
}

class MemberList {
 public:
  explicit MemberList(const Flags& flags) : flags_(flags), out_(STDOUT_FILENO) {}

  int run() {
    if (lists_files(flags_)) {
      show_files();
    } else if (const auto types = usdt::kernel_types()) {
      show(**types, "");
    } else {
      complain(types.error());
    }
    if (out_.flush() != usdt::io::Stream::Flushed::all) return output_failed(out_);
    if (trouble_) return kTrouble;
    if (!found_ && missing_) print_error(kTool, *missing_);
    return found_ ? kFound : kNothing;
  }

 private:
  void show_files() {
    usdt::SearchScope scope;
    scope.targets = flags_.targets;
    scope.pids = flags_.pids;
    scope.unmapped_too = false;
    const usdt::FoundFiles found = usdt::find_files({}, scope);
    for (const usdt::Error& error : found.errors) complain(error);
    for (const std::string& target : found.nowhere) print_notice(kTool, fmt::format("no ELF file in '{}'", target));
    for (const usdt::FoundFile& file : found.files) show_file(file);
  }

  /// Shows a file. One without debug information is passed over, if others of a directory or process may have it.
  void show_file(const usdt::FoundFile& found) {
    const bool only_one = found.named && flags_.pids.empty();
    const auto file = usdt::ElfFile::open(found.target.access, {.debuginfod = flags_.debuginfod});
    if (!file) return only_one ? complain(file.error()) : miss(file.error());
    const auto types = usdt::file_types(*file);
    if (types) return show(**types, found.target.access.string());
    only_one&& types.error().kind != usdt::ErrorKind::not_found ? complain(types.error()) : miss(types.error());
  }

  void show(const usdt::TypeGraph& graph, const std::string& file) {
    const auto all = graph.find_all(flags_.members);
    if (!all) return all.error().kind == usdt::ErrorKind::not_found ? miss(all.error()) : complain(all.error());
    if (all->size() > 1)
      print_notice(kTool, fmt::format("{} types that differ are called '{}'", all->size(), flags_.members));
    for (const usdt::TypeId type : *all) {
      const auto layout = LayoutReader(graph).read(type);
      if (!layout) {
        complain(layout.error());
      } else if (flags_.format == Format::json) {
        print_json(*layout, file, out_);
      } else {
        print_text(*layout, file.empty() ? "the running kernel" : file, out_);
      }
      found_ = found_ || layout.has_value();
    }
  }

  void miss(const usdt::Error& error) {
    if (!missing_) missing_ = error;
  }
  void complain(const usdt::Error& error) {
    print_error(kTool, error);
    trouble_ = true;
  }

  const Flags& flags_;
  usdt::io::Stream out_;
  std::optional<usdt::Error> missing_;
  bool found_ = false;
  bool trouble_ = false;
};

}  // namespace

int run_members(const Flags& flags) { return MemberList(flags).run(); }

}  // namespace usdt_list
