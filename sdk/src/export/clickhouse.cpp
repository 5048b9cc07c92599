// SPDX-License-Identifier: BSD-2-Clause
// Answers for ClickHouse: events and spans, the rows of tables, and the ledger, as rows over HTTP.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "export/batch_output.hpp"
#include "export/clickhouse_json.hpp"
#include "export/clickhouse_place.hpp"
#include "export/clickhouse_rows.hpp"
#include "export/formats.hpp"
#include "export/service_identity.hpp"
#include "export/value_tree.hpp"
#include "io/escape.hpp"
#include "proc/cgroup_names.hpp"

namespace usdt::exports {
namespace {

using clickhouse::Kind;
using clickhouse::Label;
using clickhouse::Look;
using clickhouse::Source;
using clickhouse::ValueMaps;

constexpr std::size_t kMostRows = 50'000, kMostRowBytes = 4 << 20;  ///< of a batch
constexpr std::size_t kMostRowBytesForJson = kMostRowBytes / 3;     ///< of one whose rows are to be lines of JSON

/// Rows of one table that wait to be sent.
struct RowBatch {
  std::string_view table;
  std::string header = {};  ///< the names and types of its columns
  std::string rows = {};    ///< behind the header
  std::size_t count = 0;
  std::size_t most_bytes = 0;              ///< that any has had
  std::uint64_t number = 0;                ///< of the batch, from 1 on over all tables
  std::vector<std::uint32_t> probes = {};  ///< of each that is an event
  std::string constants = {};              ///< columns that all of them have
};

/// The boot of this machine, by which the kernel tells it from others.
std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string line;
  std::getline(file, line);
  return line;
}

std::uint64_t random_number() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

/// Returns a text as UTF-8, which `own` has where that is another one.
std::string_view utf8_of(std::string_view text, std::string& own) {
  if (io::is_valid_utf8(text)) return text;
  own = io::valid_utf8(text);
  return own;
}

ServiceIdentity in_utf8(ServiceIdentity identity) {
  for (std::string* text : {&identity.host, &identity.service, &identity.version, &identity.container})
    *text = io::valid_utf8(*text);
  return identity;
}

std::int64_t now() {
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

class ClickHouseOutput final : public BatchOutput {
 public:
  ClickHouseOutput(const AnswerStart& start, const OutputPlace& place)
      : BatchOutput(start, place),
        question_(start.question),
        place_(*clickhouse::parse_place(place.shared.options.file)),  // as the poster's was
        identity_(in_utf8(identity_of_environment())),
        most_bytes_(place_.encoding == clickhouse::Encoding::json ? kMostRowBytesForJson : kMostRowBytes),
        is_live_(start.layout != nullptr),
        values_(maps_, start, unreadable_) {
    trace(start.plan, start.plan.probes.size());
    row_.values = &maps_;
    events_.header = clickhouse::header_of(row_, source_);
    tables_.header = clickhouse::header_of(clickhouse::TableRow(), looked_, source_);
    ledger_.header = clickhouse::header_of(clickhouse::LedgerRow(), looked_, source_);
  }

  void slowest(const SlowestEvents& events, bool last) override {
    if (!last) return;
    for (const KeptEvent& kept : events.events()) {
      around_.begin(kept);
      event(*kept.event);
    }
  }
  void look(const ArrangedTable& look) override { take(look); }
  void table(const ArrangedTable& look) override { take(look); }

 protected:
  void look_up(const AttachPlan& plan, std::size_t probes) override;
  void add_event(const Event& event) override;
  void send_rest() override { send_rows(events_); }
  void send_numbers(const SessionSummary& summary, bool last) override;
  std::string_view unless() const override {
    return ", where its table has no deduplication window (queries/doubles.sql finds it)";
  }
  std::string_view in_older_form() const override { return "rows are sent as JSONEachRow from now on"; }

 private:
  /// Adds a row to those of its kind. `shared`: columns that all of a batch have, beside those of their source.
  template <class Row, class... Shared>
  void add_row(RowBatch& batch, const Row& row, const Shared&... shared);
  void take_container(const Event& event);
  void take_context(const Event& event);
  void take_attributes(const Event& event);
  void take_ender(const SpanEnder& thread);
  void take_stacks(const Event& event);
  void take(const ArrangedTable& look);
  void send_table(bool last);
  void send_rows(RowBatch& batch);
  void add_count(const Look& look, std::string_view probe, const ToldCount& count);
  [[nodiscard]] Label service_of_numbers() const { return {service_names_[services_.of_numbers()]}; }
  [[nodiscard]] Look look_now(bool last) const {
    return {.time = {now()}, .last = last, .service = service_of_numbers(), .container = {identity_.container}};
  }

  const Question& question_;
  clickhouse::Place place_;
  ServiceIdentity identity_;
  std::size_t most_bytes_;
  bool is_live_;  ///< cgroups have the numbers that events have
  proc::CgroupNames cgroups_ = proc::CgroupNames();
  std::string boot_ = boot_id();
  std::uint64_t trace_ = random_number();
  std::string name_ = io::valid_utf8(question_.name);
  ServiceNames services_ = ServiceNames(identity_.service);
  std::vector<std::string> service_names_;  ///< as they are sent, by number
  Source source_{
      .version = {identity_.version}, .host = {identity_.host}, .question = {name_}, .boot = {boot_}, .trace = trace_};
  ValueMaps maps_;
  ValueTree<ValueMaps> values_;
  clickhouse::EventRow row_;         ///< the last one
  std::string comm_, container_;     ///< those of it that were no UTF-8
  std::vector<std::string> probes_;  ///< their names
  RowBatch events_{"usdt_events"}, tables_{"usdt_tables"}, ledger_{"usdt_ledger"};
  std::vector<clickhouse::TableRow> table_rows_;  ///< of the last look
  Look looked_ = {};                              ///< and when that was
  std::uint64_t rows_ = 0, batches_ = 0;          ///< of events, of all: so far, those that were lost among them
};

/// The kind of number that a row of the ledger is.
std::string_view role_text(CountRole role) {
  switch (role) {
    case CountRole::all:
      return "hits";
    case CountRole::events:
      return "events";
    case CountRole::lost:
      return "lost";
    case CountRole::left_out:
      return "left_out";
    case CountRole::pairing:
      return "pairing";
    case CountRole::estimate:
    case CountRole::part:
      break;
  }
  return "other";
}

void ClickHouseOutput::look_up(const AttachPlan& plan, std::size_t /*probes*/) {
  values_.look_up(plan);
  probes_.clear();
  for (const std::string& name : values_.names()) probes_.push_back(io::valid_utf8(name));
  services_.look_up(plan);
  service_names_.clear();
  for (const std::string& name : services_.all()) service_names_.push_back(io::valid_utf8(name));
}

template <class Row, class... Shared>
void ClickHouseOutput::add_row(RowBatch& batch, const Row& row, const Shared&... shared) {
  if (batch.count++ == 0) {
    source_.seq = batch.number = ++batches_;
    batch.constants.clear();
    (clickhouse::append_values(batch.constants, shared), ...);
    clickhouse::append_values(batch.constants, source_);
    batch.rows.reserve(batch.most_bytes);
    batch.rows += batch.header;
  }
  clickhouse::append_values(batch.rows, row);
  batch.rows += batch.constants;
  if (batch.count >= kMostRows || batch.rows.size() >= most_bytes_) send_rows(batch);
}

void ClickHouseOutput::add_event(const Event& event) {
  const bool lasts = event.duration() > 0 || event.site().span;
  ++rows_;
  events_.probes.push_back(event.site().probe.value);
  row_.time = {wall_time(event)};
  row_.duration = event.duration();
  row_.kind = question_.view.in_flight ? Kind::in_flight : lasts ? Kind::span : Kind::hit;
  row_.probe = {probes_[event.site().probe.value]};
  row_.service = {service_names_[services_.of_probe(event.site().probe)]};
  row_.pid = std::uint32_t(event.pid());
  row_.tid = std::uint32_t(event.tid());
  row_.cpu = static_cast<std::uint16_t>(event.cpu());
  row_.comm = {utf8_of(event.comm(), comm_)};
  row_.weight = static_cast<float>(event.weight());
  take_container(event);
  take_context(event);
  take_attributes(event);
  if (const auto ender = event.ended_by()) take_ender(*ender);
  values_.each(event, question_, [this](const std::string& name) { maps_.begin(name); });
  take_stacks(event);
  add_row(events_, row_);
  maps_.clear();
}

/// A container that the environment names, for all of them, goes before.
void ClickHouseOutput::take_container(const Event& event) {
  row_.container = {identity_.container};
  const auto owner = event.owner();
  const proc::CgroupName* const cgroup = owner && is_live_ ? cgroups_.find(owner->cgroup) : nullptr;
  if (cgroup == nullptr) return;
  if (identity_.container.empty()) row_.container = {utf8_of(cgroup->container, container_)};
  maps_.begin("usdt.cgroup");
  maps_.text(cgroup->path);
  if (cgroup->pod.empty()) return;
  maps_.begin("k8s.pod.uid");
  maps_.text(cgroup->pod);
}

void ClickHouseOutput::take_context(const Event& event) {
  const auto context = event.layout().contexts ? event.thread_context() : Result<std::optional<ThreadContext>>();
  if (!context || !*context) return;
  for (const HitField field : {HitField::trace_id, HitField::span_id})
    maps_.begin(to_string(field)), maps_.text(*context_text(event, field));
}

void ClickHouseOutput::take_attributes(const Event& event) {
  const auto attributes = event.layout().attributes ? event.thread_attributes() : Result<ThreadAttributes>();
  if (!attributes) return;
  for (const ThreadAttribute& each : attributes->known) {
    maps_.begin(fmt::format("trace_attribute.{}", each.key));
    maps_.text(each.text);
  }
}

void ClickHouseOutput::take_ender(const SpanEnder& thread) {
  maps_.begin("usdt.ended_by.pid"), maps_.whole(thread.pid);
  maps_.begin("usdt.ended_by.tid"), maps_.whole(thread.tid);
  maps_.begin("usdt.ended_by.comm"), maps_.text(thread.comm);
}

void ClickHouseOutput::take_stacks(const Event& event) {
  const AskedStacks& asked = question_.stacks;
  const auto take = [&](std::string_view name, clickhouse::Array<clickhouse::Label>& frames,
                        const Result<Stack>& stack) {
    if (stack) return clickhouse::add_frames(frames, *stack);
    maps_.begin(name);
    values_.error(stack.error().message);
  };
  row_.ustack.clear(), row_.kstack.clear();
  if (asked.user_depth > 0 && !asked.user_in_lists) take("ustack", row_.ustack, around_.user_stack());
  if (asked.kernel_depth > 0 && !asked.kernel_in_lists && !event.probe().file)
    take("kstack", row_.kstack, around_.kernel_stack());
}

void ClickHouseOutput::take(const ArrangedTable& look) {
  looked_ = look_now(false);
  table_rows_.clear();
  for (const ArrangedRow& each : look.rows) {
    if (table_rows_.size() >= question_.view.top) break;
    table_rows_.push_back(clickhouse::table_row(plan(), question_.view, look.table, each));
  }
}

void ClickHouseOutput::send_table(bool last) {
  looked_.last = last;
  looked_.service = service_of_numbers();
  for (const clickhouse::TableRow& each : table_rows_) add_row(tables_, each, looked_);
  send_rows(tables_);
}

void ClickHouseOutput::add_count(const Look& look, std::string_view probe, const ToldCount& count) {
  add_row(ledger_, clickhouse::LedgerRow{{probe}, {role_text(count.role)}, {count.name}, count.value}, look);
}

void ClickHouseOutput::send_numbers(const SessionSummary& summary, bool last) {
  send_table(last);
  const Look look = look_now(last);
  for (std::size_t n = 0; n < summary.probes.size(); ++n) {
    if (plan().probes[Index<PlannedProbe>(n)].span) continue;  // the accounts are those of its ends
    const Account& account = summary.probes[n];
    const std::string& probe = probes_[n];
    add_count(look, probe, {"hits", CountRole::all, account.hits});
    add_count(look, probe, {"events", CountRole::events, account.delivered});
    for (const CountInfo& count : counts()) {
      const auto told = tell_count(count, account, plan().spans.has_value());
      constexpr std::array kRoles{CountRole::lost, CountRole::left_out, CountRole::pairing};
      const bool is_told = told && std::ranges::find(kRoles, told->role) != kRoles.end();
      if (is_told && told->value > 0) add_count(look, probe, *told);
    }
    if (account.missed.value_or(0) > 0) add_count(look, probe, {"missed", CountRole::estimate, *account.missed});
  }
  add_count(look, "", {"rows", CountRole::part, rows_});
  // One more, if this is no part of it: the batch of the ledger has a number, too.
  add_count(look, "", {"batches", CountRole::part, batches_ + (ledger_.count == 0 ? 1 : 0)});
  send_rows(ledger_);
}

/// Rows that the server is to have as JSON are made of the others, which cannot fail.
void ClickHouseOutput::send_rows(RowBatch& batch) {
  if (std::exchange(batch.count, 0) == 0) return;
  batch.most_bytes = std::max(batch.most_bytes, batch.rows.size());
  const std::string token = fmt::format("{}-{}-{}-{}", identity_.host, boot_, trace_, batch.number);
  std::string rows = std::exchange(batch.rows, {});
  if (place_.encoding == clickhouse::Encoding::json) rows = clickhouse::json_rows(rows).value_or(std::string());
  send(clickhouse::insert_path(place_, batch.table, clickhouse::escaped(token)),
       clickhouse::media_type(place_.encoding), std::move(rows), std::exchange(batch.probes, {}));
}

}  // namespace

std::unique_ptr<Output> make_clickhouse_output(const AnswerStart& start, const OutputPlace& place) {
  return std::make_unique<ClickHouseOutput>(start, place);
}

}  // namespace usdt::exports
