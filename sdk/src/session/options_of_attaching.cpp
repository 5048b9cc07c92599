// SPDX-License-Identifier: BSD-2-Clause
// Options about how sites are attached and values reach their programs.
#include <fmt/format.h>

#include "base/try.hpp"
#include "session/option_rows.hpp"

namespace usdt::session {
namespace {

constexpr std::string_view kAttaching = "Attaching";
/// Names the choice that is the library's.
constexpr std::string_view kAuto = "auto";

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names{kAuto};
  for (const Backend backend : choosable_backends()) names.push_back(to_string(backend));
  return names;
}

std::vector<std::string_view> carrier_names() {
  std::vector<std::string_view> names{kAuto};
  for (const Carrier carrier : {Carrier::cookie, Carrier::table, Carrier::per_link, Carrier::ip_hash})
    names.push_back(to_string(carrier));
  return names;
}

Result<void> take_backends(QuestionDraft& draft, const SetOption& set) {
  AskedAttaching& attaching = draft.question.attaching;
  for (const std::string& name : set.values) {
    if (name == kAuto) continue;
    const auto backend = TRY(backend_by_name(name));
    (is_kernel(backend) ? attaching.kernel_backend : attaching.backend) = backend;
  }
  return {};
}

Result<void> take_carrier(QuestionDraft& draft, const SetOption& set) {
  if (set.value() == kAuto) return {};
  const auto carrier = TRY(carrier_by_name(set.value()));
  draft.question.attaching.carrier = carrier;
  return {};
}

/// The rows about memory that is paged out.
std::vector<OptionRow> options_of_pages() {
  return {
      {{.name = "wait-for-pages",
        .group = kAttaching,
        .description =
            "Where an argument is paged out, let the traced program wait until it is in: the default with -p and a "
            "command, but not of everybody's, since who maps a page decides how long that takes",
        .scope = OptionScope::session},
       [](QuestionDraft& draft, const SetOption&) -> Result<void> {
         draft.question.attaching.wait_for_pages = true;
         return {};
       }},
      {{.name = "no-wait-for-pages",
        .group = kAttaching,
        .description = "Say instead that it could not be read",
        .scope = OptionScope::session},
       [](QuestionDraft& draft, const SetOption& set) -> Result<void> {
         if (draft.question.attaching.wait_for_pages) return set.excluded_by("wait-for-pages");
         draft.question.attaching.wait_for_pages = false;
         return {};
       }},
  };
}

/// The rows about BPF programs.
std::vector<OptionRow> options_of_programs() {
  return {
      {{.name = "carrier",
        .group = kAttaching,
        .kind = OptionKind::choice,
        .value_name = "NAME",
        .description = "How a site's argument spec reaches the BPF program: auto, cookie, table, per-link or ip-hash",
        .words = carrier_names()},
       take_carrier},
      {{.name = "max-programs",
        .group = kAttaching,
        .kind = OptionKind::number,
        .value_name = "N",
        .description = "Most BPF programs to load for --carrier per-link and ip-hash",
        .usual_value = fmt::format("{}", AskedAttaching().max_programs),
        .least = 1,
        .most = 4096},
       into([](QuestionDraft & draft) -> auto& { return draft.question.attaching.max_programs; })},
      {{.name = "allow-unsafe-nop5",
        .group = kAttaching,
        .description = "Attach to bare nop5 sites although this kernel may then corrupt the program's red zone"},
       into([](QuestionDraft & draft) -> auto& { return draft.question.attaching.allow_unsafe_nop5; })},
  };
}

}  // namespace

std::vector<OptionRow> options_of_attaching() {
  std::vector<OptionRow> rows = {
      {{.name = "skip-unknown",
        .group = "Notices",
        .description = "Go on without kernel functions and raw tracepoints that this kernel does not have"},
       into([](QuestionDraft & draft) -> auto& { return draft.question.points.skip_unknown; })},
      {{.name = "backend",
        .group = kAttaching,
        .kind = OptionKind::choice,
        .value_name = "NAME",
        .description =
            "How to attach: uprobe_multi, perf_uprobe; in the kernel: kprobe_multi, kprobe_session, perf_kprobe, "
            "tracing_multi, tracing, raw_tp, tp_btf. Default: the best there is",
        .words = backend_names(),
        .repeats = true},
       take_backends},
  };
  return join_rows(std::move(rows), options_of_pages(), options_of_programs());
}

}  // namespace usdt::session
