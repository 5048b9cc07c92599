// SPDX-License-Identifier: BSD-2-Clause
#include "event/kept_texts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/try.hpp"
#include "event/open_calls.hpp"
#include "event/stock_program.hpp"
#include "expr/asked_texts.hpp"
#include "plan/captures.hpp"

namespace usdt::event {
namespace {

std::string name_of(const std::vector<Arg>& args, std::size_t n) {
  return args[n].name().empty() ? fmt::format("arg{}", n) : std::string(args[n].name());
}

bool is_text(const usdt_arg_spec& arg) { return arg.capture != USDT_CAPTURE_NONE; }

/// usdt_arg_spec::capture of a text as it is asked about.
std::uint8_t capture_of(const std::vector<Arg>& args, const expr::AskedText& asked) {
  return asked.length ? plan::capture_by(args, asked.text, *asked.length) : std::uint8_t{USDT_CAPTURE_STRING};
}

class Keeper {
 public:
  Keeper(const AttachPlan& plan, const TraceOptions& options)
      : plan_(plan), has_records_(!plan.table && !options.count_only) {
    for (const AttachGroup& group : plan.groups)
      if (keeps_record(group)) calls_.insert(calls_.end(), group.sites.begin(), group.sites.end());
  }

  /// Whether the plan becomes another one.
  [[nodiscard]] bool has_work() const {
    return std::ranges::any_of(calls_, [&](Index<PlannedSite> number) {
      const std::vector<usdt_arg_spec>& args = plan_.specs[plan_.sites[number].spec].args;
      return !asked_at(number).empty() || (!has_records_ && std::ranges::any_of(args, is_text));
    });
  }

  Result<AttachPlan> run() {
    made_ = plan_;
    if (!has_records_) keep_asked_only();
    for (const Index<PlannedSite> number : calls_) TRY(keep(number));
    return std::move(made_);
  }

 private:
  [[nodiscard]] std::vector<expr::AskedText> asked_at(Index<PlannedSite> number) const {
    const PlannedSite& site = plan_.sites[number];
    if (!site.filter) return {};
    return expr::texts_of_beginning(plan_.filters[*site.filter], plan_.args[site.args]);
  }

  /// Rows and counts have no texts but those that are asked about.
  void keep_asked_only() {
    std::map<Index<EncodedSpec>, std::vector<bool>> asked;
    for (const Index<PlannedSite> number : calls_) {
      const Index<EncodedSpec> spec = plan_.sites[number].spec;
      std::vector<bool>& which = asked[spec];
      which.resize(plan_.specs[spec].args.size());
      for (const expr::AskedText& each : asked_at(number))
        if (each.text < which.size()) which[each.text] = true;
    }
    for (const auto& [spec, which] : asked)
      for (std::size_t n = 0; n < which.size(); ++n)
        if (!which[n]) made_.specs[spec].args[n].capture = USDT_CAPTURE_NONE;
    made_.string_slots = 0;
    for (const EncodedSpec& spec : made_.specs)
      made_.string_slots = std::max(
          made_.string_slots, static_cast<std::uint32_t>(std::ranges::count_if(spec.args, [](const usdt_arg_spec& arg) {
            return arg.capture != USDT_CAPTURE_NONE;
          })));
  }

  Result<void> keep(Index<PlannedSite> number) {
    PlannedSite& site = made_.sites[number];
    const std::vector<expr::AskedText> asked = asked_at(number);
    if (asked.empty()) return {};
    const auto [known, fresh] = known_.try_emplace({*site.filter, site.args, site.spec});
    if (fresh) {
      const auto slots = TRY(slots_of(site, asked));
      auto kept = TRY(made_.filters[*site.filter].with_kept_texts(slots));
      const auto same = std::ranges::find(made_.filters, kept);
      known->second = same == made_.filters.end()
                          ? made_.filters.add(std::move(kept))
                          : Index<TypedExpression>(static_cast<std::size_t>(same - made_.filters.begin()));
    }
    site.filter = known->second;
    return {};
  }

  /// Returns, by argument, the slot of the record that has its text, if it is asked about.
  [[nodiscard]] Result<std::vector<std::optional<std::uint8_t>>> slots_of(
      const PlannedSite& site, const std::vector<expr::AskedText>& asked) const {
    const std::vector<Arg>& args = made_.args[site.args];
    const std::vector<usdt_arg_spec>& encoded = made_.specs[site.spec].args;
    std::vector<std::optional<std::uint8_t>> slots(encoded.size());
    std::uint8_t next = 0;
    for (std::size_t n = 0; n < encoded.size(); ++n) {
      const auto text = std::ranges::find(asked, n, &expr::AskedText::text);
      if (text != asked.end() && encoded[n].capture == capture_of(args, *text)) slots[n] = next;
      next += is_text(encoded[n]);
    }
    for (const expr::AskedText& each : asked) {
      if (each.text < slots.size() && slots[each.text]) continue;
      const std::string name = name_of(args, each.text);
      if (each.text >= slots.size() || !is_text(encoded[each.text]))
        return fail(ErrorKind::not_supported,
                    fmt::format("str({}): the text that a call was passed is kept from its beginning, as it may have "
                                "changed by its end; but this is no address that a text can be kept of",
                                name));
      return fail(ErrorKind::invalid_argument,
                  fmt::format("str({}): it is asked about with another length than it is shown with: the text that a "
                              "call was passed is kept from its beginning, and once",
                              name));
    }
    return slots;
  }

  const AttachPlan& plan_;
  const bool has_records_;
  AttachPlan made_ = {};
  std::vector<Index<PlannedSite>> calls_;
  std::map<std::tuple<Index<TypedExpression>, Index<std::vector<Arg>>, Index<EncodedSpec>>, Index<TypedExpression>>
      known_;
};

}  // namespace

Result<std::shared_ptr<const AttachPlan>> with_kept_texts(std::shared_ptr<const AttachPlan> plan,
                                                          const TraceOptions& options) {
  if (plan->spans || counts_beginnings(*plan, options)) return plan;
  Keeper keeper(*plan, options);
  if (!keeper.has_work()) return plan;
  auto made = TRY(keeper.run());
  return std::make_shared<const AttachPlan>(std::move(made));
}

}  // namespace usdt::event
