// SPDX-License-Identifier: BSD-2-Clause
// The answer to "what would this attach, read and cost?" as a value. It is made of files and of what the kernel tells
// everybody; where it tells this user nothing of a feature, its release decides (Explanation::assumed). It needs no
// privilege, and nothing is attached.
//
//     const auto subjects = usdt::find_subjects(question.processes);  // question_plan.hpp; {}: everybody
//     std::vector<usdt::SessionNotice> notices;
//     const auto explained = usdt::explain_question(question, *subjects, notices);
//     for (const auto& sites : explained->sites) print(explained->plan.probes[sites.probe], sites.cost,
//     sites.estimate);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "usdt/address.hpp"
#include "usdt/backend.hpp"
#include "usdt/index.hpp"
#include "usdt/plan.hpp"
#include "usdt/question.hpp"
#include "usdt/question_plan.hpp"
#include "usdt/result.hpp"

namespace usdt {
inline namespace v1 {

/// One value of a site.
struct ExplainedValue {
  std::string name;        ///< "arg0", "count", "req->peer.port", "end.arg1"
  std::string type;        ///< "i32", "struct file *"
  std::string where;       ///< "edi", "8(%rsp), then 4 bytes at +16"
  std::string unreadable;  ///< why; empty: it can be read
  std::string text;        ///< how far the text it points to is read as well; empty: it is not
  unsigned reads = 0;      ///< of memory, at most
};

/// A question about a hit, as it was understood at that site.
struct ExplainedQuestion {
  std::string about;  ///< "where", "by", "value", "pair-by"
  std::string text;   ///< as it was understood: "(arg0 % 8) == 3"
  std::string type;   ///< of its answer: "i64", "text"; empty for "where", whose answer is yes or no
};

/// Sites of one probe that are alike in everything but their addresses.
struct ExplainedSites {
  /// The part of a span: its begin, its end, or the span itself; `point`: no span.
  enum class Role : std::uint8_t { point, begin, end, span };
  Index<PlannedProbe> probe = {};
  std::vector<Index<PlannedSite>> sites = {};
  Role role = Role::point;
  std::string cost_class;  ///< "trap"; empty: not of a file, or nothing is attached there
  std::string cost;        ///< what the kernel does at a hit
  /// Nanoseconds a hit adds to the program, on the machine of docs/results/hit.md; nothing: not measured there.
  std::optional<unsigned> estimate = {};
  bool recorded = false;                    ///< `values` reach the tracer, and not only what is asked for
  std::vector<ExplainedValue> values = {};  ///< what is read
  std::vector<ExplainedQuestion> questions = {};
};

/// Links of one backend.
struct ExplainedLinks {
  Backend backend = Backend::automatic;
  std::size_t programs = 0, links = 0, sites = 0;
};

/// Sites that are left out for one reason.
struct ExplainedRefusal {
  std::string reason;
  std::vector<std::pair<Index<PlannedProbe>, std::optional<VirtAddr>>> sites;
};

/// Explains a question.
struct Explanation {
  AttachPlan plan;
  std::vector<ExplainedSites> sites;
  std::vector<ExplainedLinks> links;
  std::string carriers;  ///< CarrierPlan::describe()
  std::vector<ExplainedRefusal> refused;
  std::string others_pay;  ///< why others have the breakpoints, too; empty: they have none, or all are traced
  std::string kernel;      ///< "Linux 6.18.44"
  /// Features the kernel does not tell this user of, as its release has them: "uprobe_multi"; "no uprobe_multi" if not.
  std::vector<std::string> assumed;
  std::string no_privilege;  ///< why this user may not attach it; empty: it may
};

/// Explains `question` about `subjects` on this machine's kernel. `notices` receives what people should know of the
/// search, also where it fails. Errors: those of QuestionPlanner::find() and plan(), of plan_carriers() and
/// choose_backend(). Several threads may explain at once.
[[nodiscard]] Result<Explanation> explain_question(const Question& question, const Subjects& subjects,
                                                   std::vector<SessionNotice>& notices);

}  // namespace v1
}  // namespace usdt
