// SPDX-License-Identifier: BSD-2-Clause
// Answers for OpenTelemetry's collectors and what else takes its protocol over HTTP: calls and spans as spans, hits as
// log records, tables and the ledger as metrics, in protobuf or in JSON.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "export/batch_output.hpp"
#include "export/formats.hpp"
#include "export/otlp_fields.hpp"
#include "export/otlp_json.hpp"
#include "export/otlp_metrics.hpp"
#include "export/otlp_place.hpp"
#include "export/otlp_values.hpp"
#include "export/service_identity.hpp"
#include "export/value_tree.hpp"
#include "io/escape.hpp"
#include "proc/cgroup_names.hpp"

namespace usdt::exports {
namespace {

using otlp::AttributeWriter;
using otlp::Export;
using otlp::LogRecord;
using otlp::OfResource;
using otlp::OfScope;
using otlp::Span;
using protozero::pbf_builder;

constexpr std::string_view kOtlpProtobuf = "application/x-protobuf", kOtlpJson = "application/json";
constexpr std::size_t kMostItems = 512, kMostBytes = 1 << 20;  ///< of a batch

/// Items of one kind that wait to be sent.
struct Filling {
  otlp::Signal signal;
  std::map<std::size_t, std::string> items = {};  ///< by number of their service, encoded as fields of a scope
  std::size_t bytes = 0;
  std::vector<std::uint32_t> probes = {};  ///< of each that is an event

  void add(std::size_t service, const std::string& item) {
    pbf_builder<OfScope>(items[service]).add_message(OfScope::item, item);
    bytes += item.size();
  }
  [[nodiscard]] bool is_full() const noexcept { return probes.size() >= kMostItems || bytes >= kMostBytes; }
};

/// Says what the answers about a service are about: the encoded Resource.
std::string encode_resource(const ServiceIdentity& identity, std::string_view service) {
  AttributeWriter attributes;
  attributes.add("service.name", service);
  if (!identity.version.empty()) attributes.add("service.version", identity.version);
  attributes.add("host.name", identity.host);
  if (!identity.container.empty()) attributes.add("container.id", identity.container);
  attributes.add("os.type", "linux");
  std::string encoded;
  pbf_builder<otlp::Resource> resource(encoded);
  attributes.take(resource, otlp::Resource::attribute);
  return encoded;
}

/// Numbers that nobody else draws.
class RandomIds {
 public:
  template <std::size_t kBytes>
  [[nodiscard]] std::string next() {
    std::string id(kBytes, '\0');
    for (std::size_t at = 0; at < kBytes; at += sizeof(std::uint64_t)) {
      const std::uint64_t part = random_() | 1;  // an id is not 0
      std::memcpy(id.data() + at, &part, sizeof part);
    }
    return id;
  }

 private:
  static std::mt19937_64 seeded() {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device(), device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }
  std::mt19937_64 random_ = seeded();
};

class OtlpOutput final : public BatchOutput {
 public:
  OtlpOutput(const AnswerStart& start, const OutputPlace& place)
      : BatchOutput(start, place),
        question_(start.question),
        is_json_(otlp::parse_place(place.shared.options.file)->encoding ==
                 otlp::Encoding::json),  // as the poster's was
        metrics_(start.question),
        is_live_(start.layout != nullptr),
        values_(attributes_, start, unreadable_) {
    trace(start.plan, start.plan.probes.size());
  }

  void slowest(const SlowestEvents& events, bool last) override {
    if (!last) return;
    for (const KeptEvent& kept : events.events()) {
      around_.begin(kept);
      event(*kept.event);
    }
  }
  void look(const ArrangedTable& look) override { metrics_.take(plan(), look); }
  void table(const ArrangedTable& look) override { metrics_.take(plan(), look); }

 protected:
  void look_up(const AttachPlan& plan, std::size_t /*probes*/) override {
    values_.look_up(plan);
    services_.look_up(plan);
    while (resources_.size() < services_.all().size())
      resources_.push_back(encode_resource(identity_, services_.all()[resources_.size()]));
    event_names_.clear();
    for (const PlannedProbe& probe : plan.probes)
      event_names_.push_back(io::valid_utf8(fmt::format("{}:{}", probe.provider, probe.name)));
  }

  void add_event(const Event& event) override {
    const bool lasts = event.duration() > 0 || event.site().span;
    Filling& filling = lasts && !question_.view.in_flight ? spans_ : logs_;
    filling.add(services_.of_probe(event.site().probe), &filling == &spans_ ? encode_span(event) : encode_log(event));
    filling.probes.push_back(event.site().probe.value);
    if (filling.is_full()) send_items(filling);
  }

  void send_rest() override {
    send_items(spans_);
    send_items(logs_);
  }

  void send_numbers(const SessionSummary& summary, bool last) override;

 private:
  std::string encode_span(const Event& event);
  std::string encode_log(const Event& event);
  void add_facts(const Event& event);
  void add_thread_attributes(const Event& event);
  void add_container(const Event& event);
  void send_items(Filling& filling);
  [[nodiscard]] static std::uint64_t time_of_day() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
  }

  const Question& question_;
  bool is_json_;
  metrics::QuestionMetrics metrics_;
  /// By probe, the same for those of all files: collectors group by them. The attribute "usdt.probe" has the file.
  std::vector<std::string> event_names_;
  bool is_live_;  ///< cgroups have the numbers that events have
  proc::CgroupNames cgroups_ = proc::CgroupNames();
  AttributeWriter attributes_;
  ValueTree<AttributeWriter> values_;
  ServiceIdentity identity_ = identity_of_environment();
  ServiceNames services_ = ServiceNames(identity_.service);
  std::vector<std::string> resources_;  ///< of services, by number
  Filling spans_{otlp::Signal::traces}, logs_{otlp::Signal::logs}, numbers_{otlp::Signal::metrics};
  RandomIds ids_;
  std::uint64_t began_ = time_of_day();
};

/// By semantic conventions of OpenTelemetry, where there are any.
void OtlpOutput::add_container(const Event& event) {
  const auto owner = event.owner();
  const proc::CgroupName* const cgroup = owner && is_live_ ? cgroups_.find(owner->cgroup) : nullptr;
  if (cgroup == nullptr) return;
  attributes_.add("usdt.cgroup", cgroup->path);
  if (!cgroup->container.empty()) attributes_.add("container.id", cgroup->container);
  if (!cgroup->pod.empty()) attributes_.add("k8s.pod.uid", cgroup->pod);
}

/// Nothing, too, where it is not known.
std::optional<ThreadContext> context_of(const Event& event) {
  const auto context = event.layout().contexts ? event.thread_context() : Result<std::optional<ThreadContext>>();
  return context ? *context : std::nullopt;
}

template <std::size_t size>
std::string bytes_of(const std::array<std::uint8_t, size>& bytes) {
  return {bytes.begin(), bytes.end()};
}

/// What a span and a log record have alike.
void OtlpOutput::add_facts(const Event& event) {
  add_container(event);
  attributes_.add("usdt.probe", values_.names()[event.site().probe.value]);
  attributes_.add("process.pid", std::int64_t{event.pid()});
  attributes_.add("thread.id", std::int64_t{event.tid()});
  attributes_.add("thread.name", event.comm());
  if (const auto ender = event.ended_by()) {
    attributes_.add("usdt.ended_by.pid", std::int64_t{ender->pid});
    attributes_.add("usdt.ended_by.tid", std::int64_t{ender->tid});
    attributes_.add("usdt.ended_by.comm", ender->comm);
  }
  if (event.weight() != 1) {
    attributes_.begin("usdt.weight");
    attributes_.real(event.weight());
  }
  values_.each(event, question_, [this](const std::string& name) { attributes_.begin(name); });
  const AskedStacks& asked = question_.stacks;
  const auto add = [&](std::string_view name, const Result<Stack>& stack) {
    attributes_.begin(name);
    stack ? attributes_.frames(*stack) : values_.error(stack.error().message);
  };
  if (asked.user_depth > 0 && !asked.user_in_lists) add("code.stacktrace", around_.user_stack());
  if (asked.kernel_depth > 0 && !asked.kernel_in_lists && !event.probe().file)
    add("usdt.kstack", around_.kernel_stack());
  add_thread_attributes(event);
}

/// They have the names that the process gives them, but for those that something else has here.
void OtlpOutput::add_thread_attributes(const Event& event) {
  const auto attributes = event.layout().attributes ? event.thread_attributes() : Result<ThreadAttributes>();
  if (!attributes) return;
  for (const ThreadAttribute& each : attributes->known)
    if (!attributes_.has(each.key)) attributes_.add(each.key, each.text);
}

std::string OtlpOutput::encode_span(const Event& event) {
  add_facts(event);
  const auto start = static_cast<std::uint64_t>(wall_time(event));
  std::string encoded;
  pbf_builder<Span> span(encoded);
  // It is within the span that the thread works for, if it works for one.
  const auto context = context_of(event);
  span.add_bytes(Span::trace_id, context ? bytes_of(context->trace_id) : ids_.next<16>());
  span.add_bytes(Span::span_id, ids_.next<8>());
  if (context) span.add_bytes(Span::parent, bytes_of(context->span_id));
  span.add_string(Span::name, event_names_[event.site().probe.value]);
  span.add_enum(Span::kind, otlp::kSpanInternal);
  span.add_fixed64(Span::start, start);
  span.add_fixed64(Span::end, start + event.duration());
  attributes_.take(span, Span::attribute);
  return encoded;
}

std::string OtlpOutput::encode_log(const Event& event) {
  add_facts(event);
  std::string encoded;
  pbf_builder<LogRecord> log(encoded);
  log.add_fixed64(LogRecord::time, static_cast<std::uint64_t>(wall_time(event)));
  log.add_fixed64(LogRecord::observed, time_of_day());
  log.add_enum(LogRecord::severity, otlp::kSeverityInfo);
  attributes_.take(log, LogRecord::attribute);
  if (const auto context = context_of(event)) {
    log.add_fixed32(LogRecord::flags, context->flags);
    log.add_bytes(LogRecord::trace_id, bytes_of(context->trace_id));
    log.add_bytes(LogRecord::span_id, bytes_of(context->span_id));
  }
  log.add_string(LogRecord::event_name, event_names_[event.site().probe.value]);
  return encoded;
}

void OtlpOutput::send_items(Filling& filling) {
  if (filling.items.empty()) return;
  std::string scope, request;
  pbf_builder<otlp::Scope>(scope).add_string(otlp::Scope::name, "usdt");
  for (const auto& [service, items] : std::exchange(filling.items, {})) {
    std::string of_scope;
    pbf_builder<OfScope>(of_scope).add_message(OfScope::scope, scope);
    of_scope += items;
    pbf_builder<Export> all(request);
    pbf_builder<OfResource> of_resource(all, Export::of_resource);
    of_resource.add_message(OfResource::resource, resources_[service]);
    of_resource.add_message(OfResource::of_scope, of_scope);
  }
  filling.bytes = 0;
  if (is_json_) request = otlp::to_json(filling.signal, request);
  send(std::string(otlp::path_of(filling.signal)), is_json_ ? kOtlpJson : kOtlpProtobuf, std::move(request),
       std::exchange(filling.probes, {}));
}

void OtlpOutput::send_numbers(const SessionSummary& summary, bool /*last*/) {
  metrics_.take(plan(), summary);
  for (const std::string& metric : otlp::encode_metrics(metrics_.families(), {began_, time_of_day()})) {
    numbers_.add(services_.of_numbers(), metric);
    if (numbers_.is_full()) send_items(numbers_);
  }
  send_items(numbers_);
}

}  // namespace

std::unique_ptr<Output> make_otlp_output(const AnswerStart& start, const OutputPlace& place) {
  return std::make_unique<OtlpOutput>(start, place);
}

}  // namespace usdt::exports
