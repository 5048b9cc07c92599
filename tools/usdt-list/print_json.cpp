// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/arg_json.hpp"
#include "common/json.hpp"
#include "listing.hpp"
#include "print.hpp"

namespace usdt_list {
namespace {

using usdt::tools::json_hex;
using usdt::tools::json_key;
using usdt::tools::json_text;
using usdt::tools::JsonWriter;

std::string hex_bytes(const usdt::SiteBytes& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < bytes.size; ++i) {
    out += kDigits[bytes.data[i] >> 4];
    out += kDigits[bytes.data[i] & 15];
  }
  return out;
}

void hex_or_null(JsonWriter& json, std::optional<std::uint64_t> value) {
  value ? json_hex(json, *value) : static_cast<void>(json.Null());
}

/// What all sites of a file share.
struct FileKeys {
  std::string path;
  std::string mapped_path;  ///< what the process calls it, where that is not `path`
  std::string_view arch;
  std::string build_id;
  bool deleted = false;
};

void write_file(JsonWriter& json, const FileKeys& file, const std::string& member) {
  json_key(json, "file");
  json_text(json, member.empty() ? file.path : fmt::format("{}({})", file.path, member));
  if (!file.mapped_path.empty()) {
    json_key(json, "mapped_path");
    json_text(json, file.mapped_path);
    json_key(json, "deleted");
    json.Bool(file.deleted);
  }
  json_key(json, "arch");
  json_text(json, file.arch);
  if (file.build_id.empty()) return;
  json_key(json, "build_id");
  json_text(json, file.build_id);
}

/// The arguments of each text as they are written, once for all its sites.
class ArgsInJson {
 public:
  void write(JsonWriter& json, const ListedSite& listed) {
    std::string& text = by_args_[listed.decoded.get()];
    if (text.empty()) text = array_of(listed.decoded->args);
    json.RawValue(text.data(), text.size(), rapidjson::kArrayType);
  }

 private:
  static std::string array_of(const std::vector<usdt::Arg>& args) {
    rapidjson::StringBuffer buffer;
    JsonWriter json(buffer);
    json.StartArray();
    for (const usdt::Arg& arg : args) usdt::tools::write_arg(json, arg);
    json.EndArray();
    return {buffer.GetString(), buffer.GetSize()};
  }

  std::unordered_map<const ListedArgs*, std::string> by_args_;
};

void write_site(JsonWriter& json, const FileKeys& file, const ListedSite& listed, ArgsInJson& args) {
  const usdt::Site& site = *listed.site;
  json.StartObject();
  json_key(json, "v");
  json.Uint(1);
  write_file(json, file, site.member);
  json_key(json, "provider");
  json_text(json, site.provider);
  json_key(json, "name");
  json_text(json, site.name);
  json_key(json, "pc");
  json_hex(json, site.pc.value);
  json_key(json, "base");
  json_hex(json, site.base.value);
  json_key(json, "semaphore");
  hex_or_null(json, site.has_semaphore ? std::optional(site.semaphore.value) : std::nullopt);
  json_key(json, "offset");
  hex_or_null(json, site.offset ? std::optional(site.offset->value) : std::nullopt);
  json_key(json, "args_text");
  json_text(json, site.args_text);
  json_key(json, "args");
  args.write(json, listed);
  json_key(json, "site");
  json.StartObject();
  json_key(json, "bytes");
  json_text(json, hex_bytes(site.bytes));
  json_key(json, "class");
  json_text(json, to_string(site.site_class));
  if (listed.cost) {
    json_key(json, "cost");
    json_text(json, to_string(listed.cost->cost));
  }
  if (listed.cost && listed.cost->cost == usdt::CostClass::refused) {
    json_key(json, "cost_reason");
    json_text(json, listed.cost->text);
  }
  json.EndObject();
  json.EndObject();
}

}  // namespace

void print_json(const usdt::ProbeFile& file, Output& out) {
  FileKeys keys;
  keys.path = file.target.access.string();
  if (file.target.path != file.target.access) keys.mapped_path = file.target.path.string();
  keys.arch = to_string(file.elf->machine());
  keys.build_id = file.elf->build_id();
  keys.deleted = file.target.deleted;
  rapidjson::StringBuffer buffer;
  JsonWriter json(buffer);
  ArgsInJson args;
  for (const ListedSite& site : decode_sites(file, Costs::yes)) {
    buffer.Clear();
    json.Reset(buffer);
    write_site(json, keys, site, args);
    out.append({buffer.GetString(), buffer.GetSize()});
    out.append("\n");
  }
}

}  // namespace usdt_list
