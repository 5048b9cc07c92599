// SPDX-License-Identifier: BSD-2-Clause
// The JSON contract of usdt-trace, version 1: one object a line (docs/json.md).
#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cmath>

#include "common/utf8.hpp"
#include "output.hpp"

namespace usdt_trace {
namespace {

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

void put(Writer& json, std::string_view text) {
  json.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}
void key(Writer& json, std::string_view name) { json.Key(name.data(), static_cast<rapidjson::SizeType>(name.size())); }

class JsonOutput final : public Output {
 public:
  JsonOutput(const usdt::AttachPlan& plan, const Flags& flags)
      : plan_(plan),
        print_(flags.print),
        stacks_(flags.kernel_stack_depth > 0),
        has_calls_(has_calls(plan) && !flags.count_only),
        columns_(plan, flags.print),
        json_(out_) {
    for (const usdt::PlannedProbe& probe : plan.probes) names_.push_back(full_name(plan, probe));
    args_of_.assign(plan.probes.size(), nullptr);
    for (const usdt::PlannedSite& site : plan.sites) {
      pcs_.push_back(pc_text(site.file, site.pc));
      args_of_[site.probe] = &plan.args[site.args];
    }
  }

  void event(const usdt::Event& event) override {
    json_.Reset(out_);
    json_.StartObject();
    head("event");
    key(json_, "ts"), json_.Uint64(event.timestamp());
    key(json_, "cpu"), json_.Uint(event.cpu());
    key(json_, "pid"), json_.Uint(event.pid());
    key(json_, "tid"), json_.Uint(event.tid());
    key(json_, "comm"), put_text(event.comm());
    key(json_, "probe"), put(json_, names_[event.site().probe]);
    key(json_, "pc"), put_or_null(pcs_[event.site_number()]);
    key(json_, "args"), args(event);
    returned(event);
    // Which of args are strings cut at the string size.
    if (!truncated_.empty()) {
      key(json_, "truncated"), json_.StartArray();
      for (const unsigned n : truncated_) json_.Uint(n);
      json_.EndArray();
    }
    stack(event);
    json_.EndObject();
    out_.Put('\n');
  }

  void summary(const Summary& summary) override {
    json_.Reset(out_);
    json_.StartObject();
    head("summary");
    counts(summary.total());
    missed(summary.missed);
    key(json_, "probes"), json_.StartArray();
    for (std::size_t i = 0; i < summary.probes.size(); ++i) {
      json_.StartObject();
      key(json_, "probe"), put(json_, names_[i]);
      counts(summary.probes[i]);
      missed(summary.probes[i].missed);
      // A kernel function has one signature; the sites of a file's probe may differ, and usdt-list has them.
      if (plan_.probes[i].file == usdt::kNone && args_of_[i]) types(*args_of_[i]);
      json_.EndObject();
    }
    json_.EndArray();
    key(json_, "skipped"), json_.StartArray();
    for (const usdt::SkippedSite& site : summary.skipped) {
      json_.StartObject();
      key(json_, "probe"), put(json_, names_[site.probe]);
      key(json_, "pc"), put_or_null(pc_text(site.file, site.pc));
      key(json_, "reason"), put_text(site.reason);
      json_.EndObject();
    }
    json_.EndArray();
    changed(summary.changed);
    json_.EndObject();
    out_.Put('\n');
  }

  bool flush() override {
    const bool written = write_out({out_.GetString(), out_.GetSize()});
    out_.Clear();
    return written;
  }

 private:
  void changed(const std::vector<usdt::FileChange>& changes) {
    key(json_, "changed"), json_.StartArray();
    for (const usdt::FileChange& change : changes) {
      json_.StartObject();
      key(json_, "file"), put_text(plan_.files[change.file].target.path.native());
      key(json_, "change"), put(json_, to_string(change.kind));
      key(json_, "let_go"), json_.Uint64(change.let_go);
      json_.EndObject();
    }
    json_.EndArray();
  }

  void head(std::string_view type) {
    key(json_, "v"), json_.Uint(1);
    key(json_, "type"), put(json_, type);
  }

  void missed(std::optional<std::uint64_t> hits) { key(json_, "missed"), hits ? json_.Uint64(*hits) : json_.Null(); }

  void counts(const usdt::ProbeCounts& counts) {
    key(json_, "events"), json_.Uint64(counts.delivered);
    key(json_, "hits"), json_.Uint64(counts.hits);
    key(json_, "lost"), json_.StartObject();
    key(json_, "ring_full"), json_.Uint64(counts.ring_full);
    key(json_, "discarded"), json_.Uint64(counts.discarded);
    if (has_calls_) {
      key(json_, "calls_full"), json_.Uint64(counts.calls_full);
      key(json_, "unfinished"), json_.Uint64(counts.unfinished);
    }
    json_.EndObject();
  }

  /// Text of a traced program may be any bytes; a JSON string may not.
  void put_text(std::string_view text) {
    usdt::tools::is_utf8(text) ? put(json_, text) : put(json_, usdt::tools::replace_invalid_utf8(text));
  }

  void args(const usdt::Event& event) {
    truncated_.clear();
    json_.StartArray();
    if (print_.empty()) {
      for (std::size_t n = 0; n < event.arg_count(); ++n)
        if (!event.arg_info(n).result) unasked(event, n);
    }
    for (std::size_t i = 0; i < print_.size(); ++i) {
      const PrintItem& item = print_[i];
      const auto position = columns_.position(event, i);
      if (!position)
        error("no such argument");
      else if (item.form == PrintItem::Form::text)
        text(event, *position, static_cast<unsigned>(i));
      else if (item.form == PrintItem::Form::hex)
        hex(event, *position);
      else
        value(event, *position);
    }
    json_.EndArray();
  }

  /// An argument nobody asked for by name: pointers to characters as their text, if that could be had.
  void unasked(const usdt::Event& event, std::size_t n) {
    event.arg_info(n).text&& event.text(n) ? text(event, n, static_cast<unsigned>(n)) : value(event, n);
  }

  /// The end of a call of a kernel function.
  void returned(const usdt::Event& event) {
    const std::size_t count = event.arg_count();
    if (print_.empty() && count > 0 && event.arg_info(count - 1).result) {
      key(json_, "return");
      unasked(event, count - 1);
    }
    if (event.duration() > 0) key(json_, "duration_ns"), json_.Uint64(event.duration());
  }

  void stack(const usdt::Event& event) {
    if (!stacks_ || event.site().file != usdt::kNone) return;
    key(json_, "kstack");
    const auto stack = event.kernel_stack();
    if (!stack) return error(stack.error().message);
    json_.StartArray();
    for (const std::uint64_t address : *stack) put(json_, symbols_.name(address));
    json_.EndArray();
  }

  /// Names and types of a kernel function's arguments.
  void types(const std::vector<usdt::Arg>& all) {
    key(json_, "args"), json_.StartArray();
    for (const usdt::Arg& arg : all)
      if (!arg.result) type(arg);
    json_.EndArray();
    if (all.empty() || !all.back().result) return;
    key(json_, "return");
    type(all.back());
  }

  void type(const usdt::Arg& arg) {
    json_.StartObject();
    if (!arg.result) key(json_, "name"), put(json_, arg.name);
    key(json_, "type"), put_or_null(arg.type);
    json_.EndObject();
  }

  void put_or_null(const std::string& text) {
    if (text.empty())
      json_.Null();
    else
      put(json_, text);
  }

  /// Empty: not known, or a tracepoint.
  static std::string pc_text(std::uint32_t file, usdt::VirtAddr pc) {
    return file == usdt::kNone && pc.value == 0 ? std::string() : fmt::format("{:#x}", pc.value);
  }

  void error(std::string_view reason) {
    ++unreadable_;
    json_.StartObject();
    key(json_, "error"), put_text(reason);
    json_.EndObject();
  }

  void value(const usdt::Event& event, std::size_t n) {
    const usdt::Value value = event.value(n);
    if (const auto* none = std::get_if<usdt::ArgError>(&value)) return error(none->reason);
    if (const auto* whole = std::get_if<std::int64_t>(&value)) {
      json_.Int64(*whole);
    } else if (const auto* natural = std::get_if<std::uint64_t>(&value)) {
      json_.Uint64(*natural);
    } else {
      real(std::get<double>(value));
    }
  }

  /// JSON has no word for these three.
  void real(double number) {
    if (std::isfinite(number))
      json_.Double(number);
    else
      put(json_, std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity");
  }

  void hex(const usdt::Event& event, std::size_t n) {
    const usdt::Value value = event.value(n);
    if (const auto* none = std::get_if<usdt::ArgError>(&value)) return error(none->reason);
    if (const auto* number = std::get_if<double>(&value)) return real(*number);
    const unsigned spare = 64 - 8 * event.arg_info(n).size;
    const auto* whole = std::get_if<std::int64_t>(&value);
    const std::uint64_t bits = whole ? static_cast<std::uint64_t>(*whole) : std::get<std::uint64_t>(value);
    put(json_, fmt::format("{:#x}", bits << spare >> spare));
  }

  void text(const usdt::Event& event, std::size_t n, unsigned position) {
    auto text = event.text(n);
    if (!text) return error(text.error().message);
    if (text->truncated) truncated_.push_back(position);
    put_text(text->truncated ? usdt::tools::without_partial_utf8(text->bytes) : text->bytes);
  }

  const usdt::AttachPlan& plan_;
  const PrintList& print_;
  bool stacks_;
  bool has_calls_;
  Columns columns_;
  usdt::KernelSymbols symbols_;
  std::vector<std::string> names_;
  std::vector<const std::vector<usdt::Arg>*> args_of_;  ///< by probe; null: none of its sites is attached
  std::vector<std::string> pcs_;
  std::vector<unsigned> truncated_;
  rapidjson::StringBuffer out_;
  Writer json_;
};

}  // namespace

std::unique_ptr<Output> json_output(const usdt::AttachPlan& plan, const Flags& flags) {
  return std::make_unique<JsonOutput>(plan, flags);
}

}  // namespace usdt_trace
