// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <charconv>
#include <utility>

#include "selection.hpp"

namespace usdtc {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// "arg0", or a name.
usdt::Result<usdt::ArgName> arg_name(std::string_view text) {
  const std::string_view name = trimmed(text);
  if (name.empty()) return usdt::fail(usdt::ErrorKind::syntax, fmt::format("no argument in '{}'", text));
  if (!name.starts_with("arg") || name.size() == 3) return usdt::ArgName(std::string(name));
  std::uint8_t number = 0;
  const char* end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + 3, end, number);
  if (read.ec != std::errc() || read.ptr != end) return usdt::ArgName(std::string(name));
  return usdt::ArgName(number);
}

/// "arg0", "sql", "arg0,arg1".
usdt::Result<void> add_text(std::string_view text, usdt::TextOptions& texts) {
  const std::size_t comma = text.find(',');
  auto name = arg_name(text.substr(0, comma));
  if (!name) return usdt::fail(std::move(name.error()));
  if (comma != text.npos) {
    auto length = arg_name(text.substr(comma + 1));
    if (!length) return usdt::fail(std::move(length.error()));
    texts.bounded.push_back({std::move(*name), std::move(*length)});
  } else if (const auto* number = std::get_if<std::uint8_t>(&*name)) {
    texts.numbers.push_back(*number);
  } else {
    texts.names.push_back(std::get<std::string>(*name));
  }
  return {};
}

usdt::Result<usdt::TextOptions> texts_of(const usdtc_plan_options& options) {
  usdt::TextOptions texts;
  texts.typed = (options.texts & USDTC_TEXTS_TYPED) != 0;
  texts.likely = (options.texts & USDTC_TEXTS_LIKELY) != 0;
  if ((options.texts & USDTC_TEXTS_DESCRIBED) != 0) {
    constexpr std::uint8_t most = 12;  // arguments of a USDT probe
    for (std::uint8_t n = 0; n < most; ++n) texts.described.emplace_back(n);
  }
  auto wanted = read_texts(options.text_args, options.text_arg_count, "text_args");
  if (!wanted) return usdt::fail(std::move(wanted.error()));
  for (const std::string& text : *wanted)
    if (auto added = add_text(text, texts); !added) return usdt::fail(std::move(added.error()));
  return texts;
}

usdt::Result<usdt::ValueOptions> values_of(const usdtc_plan_options& options) {
  usdt::ValueOptions values;
  values.open = (options.flags & USDTC_PLAN_OPEN) != 0;
  auto wanted = read_texts(options.values, options.value_count, "values");
  if (!wanted) return usdt::fail(std::move(wanted.error()));
  for (const std::string& text : *wanted) {
    auto path = usdt::parse_value_path(text);
    if (!path) return usdt::fail(path.error().within(text));
    values.paths.push_back(std::move(*path));
  }
  return values;
}

usdt::Result<usdt::PlanOptions> options_of(const usdtc_plan_options& options) {
  constexpr std::uint32_t texts = USDTC_TEXTS_DESCRIBED | USDTC_TEXTS_TYPED | USDTC_TEXTS_LIKELY;
  constexpr std::uint32_t flags = USDTC_PLAN_OPEN | USDTC_PLAN_UNSAFE_NOP5;
  if ((options.texts & ~texts) != 0 || (options.flags & ~flags) != 0)
    return invalid(
        fmt::format("texts {:#x} and flags {:#x} have bits that mean nothing", options.texts, options.flags));
  usdt::PlanOptions out;
  auto pids = read_pids(options.pids, options.pid_count, "pids");
  if (!pids) return usdt::fail(std::move(pids.error()));
  if (!pids->empty()) {
    auto processes = usdt::Processes::of(std::move(*pids));
    if (!processes) return usdt::fail(std::move(processes.error()));
    out.scope = std::move(*processes);
  }
  out.user_cookie = options.user_cookie;
  out.allow_unsafe_nop5 = (options.flags & USDTC_PLAN_UNSAFE_NOP5) != 0;
  out.stop = token_of(options.stop);
  auto wanted_texts = texts_of(options);
  if (!wanted_texts) return usdt::fail(std::move(wanted_texts.error()));
  out.texts = std::move(*wanted_texts);
  auto values = values_of(options);
  if (!values) return usdt::fail(std::move(values.error()));
  out.values = std::move(*values);
  auto where = read_where(options.where);
  if (!where) return usdt::fail(std::move(where.error()));
  out.where = std::move(*where);
  return out;
}

/// An argument that no point has is a mistake; one that some lack is not.
usdt::Result<void> check_texts(const usdt::AttachPlan& plan, const usdt::TextOptions& texts) {
  std::vector<usdt::ArgName> asked;
  for (const std::uint8_t number : texts.numbers) asked.emplace_back(number);
  for (const std::string& name : texts.names) asked.emplace_back(name);
  for (const usdt::BoundedString& each : texts.bounded) {
    asked.push_back(each.text);
    asked.push_back(each.length);
  }
  for (const usdt::ArgName& name : asked) {
    if (std::any_of(plan.args.begin(), plan.args.end(),
                    [&](const auto& args) { return usdt::find_arg(args, name).has_value(); }))
      continue;
    const auto* number = std::get_if<std::uint8_t>(&name);
    return invalid(fmt::format("no point has the argument {} that text_args asks for",
                               number ? fmt::format("arg{}", *number) : std::get<std::string>(name)));
  }
  return {};
}

usdt::Result<std::unique_ptr<usdtc_plan>> make(const usdtc_selection& selection, const usdtc_plan_options& given) {
  auto options = options_of(given);
  if (!options) return usdt::fail(std::move(options.error()));
  auto view = read_table(given.table);
  if (!view) return usdt::fail(std::move(view.error()));
  options->table = view->question;
  auto plan = usdt::plan_attach(selection.selection, usdt::kernel_facts(selection.patterns), *options);
  if (!plan) return usdt::fail(std::move(plan.error()));
  if (auto sense = check_texts(*plan, options->texts); !sense) return usdt::fail(std::move(sense.error()));
  auto made =
      std::make_unique<usdtc_plan>(usdtc_plan{.plan = std::make_shared<const usdt::AttachPlan>(std::move(*plan))});
  made->asked.where = options->where;
  made->asked.view = std::move(*view);
  for (const usdt::SkippedSite& site : made->plan->skipped)
    made->notices.push_back(made->texts->notice_of(site, USDTC_NOTICE_SKIPPED));
  return made;
}

}  // namespace

PlanTexts::PlanTexts(const usdt::AttachPlan& plan) {
  for (const usdt::PlannedProbe& probe : plan.probes) full_names.push_back(usdt::full_name(plan, probe));
  for (const usdt::PlannedFile& file : plan.files) files.push_back(file.target.path.string());
}

std::string_view PlanTexts::keep(std::string&& reason) const {
  const std::lock_guard lock(mutex_);
  return *reasons_.insert(std::move(reason)).first;
}

Notice PlanTexts::notice_of(const usdt::SkippedSite& site, std::uint32_t kind) const {
  const std::string where = site.pc ? fmt::format(" at {:#x}", site.pc->value) : "";
  return {kind, site.probe.value, fmt::format("{}{}: {}", full_names[site.probe.value], where, site.reason)};
}

}  // namespace usdtc

extern "C" {

int usdtc_plan_make(const usdtc_selection* selection, const usdtc_plan_options* options, usdtc_plan** plan,
                    usdtc_error** error) {
  if (plan) *plan = nullptr;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!selection || !plan) return usdtc::invalid("the selection, or the place for the plan, is NULL");
    auto read = usdtc::read_struct(options, usdtc::kPlanOptions, "usdtc_plan_options");
    if (!read) return usdt::fail(std::move(read.error()));
    auto made = usdtc::make(*selection, *read);
    if (!made) return usdt::fail(std::move(made.error()));
    *plan = made->release();
    return {};
  });
}

size_t usdtc_plan_probe_count(const usdtc_plan* plan) { return plan ? plan->texts->full_names.size() : 0; }
size_t usdtc_plan_site_count(const usdtc_plan* plan) { return plan ? plan->plan->sites.size() : 0; }
const char* usdtc_plan_probe_name(const usdtc_plan* plan, size_t n) {
  return n < usdtc_plan_probe_count(plan) ? plan->texts->full_names[n].c_str() : nullptr;
}

int usdtc_plan_notice(const usdtc_plan* plan, size_t n, usdtc_notice* notice, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!plan) return usdtc::invalid("the plan is NULL");
    const auto& all = plan->notices;
    return usdtc::write_notice(n < all.size() ? &all[n] : nullptr, n, all.size(), notice);
  });
}

void usdtc_plan_free(usdtc_plan* plan) { delete plan; }
}
