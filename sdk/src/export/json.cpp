// SPDX-License-Identifier: BSD-2-Clause
// The JSON contract of usdt-trace, version 1: one object a line (docs/json.md).
#include "io/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <initializer_list>
#include <utility>

#include "export/formats.hpp"
#include "export/frames.hpp"
#include "export/json_values.hpp"
#include "export/output.hpp"
#include "export/table_output.hpp"
#include "export/value_tree.hpp"
#include "export/words.hpp"

namespace usdt::exports {
namespace {

using io::json_key;
using io::json_text;
using io::json_text_or_null;

class JsonOutput final : public Output {
 public:
  JsonOutput(const AnswerStart& start, const OutputPlace& place)
      : Output(start, place),
        printed_(start.printed),
        stacks_(start.question.stacks.kernel_depth > 0 && !start.question.stacks.kernel_in_lists),
        user_stacks_(start.question.stacks.user_depth > 0 && !start.question.stacks.user_in_lists),
        question_(start.question),
        json_(object_),
        values_(json_),
        tree_(values_, start, unreadable_) {
    trace(start.plan, start.plan.probes.size());
  }

  void look_up(const AttachPlan& plan, std::size_t /*probes*/) override {
    causes_ = count_causes(question_, plan);
    tree_.look_up(plan);
    pcs_.clear();
    args_of_.assign(plan.probes.size(), nullptr);
    for (const PlannedSite& site : plan.sites) {
      pcs_.push_back(pc_text(pc_of(plan, site)));
      args_of_[site.probe.value] = &plan.args[site.args];
    }
  }

  void write_event(const Event& event) override {
    json_.Reset(object_);
    json_.StartObject();
    show_event(event);
    json_.EndObject();
    put_line();
    Output::printed(1);
  }

  void slowest(const SlowestEvents& events, bool /*last*/) override {
    json_.Reset(object_);
    json_.StartObject();
    head(question_.view.in_flight ? "in_flight" : "slowest");
    json_key(json_, "events"), json_.StartArray();
    for (const KeptEvent& kept : events.events()) {
      around_.begin(kept);
      json_.StartObject();
      show_event(*kept.event);
      json_.EndObject();
    }
    json_.EndArray();
    json_.EndObject();
    put_line();
  }

  void show_event(const Event& event) {
    const bool span = event.site().span.has_value();
    head(span ? "span" : "event");
    json_key(json_, "ts"), json_.Uint64(event.timestamp());
    json_key(json_, "time"), time(wall_time(event));
    json_key(json_, "cpu"), json_.Uint(event.cpu());
    json_key(json_, "pid"), json_.Uint(event.pid());
    json_key(json_, "tid"), json_.Uint(event.tid());
    json_key(json_, "comm"), json_text(json_, event.comm());
    json_key(json_, "probe"), json_text(json_, tree_.names()[event.site().probe.value]);
    if (event.weight() != 1) weight(event.weight());
    json_key(json_, "pc"), json_text_or_null(json_, pcs_[event.site_number()]);
    if (span) json_key(json_, "end_pc"), json_text_or_null(json_, pcs_[event.site().span->end.value]);
    if (const auto ender = event.ended_by()) ended_by(*ender);
    if (shows_trace_context(question_, event, printed_.of(event.site()))) trace_context(event);
    if (shows_attributes(question_, event, printed_.of(event.site()))) trace_attributes(event);
    json_key(json_, "args"), args(event);
    returned(event);
    texts(event);
    names(event);
    if (!values_.truncated.empty()) {
      json_key(json_, "truncated"), json_.StartArray();
      for (const unsigned n : values_.truncated) json_.Uint(n);
      json_.EndArray();
    }
    const PrintList& list = printed_.of(event.site());
    if (!has_word(list, HitField::kstack)) stack(event);
    if (!has_word(list, HitField::ustack)) user_stack();
  }

  void trace_context(const Event& event) {
    const auto context = event.thread_context();
    if (context && !*context) return;
    for (const HitField field : {HitField::trace_id, HitField::span_id}) {
      json_key(json_, to_string(field));
      const auto digits = context_text(event, field);
      digits ? json_text(json_, *digits) : tree_.error(digits.error().message);
    }
  }

  void trace_attributes(const Event& event) {
    const auto attributes = event.thread_attributes();
    if (attributes && attributes->known.empty() && attributes->others.empty()) return;
    json_key(json_, "trace_attributes");
    if (!attributes) return tree_.error(attributes.error().message);
    json_.StartObject();
    for (const ThreadAttribute& each : attributes->known) {
      json_key(json_, each.key);
      json_text(json_, each.text);
    }
    json_.EndObject();
    if (attributes->others.empty()) return;
    json_key(json_, "other_attributes");
    tree_.error(attributes->others);
  }

  void ended_by(const SpanEnder& thread) {
    json_key(json_, "ended_by"), json_.StartObject();
    json_key(json_, "pid"), json_.Uint(thread.pid);
    json_key(json_, "tid"), json_.Uint(thread.tid);
    json_key(json_, "comm"), json_text(json_, thread.comm);
    json_.EndObject();
  }

  void table(const ArrangedTable& look) override {
    json_.Reset(object_);
    json_.StartObject();
    head("table");
    sampled();
    if (look.overhead) write_overhead(*look.overhead);
    write_table(json_, {question_.view, plan(), look.table, look.rows});
    json_.EndObject();
    put_line();
  }

  void heat(const HeatSlice& slice, bool /*last*/) override {
    json_.Reset(object_);
    json_.StartObject();
    head("heat");
    json_key(json_, "value"), json_text(json_, question_.view.value);
    json_key(json_, "from"), time(slice.from);
    json_key(json_, "to"), time(slice.to);
    write_slice(json_, question_.view, slice);
    json_.EndObject();
    put_line();
  }

  void write_followed(const Followed& followed) override {
    json_.Reset(object_);
    json_.StartObject();
    head("followed");
    json_key(json_, "ts"), json_.Uint64(followed.time);
    json_key(json_, "time"), time(followed.wall_time);
    json_key(json_, "kind"), json_text(json_, to_string(followed.kind));
    if (followed.pid > 0) json_key(json_, "pid"), json_.Int(followed.pid);
    json_key(json_, "file"), json_text(json_, followed.file);
    if (followed.error.empty()) {
      json_key(json_, "probes"), json_.Uint64(followed.probes);
      json_key(json_, "sites"), json_.Uint64(followed.sites);
      json_key(json_, "attached"), json_.Uint64(followed.attached);
      json_key(json_, "after_ns"), json_.Uint64(followed.after_ns);
    } else {
      json_key(json_, "error"), json_text(json_, followed.error);
    }
    json_.EndObject();
    put_line();
  }

  void write_summary(const SessionSummary& summary) override {
    json_.Reset(object_);
    json_.StartObject();
    head("summary");
    sampled();
    if (question_.limits.max_rate > 0) json_key(json_, "max_rate"), json_.Uint(question_.limits.max_rate);
    if (summary.overhead) write_overhead(*summary.overhead);
    counts(summary.total());
    missed(summary.missed);
    if (summary.shielded > 0) json_key(json_, "shielded"), json_.Uint64(summary.shielded);
    if (summary.started) write_started(*summary.started);
    json_key(json_, "probes"), json_.StartArray();
    for (std::size_t i = 0; i < summary.probes.size(); ++i) {
      if (plan().probes[Index<PlannedProbe>(i)].span) continue;  // the accounts are those of its ends
      json_.StartObject();
      json_key(json_, "probe"), json_text(json_, tree_.names()[i]);
      counts(summary.probes[i]);
      missed(summary.probes[i].missed);
      // A kernel function has one signature; the sites of a file's probe may differ, and usdt-list has them.
      if (!plan().probes[Index<PlannedProbe>(i)].file && args_of_[i]) types(*args_of_[i]);
      json_.EndObject();
    }
    json_.EndArray();
    json_key(json_, "skipped"), json_.StartArray();
    for (const SkippedSite& site : summary.skipped) {
      json_.StartObject();
      json_key(json_, "probe"), json_text(json_, tree_.names()[site.probe.value]);
      json_key(json_, "pc"), json_text_or_null(json_, pc_text(site.pc));
      json_key(json_, "reason"), json_text(json_, site.reason);
      json_.EndObject();
    }
    json_.EndArray();
    changed(summary.changed);
    if (!summary.cut.empty()) json_key(json_, "cut"), json_text(json_, summary.cut);
    json_.EndObject();
    put_line();
  }

 private:
  void changed(const std::vector<FileChange>& changes) {
    json_key(json_, "changed"), json_.StartArray();
    for (const FileChange& change : changes) {
      json_.StartObject();
      json_key(json_, "file"), json_text(json_, plan().files[change.file].target.path.native());
      json_key(json_, "change"), json_text(json_, to_string(change.kind));
      json_key(json_, "let_go"), json_.Uint64(change.let_go);
      json_.EndObject();
    }
    json_.EndArray();
  }

  void put_line() {
    out_.json({object_.GetString(), object_.GetSize()});
    object_.Clear();
  }

  void missed(std::optional<std::uint64_t> hits) {
    json_key(json_, "missed"), hits ? json_.Uint64(*hits) : json_.Null();
  }

  void head(std::string_view type) {
    json_key(json_, "v"), json_.Uint(1);
    json_key(json_, "type"), json_text(json_, type);
    if (!question_.name.empty()) json_key(json_, "question"), json_text(json_, question_.name);
  }

  /// Writes the sample rate where what follows is estimated.
  void sampled() {
    if (question_.limits.sample > 1) json_key(json_, "sampled"), json_.Uint(question_.limits.sample);
  }

  void weight(double weight) {
    json_key(json_, "weight");
    const auto whole = static_cast<std::uint64_t>(weight);
    static_cast<double>(whole) == weight ? json_.Uint64(whole) : json_.Double(weight);
  }

  /// Writes the overhead so far, where --max-overhead limits it.
  void write_started(const StartedProcesses& started) {
    json_key(json_, "started"), json_.StartObject();
    json_key(json_, "attached"), json_.Uint64(started.attached);
    json_key(json_, "too_short"), json_.Uint64(started.too_short);
    json_key(json_, "refused"), json_.Uint64(started.refused);
    json_.EndObject();
  }

  void write_overhead(const Overhead& overhead) {
    json_key(json_, "overhead"), json_.StartObject();
    json_key(json_, "allowed_percent"), json_.Double(overhead.allowed * 100);
    json_key(json_, "caused_percent"), json_.Double(overhead.caused * 100);
    json_key(json_, "of"), json_text(json_, overhead.of_processors ? "processes" : "one processor");
    json_key(json_, "looked_at"), json_.Double(overhead.looked_at);
    json_key(json_, "own_share"), json_.Double(overhead.own_share);
    json_key(json_, "windows"), json_.Uint64(overhead.windows);
    json_key(json_, "looked_for_ns"), json_.Int64(overhead.looked_for.count());
    json_key(json_, "lasted_ns"), json_.Int64(overhead.lasted.count());
    json_key(json_, "hit_ns"), json_.Int64(overhead.of_hit.count());
    json_key(json_, "clocked"), json_.Bool(overhead.clocked);
    if (!overhead.trouble.empty()) json_key(json_, "error"), json_text(json_, overhead.trouble);
    json_.EndObject();
  }

  void counts(const Account& counts) {
    json_key(json_, "events"), json_.Uint64(counts.delivered);
    json_key(json_, "hits"), json_.Uint64(counts.hits);
    reasons(counts, {CountRole::left_out, CountRole::estimate});
    json_key(json_, "lost"), json_.StartObject();
    reasons(counts, {CountRole::lost});
    json_.EndObject();
    reasons(counts, {CountRole::pairing});
  }

  /// The numbers of these roles, as far as a question of this kind has them.
  void reasons(const Account& counts, std::initializer_list<CountRole> roles) {
    for (const CountInfo& count : v1::counts()) {
      const auto told = tell_count(count, counts, plan().spans.has_value());
      if (!told || std::ranges::find(roles, told->role) == roles.end()) continue;
      const bool is_there = told->value > 0 && (count.comes_of & kIfAny) != 0;
      if (!is_there && count.comes_of != 0 && (count.comes_of & causes_) == 0) continue;
      json_key(json_, told->name), json_.Uint64(told->value);
    }
  }

  /// RFC 3339, UTC.
  void time(std::int64_t wall) {
    const std::time_t second = wall / 1'000'000'000;
    if (second != second_) {
      second_ = second;
      std::tm utc{};
      ::gmtime_r(&second, &utc);
      day_and_second_ = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", utc.tm_year + 1900, utc.tm_mon + 1,
                                    utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
    }
    json_text(json_, fmt::format("{}.{:09}Z", day_and_second_, wall % 1'000'000'000));
  }

  void args(const Event& event) {
    values_.truncated.clear();
    json_.StartArray();
    const PrintList& list = printed_.of(event.site());
    if (list.empty()) unasked_of(event, false);
    for (std::size_t i = 0; i < list.size(); ++i) {
      values_.position = static_cast<unsigned>(i);
      tree_.item(event, list[i], i);
    }
    json_.EndArray();
    if (!event.site().span || !list.empty()) return;
    json_key(json_, "end_args"), json_.StartArray();
    unasked_of(event, true);
    json_.EndArray();
  }

  /// The arguments of one end of a span, or of another hit.
  void unasked_of(const Event& event, bool end) {
    for (std::size_t n = 0; n < event.arg_count(); ++n) {
      const Arg& arg = event.arg_info(n);
      if (arg.of_end == end && !arg.result && !arg.derived) unasked(event, n);
    }
  }

  /// Its number among those that are shown: of a span's end they are counted on behind those of the beginning.
  static unsigned number_of(const Event& event, std::size_t n) {
    if (!event.arg_info(n).of_end) return static_cast<unsigned>(n);
    unsigned before = 0;
    for (std::size_t i = 0; i < n; ++i) before += event.arg_info(i).derived || event.arg_info(i).result ? 0 : 1;
    return before;
  }

  void unasked(const Event& event, std::size_t n) {
    values_.position = number_of(event, n);
    tree_.unasked(event, n);
  }

  /// Writes the texts that numbers among the arguments plainly point to.
  void texts(const Event& event) {
    if (!printed_.of(event.site()).empty()) return;
    bool any = false;
    for (std::size_t n = 0; n < event.arg_count(); ++n) {
      if (event.arg_info(n).derived) continue;
      const auto text = event.arg_info(n).type.kind == TypeKind::text
                            ? std::nullopt
                            : unasked_text(plan(), event, n, question_.values.likely_texts.value_or(false));
      if (!text) continue;
      if (!std::exchange(any, true)) json_key(json_, "texts"), json_.StartObject();
      values_.position = number_of(event, n);
      json_key(json_, fmt::format("{}", values_.position)), tree_.text(*text);
    }
    if (any) json_.EndObject();
  }

  /// Writes the names that numbers among the values have: those of enums, and those that providers and questions give.
  void names(const Event& event) {
    bool any = false;
    const auto name = [&](unsigned number, const Arg& arg, const Value& value) {
      const bool has_names = arg.declaration && !arg.declaration->enumerators.empty();
      if (!has_names || arg.declaration->meaning == kTypeMeaning) return;  // which is written in place of its number
      const std::string_view word = name_of_number(arg, value);
      if (word.empty()) return;
      if (!std::exchange(any, true)) json_key(json_, "names"), json_.StartObject();
      json_key(json_, fmt::format("{}", number)), json_text(json_, word);
    };
    const PrintList& list = printed_.of(event.site());
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].form != PrintItem::Form::value) continue;
      const auto number = static_cast<unsigned>(i);
      const auto position = tree_.columns().position(event, i);
      const Arg* const called = tree_.columns().called(event, i);
      if (const auto made = tree_.columns().computed(event, i))
        name(number, made->arg, made->value);
      else if (position)
        name(number, called ? *called : event.arg_info(*position), event.value(*position));
    }
    for (std::size_t n = 0; list.empty() && n < event.arg_count(); ++n) {
      const Arg& arg = event.arg_info(n);
      if (!arg.derived && !is_to_come(plan(), question_.view, arg)) name(number_of(event, n), arg, event.value(n));
    }
    if (any) json_.EndObject();
  }

  /// The end of a call of a kernel function.
  void returned(const Event& event) {
    for (std::size_t n = 0; printed_.of(event.site()).empty() && n < event.arg_count(); ++n) {
      const Arg& arg = event.arg_info(n);
      if (!arg.result || arg.derived || is_to_come(plan(), question_.view, arg)) continue;
      json_key(json_, "return");
      unasked(event, n);
    }
    if (event.duration() > 0) json_key(json_, "duration_ns"), json_.Uint64(event.duration());
  }

  void stack(const Event& event) {
    if (!stacks_ || event.probe().file) return;
    json_key(json_, "kstack");
    const auto& stack = around_.kernel_stack();
    if (!stack) return tree_.error(stack.error().message);
    write_frames(json_, *stack);
  }

  void user_stack() {
    if (!user_stacks_) return;
    json_key(json_, "ustack");
    const auto& stack = around_.user_stack();
    if (!stack) return tree_.error(stack.error().message);
    write_frames(json_, *stack);
    if (stack->end != FrameIssue::none) json_key(json_, "ustack_end"), json_text(json_, to_string(stack->end));
  }

  /// Names and types of a kernel function's arguments.
  void types(const std::vector<Arg>& all) {
    json_key(json_, "args"), json_.StartArray();
    for (const Arg& arg : all)
      if (!arg.result && !arg.derived) type(arg);
    json_.EndArray();
    for (const Arg& arg : all) {
      if (!arg.result || arg.derived) continue;
      json_key(json_, "return");
      type(arg);
    }
  }

  void type(const Arg& arg) {
    json_.StartObject();
    if (!arg.result) json_key(json_, "name"), json_text(json_, arg.name());
    json_key(json_, "type"), json_text_or_null(json_, arg.c_type());
    json_.EndObject();
  }

  /// Empty: not known, or a tracepoint.
  static std::string pc_text(std::optional<VirtAddr> pc) {
    return pc ? fmt::format("{:#x}", pc->value) : std::string();
  }

  const Printed& printed_;
  bool stacks_;
  bool user_stacks_;
  const Question& question_;
  std::uint16_t causes_ = 0;                      ///< count_causes()
  std::vector<const std::vector<Arg>*> args_of_;  ///< by probe; null: none of its sites is attached
  std::vector<std::string> pcs_;
  std::time_t second_ = -1;
  std::string day_and_second_;  ///< "2026-11-22T01:02:03"
  rapidjson::StringBuffer object_;
  io::JsonWriter json_;
  JsonValues values_;
  ValueTree<JsonValues> tree_;
};

}  // namespace

std::unique_ptr<Output> make_json_output(const AnswerStart& start, const OutputPlace& place) {
  return std::make_unique<JsonOutput>(start, place);
}

}  // namespace usdt::exports
