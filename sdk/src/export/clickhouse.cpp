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
#include "export/clickhouse_place.hpp"
#include "export/clickhouse_rows.hpp"
#include "export/formats.hpp"
#include "export/service_identity.hpp"
#include "export/value_tree.hpp"
#include "proc/cgroup_names.hpp"

namespace usdt::exports {
namespace {

using clickhouse::RowWriter;
using clickhouse::ValueMaps;

constexpr std::string_view kJson = "application/x-ndjson";
constexpr std::size_t kMostRows = 50'000, kMostRowBytes = 4 << 20;  ///< of a batch

/// Rows of one table that wait to be sent.
struct RowBatch {
  std::string_view table;
  std::string rows = {};
  std::size_t count = 0;
  std::size_t most_bytes = 0;              ///< that any has had
  std::uint64_t number = 0;                ///< of the batch, from 1 on over all tables
  std::vector<std::uint32_t> probes = {};  ///< of each that is an event
  std::string constants = {};              ///< columns that all of them have

  [[nodiscard]] bool is_full() const noexcept { return count >= kMostRows || rows.size() >= kMostRowBytes; }
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

/// When numbers were so.
struct Moment {
  std::int64_t time = 0;  ///< of day, ns
  bool last = false;      ///< there will be no others
};

Moment now(bool last) {
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(time).count(), last};
}

void write_moment(RowWriter& row, const Moment& moment) {
  row.number("time", moment.time);
  row.number("last", moment.last ? 1U : 0U);
}

class ClickHouseOutput final : public BatchOutput {
 public:
  ClickHouseOutput(const AnswerStart& start, const OutputPlace& place)
      : BatchOutput(start, place),
        question_(start.question),
        place_(*clickhouse::parse_place(place.shared.options.file)),  // as the poster's was
        identity_(identity_of(start.plan)),
        is_live_(start.layout != nullptr),
        values_(maps_, start, unreadable_) {
    trace(start.plan, start.plan.probes.size());
    std::string written = "{";
    RowWriter columns(written);
    // A column that is not there is empty.
    for (const auto& [name, value] :
         {std::pair("host", identity_.host), std::pair("service", identity_.service),
          std::pair("version", identity_.version), std::pair("container", identity_.container),
          std::pair("question", question_.name), std::pair("boot", boot_)})
      if (!value.empty()) columns.text(name, value);
    columns.number("trace", trace_);
    identity_columns_ = "," + written.substr(1);
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

 private:
  /// Begins a row, at the end of those of its kind.
  RowWriter begin_row(RowBatch& batch);
  void end_row(RowBatch& batch, RowWriter& row);
  void write_container(RowWriter& row, const Event& event);
  void write_stacks(RowWriter& row, const Event& event);
  void take(const ArrangedTable& look);
  void send_table(bool last);
  void send_rows(RowBatch& batch);
  void add_count(const Moment& moment, std::string_view probe, const ToldCount& count);

  const Question& question_;
  clickhouse::Place place_;
  ServiceIdentity identity_;
  bool is_live_;  ///< cgroups have the numbers that events have
  proc::CgroupNames cgroups_ = proc::CgroupNames();
  std::string boot_ = boot_id();
  std::uint64_t trace_ = random_number();
  ValueMaps maps_;
  ValueTree<ValueMaps> values_;
  std::vector<std::string> probes_;  ///< their names, as JSON
  std::string identity_columns_;     ///< written, with a comma before each
  RowBatch events_{"usdt_events"}, tables_{"usdt_tables"}, ledger_{"usdt_ledger"};
  std::vector<std::string> table_rows_;   ///< of the last look, without what all have
  Moment looked_ = {};                    ///< and when that was
  std::uint64_t rows_ = 0, batches_ = 0;  ///< of events, of all: so far, those that were lost among them
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
    case CountRole::estimate:
    case CountRole::pairing:
    case CountRole::part:
      break;
  }
  return "other";
}

void ClickHouseOutput::look_up(const AttachPlan& plan, std::size_t /*probes*/) {
  values_.look_up(plan);
  probes_.assign(values_.names().size(), {});
  for (std::size_t n = 0; n < probes_.size(); ++n) clickhouse::append_string(probes_[n], values_.names()[n]);
}

RowWriter ClickHouseOutput::begin_row(RowBatch& batch) {
  if (batch.count++ == 0) {
    batch.number = ++batches_;
    batch.rows.reserve(batch.most_bytes);
    batch.constants = fmt::format("{},\"seq\":{}", identity_columns_, batch.number);
  }
  RowWriter row(batch.rows);
  row.begin();
  return row;
}

void ClickHouseOutput::end_row(RowBatch& batch, RowWriter& row) {
  row.end(batch.constants);
  if (batch.is_full()) send_rows(batch);
}

void ClickHouseOutput::add_event(const Event& event) {
  const bool lasts = event.duration() > 0 || event.site().span;
  ++rows_;
  events_.probes.push_back(event.site().probe.value);
  RowWriter row = begin_row(events_);
  row.number("time", wall_time(event));
  if (event.duration() > 0) row.number("duration", event.duration());
  row.written("kind", question_.view.in_flight ? "\"in_flight\"" : lasts ? "\"span\"" : "\"hit\"");
  row.written("probe", probes_[event.site().probe.value]);
  row.number("pid", std::uint32_t(event.pid()));
  row.number("tid", std::uint32_t(event.tid()));
  row.number("cpu", std::uint32_t{event.cpu()});
  row.text("comm", event.comm());
  if (event.weight() != 1) row.real("weight", event.weight());
  write_container(row, event);
  values_.each(event, question_, [this](const std::string& name) { maps_.begin(name); });
  write_stacks(row, event);
  maps_.take(row);
  end_row(events_, row);
}

/// A container that the environment names, for all of them, goes before.
void ClickHouseOutput::write_container(RowWriter& row, const Event& event) {
  const auto owner = event.owner();
  const proc::CgroupName* const cgroup = owner && is_live_ ? cgroups_.find(owner->cgroup) : nullptr;
  if (cgroup == nullptr) return;
  if (identity_.container.empty() && !cgroup->container.empty()) row.text("container", cgroup->container);
  maps_.begin("usdt.cgroup");
  maps_.text(cgroup->path);
  if (cgroup->pod.empty()) return;
  maps_.begin("k8s.pod.uid");
  maps_.text(cgroup->pod);
}

void ClickHouseOutput::write_stacks(RowWriter& row, const Event& event) {
  const AskedStacks& asked = question_.stacks;
  const auto add = [&](std::string_view name, const Result<Stack>& stack) {
    if (stack) return row.frames(name, *stack);
    maps_.begin(name);
    values_.error(stack.error().message);
  };
  if (asked.user_depth > 0 && !asked.user_in_lists) add("ustack", around_.user_stack());
  if (asked.kernel_depth > 0 && !asked.kernel_in_lists && !event.probe().file) add("kstack", around_.kernel_stack());
}

void ClickHouseOutput::take(const ArrangedTable& look) {
  looked_ = now(false);
  table_rows_.clear();
  for (const ArrangedRow& each : look.rows) {
    if (table_rows_.size() >= question_.view.top) break;
    std::string text = "{";
    RowWriter row(text);
    clickhouse::write_table_row(row, plan(), question_.view, look.table, each);
    table_rows_.push_back(text.substr(1));
  }
}

void ClickHouseOutput::send_table(bool last) {
  looked_.last = last;
  for (const std::string& each : table_rows_) {
    RowWriter row = begin_row(tables_);
    write_moment(row, looked_);
    tables_.rows.append(",").append(each);
    end_row(tables_, row);
  }
  send_rows(tables_);
}

void ClickHouseOutput::add_count(const Moment& moment, std::string_view probe, const ToldCount& count) {
  RowWriter row = begin_row(ledger_);
  write_moment(row, moment);
  row.text("probe", probe);
  row.text("role", role_text(count.role));
  row.text("name", count.name);
  row.number("value", count.value);
  end_row(ledger_, row);
}

void ClickHouseOutput::send_numbers(const SessionSummary& summary, bool last) {
  send_table(last);
  const Moment moment = now(last);
  for (std::size_t n = 0; n < summary.probes.size(); ++n) {
    if (plan().probes[Index<PlannedProbe>(n)].span) continue;  // the accounts are those of its ends
    const Account& account = summary.probes[n];
    const std::string& probe = values_.names()[n];
    add_count(moment, probe, {"hits", CountRole::all, account.hits});
    add_count(moment, probe, {"events", CountRole::events, account.delivered});
    for (const CountInfo& count : counts()) {
      const auto told = tell_count(count, account, plan().spans.has_value());
      const bool is_loss = told && (told->role == CountRole::lost || told->role == CountRole::left_out);
      if (is_loss && told->value > 0) add_count(moment, probe, *told);
    }
    if (account.missed.value_or(0) > 0) add_count(moment, probe, {"missed", CountRole::estimate, *account.missed});
  }
  add_count(moment, "", {"rows", CountRole::part, rows_});
  // One more, if this is no part of it: the batch of the ledger has a number, too.
  add_count(moment, "", {"batches", CountRole::part, batches_ + (ledger_.count == 0 ? 1 : 0)});
  send_rows(ledger_);
}

void ClickHouseOutput::send_rows(RowBatch& batch) {
  if (std::exchange(batch.count, 0) == 0) return;
  batch.most_bytes = std::max(batch.most_bytes, batch.rows.size());
  const std::string token = fmt::format("{}-{}-{}-{}", identity_.host, boot_, trace_, batch.number);
  send(clickhouse::insert_path(place_, batch.table, clickhouse::escaped(token)), kJson, std::exchange(batch.rows, {}),
       std::exchange(batch.probes, {}));
}

}  // namespace

std::unique_ptr<Output> make_clickhouse_output(const AnswerStart& start, const OutputPlace& place) {
  return std::make_unique<ClickHouseOutput>(start, place);
}

}  // namespace usdt::exports
