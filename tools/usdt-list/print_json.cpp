// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/arg_json.hpp"
#include "io/json.hpp"
#include "listing.hpp"
#include "print.hpp"

namespace usdt_list {
namespace {

using usdt::io::json_hex;
using usdt::io::json_key;
using usdt::io::json_text;
using usdt::io::JsonWriter;

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

/// The keys and values that all sites of a file share.
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

/// The arguments of each text as they are written: sites share a few texts. Hostile files have many: only some are
/// kept.
class ArgsInJson {
 public:
  /// `json` writes to `buffer`.
  ArgsInJson(const SiteDecoder& decoder, JsonWriter& json, rapidjson::StringBuffer& buffer)
      : decoder_(decoder), json_(json), buffer_(buffer) {}

  void write(const usdt::Site& site) {
    const ArgsKey key(site);
    const auto known = by_text_.find(key);
    if (known != by_text_.end()) return put(known->second);
    std::string text = array_of(decoder_.args(site), decoder_.machine());
    put(text);
    constexpr std::size_t kMostBytes = 4 << 20;
    kept_ += text.size();
    if (kept_ < kMostBytes) by_text_.emplace(key, std::move(text));
  }

 private:
  /// In one piece: RawValue() goes through its text byte by byte, which was a fifth of the time of a long list.
  void put(const std::string& text) {
    json_.RawValue("", 0, rapidjson::kArrayType);
    std::memcpy(buffer_.Push(text.size()), text.data(), text.size());
  }
  static std::string array_of(const WrittenArgs& args, usdt::Machine machine) {
    rapidjson::StringBuffer buffer;
    JsonWriter json(buffer);
    json.StartArray();
    for (std::size_t n = 0; n < args.decoded.size(); ++n)
      usdt::tools::write_arg(json, args.decoded[n], args.parsed[n], machine);
    json.EndArray();
    return {buffer.GetString(), buffer.GetSize()};
  }

  const SiteDecoder& decoder_;
  JsonWriter& json_;
  rapidjson::StringBuffer& buffer_;
  std::unordered_map<ArgsKey, std::string, ArgsKeyHash> by_text_;
  std::size_t kept_ = 0;
};

void write_site(JsonWriter& json, const FileKeys& file, const usdt::Site& site, const SiteDecoder& decoder,
                ArgsInJson& args) {
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
  args.write(site);
  if (site.description && !site.description->file.empty()) {
    json_key(json, "source");
    json.StartObject();
    json_key(json, "file"), json_text(json, site.description->file);
    json_key(json, "line"), json.Uint(site.description->line);
    json.EndObject();
  }
  json_key(json, "site");
  json.StartObject();
  json_key(json, "bytes");
  json_text(json, hex_bytes(site.bytes));
  json_key(json, "class");
  json_text(json, to_string(site.site_class));
  const auto cost = decoder.cost(site);
  if (cost) {
    json_key(json, "cost");
    json_text(json, to_string(cost->cost));
  }
  if (cost && cost->cost == usdt::CostClass::refused) {
    json_key(json, "cost_reason");
    json_text(json, cost->text);
  }
  json.EndObject();
  json.EndObject();
}

}  // namespace

void print_json(const usdt::ProbeFile& file, usdt::io::Stream& out) {
  FileKeys keys;
  keys.path = file.target.access.string();
  if (file.target.path != file.target.access) keys.mapped_path = file.target.path.string();
  keys.arch = to_string(file.elf->machine());
  keys.build_id = file.elf->build_id();
  keys.deleted = file.target.deleted;
  rapidjson::StringBuffer buffer;
  JsonWriter json(buffer);
  const SiteDecoder decoder(file, Costs::yes);
  ArgsInJson args(decoder, json, buffer);
  for (const usdt::Site& site : file.sites) {
    buffer.Clear();
    json.Reset(buffer);
    write_site(json, keys, site, decoder, args);
    out.json({buffer.GetString(), buffer.GetSize()});
    out.flush_if_full();
  }
}

}  // namespace usdt_list
