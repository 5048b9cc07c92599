// SPDX-License-Identifier: BSD-2-Clause
// Metrics for Prometheus: a page that is served while the trace runs (SinkOptions::listen), a file that is replaced as
// a whole again and again, as node_exporter's textfile collector reads it, or text at the end.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "export/formats.hpp"
#include "export/metric_page.hpp"
#include "export/metrics.hpp"
#include "export/output.hpp"
#include "export/prometheus_text.hpp"
#include "io/replaced_file.hpp"

namespace usdt::exports {
namespace {

using prometheus::PageFormat;

class PrometheusOutput final : public Output {
 public:
  PrometheusOutput(const AnswerStart& start, const OutputPlace& place)
      : Output(start, place),
        metrics_(start.question),
        page_(*place.shared.metric_page),
        slot_(page_.add_slot(start.question.name)),
        is_served_(!place.shared.options.listen.empty()) {
    const std::string& file = place.shared.options.file;
    if (!is_served_ && !file.empty() && place.out.file()) file_.emplace(file);
    trace(start.plan, start.plan.probes.size());
  }

  ~PrometheusOutput() override { page_.remove_slot(slot_); }
  PrometheusOutput(const PrometheusOutput&) = delete;
  PrometheusOutput& operator=(const PrometheusOutput&) = delete;

  /// Accounts and tables have all there is to say about it; nothing is printed for it that there is to wait for.
  void event(const Event& event) override { ++kept_[event.site().probe.value]; }
  bool wants_table() const override { return is_due(); }
  void look(const ArrangedTable& look) override { metrics_.take(plan(), look); }
  void table(const ArrangedTable& look) override { metrics_.take(plan(), look); }
  bool wants_account() const override { return is_due(); }
  void account(const SessionSummary& summary) override {
    shown_ = Clock::now();
    show(summary);
  }
  void ending(const SessionSummary& summary) override {
    show(summary);
    if (failure_) give_up();
    if (!is_served_ && !file_ && page_.is_last(slot_)) print(write_page(*page_.families(), PageFormat::text));
  }
  /// Nothing comes through the stream of a page that is served, which threads share.
  [[nodiscard]] Flushed write_out(const io::Stream::Patience& patience) override {
    return is_served_ ? Flushed::all : Output::write_out(patience);
  }
  /// Events are nowhere else.
  void give_up() override {
    Output::give_up();
    for (std::size_t n = 0; n < kept_.size(); ++n) not_written_[n] += std::exchange(kept_[n], 0);
  }
  [[nodiscard]] std::optional<std::string> failure() const override { return failure_; }

 protected:
  void look_up(const AttachPlan& plan, std::size_t /*probes*/) override { kept_.resize(plan.probes.size()); }
  void write_event(const Event& /*event*/) override {}
  /// A notice says it.
  void write_followed(const Followed& /*followed*/) override {}
  void write_summary(const SessionSummary& summary) override { show(summary); }

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] bool is_due() const {
    constexpr std::chrono::seconds written{10};
    return is_served_ ? page_.is_asked(slot_) : file_ && Clock::now() - shown_ >= written;
  }

  /// Labels may hold anything, which programs are to have as it is.
  void print(const std::string& page) {
    out_.terminal().interactive ? out_.lines(page) : out_.bytes(std::as_bytes(std::span(page)));
  }

  void show(const SessionSummary& summary) {
    metrics_.take(plan(), summary);
    page_.put(slot_, metrics_.families());
    if (!file_) return;
    const auto written = file_->replace(write_page(*page_.families(), PageFormat::text));
    failure_ = written ? std::nullopt : std::optional(written.error().message);
  }

  metrics::QuestionMetrics metrics_;
  MetricPage& page_;
  std::size_t slot_;
  bool is_served_;
  std::optional<io::ReplacedFile> file_;
  std::optional<std::string> failure_;
  std::vector<std::uint64_t> kept_;  ///< events so far, by probe
  Clock::time_point shown_ = Clock::now();
};

}  // namespace

std::unique_ptr<Output> make_prometheus_output(const AnswerStart& start, const OutputPlace& place) {
  return std::make_unique<PrometheusOutput>(start, place);
}

namespace {

/// Numbers of one name are one family.
std::vector<metrics::Family> families_of(const std::vector<OwnMetric>& numbers) {
  std::vector<metrics::Family> families;
  for (const OwnMetric& number : numbers) {
    auto family = std::ranges::find(families, number.name, &metrics::Family::name);
    if (family == families.end()) {
      const auto kind = number.is_counter ? metrics::Kind::counter : metrics::Kind::gauge;
      family = families.insert(family, {number.name, kind, "", number.help, {}});
    }
    family->samples.push_back({number.labels, number.value});
  }
  return families;
}

http::Answer answer_in_words(unsigned status, std::string text) {
  return {.status = status, .type = "text/plain; charset=utf-8", .body = std::move(text)};
}

}  // namespace

http::Answer answer_with_page(MetricPage& page, const std::function<std::vector<OwnMetric>()>& own,
                              const std::function<ProgramHealth()>& health, const http::Request& request) {
  if (request.path == "/")
    return {.type = "text/html; charset=utf-8", .body = "<title>usdt</title><a href=\"/metrics\">metrics</a>\n"};
  if (request.path == "/healthz" && health) {
    const ProgramHealth said = health();
    return answer_in_words(said.is_well ? 200 : 503, said.text);
  }
  if (request.path != "/metrics") return answer_in_words(404, "metrics are at /metrics\n");
  std::vector<metrics::Family> families = *page.fresh_families();
  if (own) std::ranges::move(families_of(own()), std::back_inserter(families));
  const PageFormat format = prometheus::choose_format(request.accept);
  return {.type = std::string(prometheus::media_type(format)), .body = write_page(std::move(families), format)};
}

}  // namespace usdt::exports
