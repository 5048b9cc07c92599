// SPDX-License-Identifier: BSD-2-Clause
// Arguments of kernel functions by every way, judged by those of system calls that the test chose.
#include <fmt/ranges.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "kernel_calls.hpp"
#include "kernel_prototypes.hpp"
#include "kernel_ways.hpp"

namespace usdt::ways {
namespace {

/// One function that calls reached, in all its hits.
struct Judged {
  std::size_t right = 0;
  std::size_t wrong = 0;
  std::map<std::string, std::size_t> errors;  ///< by reason
  std::string fault;                          ///< of the first wrong one
};

class Judge {
 public:
  Judge(const AttachPlan& plan, const Way& way, Types types) : plan_(plan), way_(way), types_(types) {
    for (const Index<PlannedSite> site : plan.sites.indices())
      site_of_.try_emplace(function_of(plan, plan.sites[site])->name, site);
  }

  /// `hits`: those of this thread during the call.
  void judge(const truth::Call& call, const std::vector<const Hit*>& hits, long result) {
    for (const truth::Reached& reached : call.functions) {
      const auto site = site_of_.find(reached.name);
      if (site == site_of_.end()) {
        absent_.insert(reached.name);
        continue;
      }
      // Of several hits, the one that is right: inner calls have arguments of their own.
      std::optional<Judged> best;
      for (const Hit* hit : hits) {
        if (hit->site != site->second) continue;
        Judged judged = compare(call, reached, *hit, result);
        if (!best || judged.wrong < best->wrong) best = std::move(judged);
      }
      if (!best) {
        unreached_.insert(reached.name);
        continue;
      }
      functions_.insert(reached.name);
      right_ += best->right;
      wrong_ += best->wrong;
      for (const auto& [reason, count] : best->errors) errors_[reason] += count;
      if (!best->fault.empty()) faults_.push_back(best->fault);
    }
  }

  /// `how`: by what they were attached.
  void report(const std::string& how) {
    for (const std::string& name : functions_) unreached_.erase(name);
    std::size_t errors = 0;
    for (const auto& [reason, count] : errors_) {
      errors += count;
      fmt::print("  typed error {} times: {}\n", count, reason);
    }
    fmt::print("  absent: {} {}\n  not reached: {} {}\n", absent_.size(), fmt::join(absent_, " "), unreached_.size(),
               fmt::join(unreached_, " "));
    const char* const what[] = {"truth", "truth, types of the test", "truth, words without types"};
    fmt::print("  {} typed errors; {}\n", errors, how);
    tell(what[static_cast<std::size_t>(types_)], way_.text(),
         fmt::format("{} functions, {} values, {} wrong", functions_.size(), right_, wrong_));
    EXPECT_EQ(wrong_, 0U);
    for (const std::string& fault : faults_) ADD_FAILURE() << fault;
  }
  [[nodiscard]] std::size_t functions() const { return functions_.size(); }

 private:
  Judged compare(const truth::Call& call, const truth::Reached& reached, const Hit& hit, long result) {
    Judged judged;
    const std::vector<Arg>& args = plan_.args[plan_.sites[hit.site].args];
    const std::size_t places = types_ == Types::none ? words_of(call, reached.name) : call.args.size();
    for (std::size_t n = 0; n < args.size(); ++n) {
      std::optional<std::uint64_t> expected;
      if (args[n].result) {
        if (reached.returns) expected = static_cast<std::uint64_t>(result);
      } else if (const auto known = call.names.find(std::string(args[n].name()));
                 known != call.names.end() && !reached.positional) {
        // By version, a name is what user space passed, or the kernel's copy of it.
        const bool copy = args[n].c_type() == "struct filename *" || args[n].c_type() == "loff_t *";
        if (!copy) expected = known->second;
      } else if (reached.positional && n < places) {
        expected = call.args[n];
      }
      if (expected) check(call, reached, args[n], hit.values[n], *expected, judged);
    }
    return judged;
  }

  /// How many of a function's first arguments are a word each. What does not fit into the rest of i386's registers is
  /// on the stack, and all behind it.
  static std::size_t words_of(const truth::Call& call, const std::string& name) {
    if (sizeof(long) == 8) return call.args.size();
    const auto known = prototypes().find(name);
    if (known == prototypes().end()) return 0;
    std::size_t words = 0;
    for (const Parameter& each : known->second.parameters) {
      if (size_of(each.type) > sizeof(long)) break;
      ++words;
    }
    return std::min(words, call.args.size());
  }

  /// The bytes of a word that an argument of this value is sure to have: the rest of its register is anyone's.
  static std::uint32_t sure_bytes(std::uint64_t value) {
    const auto number = static_cast<std::int64_t>(value);
    return number >= INT32_MIN && number <= UINT32_MAX ? 4 : 8;
  }

  void check(const truth::Call& call, const truth::Reached& reached, const Arg& arg, const Value& value,
             std::uint64_t expected, Judged& judged) const {
    const auto bits = bits_of(value);
    const std::string_view what = arg.result ? "result" : arg.name();
    if (!bits && !arg.readable()) {
      ++judged.errors[fmt::format("{} of {}: {}", what, reached.name, reason_of(value))];
      return;
    }
    const std::uint32_t size = types_ == Types::none ? std::min(arg.type.size, sure_bytes(expected)) : arg.type.size;
    if (bits && cut(*bits, size) == cut(expected, size)) {
      ++judged.right;
      return;
    }
    ++judged.wrong;
    const std::string got = bits ? fmt::format("{:#x}", *bits) : reason_of(value);
    judged.fault += fmt::format("{}: {} of {} is {}, not {:#x}\n", call.name, what, reached.name, got, expected);
  }

  const AttachPlan& plan_;
  const Way& way_;
  Types types_;
  std::map<std::string, Index<PlannedSite>, std::less<>> site_of_;
  std::set<std::string> functions_;
  std::set<std::string> absent_;
  std::set<std::string> unreached_;
  std::size_t right_ = 0;
  std::size_t wrong_ = 0;
  std::map<std::string, std::size_t> errors_;
  std::vector<std::string> faults_;
};

class EachTruth : public EachWay {
 protected:
  /// `each`: 1 for all calls, n for one of n.
  void compare_with_system_calls(Types types, std::size_t each = 1);
};
INSTANTIATE_TEST_SUITE_P(Kernel, EachTruth, testing::ValuesIn(every_way()), name_of);

void EachTruth::compare_with_system_calls(Types types, std::size_t each) {
  const truth::Stage stage;
  std::vector<truth::Call> calls;
  for (std::size_t i = 0; i < stage.calls().size(); i += each) calls.push_back(stage.calls()[i]);
  Names names;
  for (const truth::Call& call : calls)
    for (const truth::Reached& reached : call.functions) names.insert(reached.name);
  const auto planned = plan(GetParam(), names, types);
  ASSERT_TRUE(planned) << planned.error().message;
  if (is_forced_elsewhere(GetParam(), *planned)) GTEST_SKIP() << "the backend it takes here has a test of its own";
  for (const SkippedSite& skipped : planned->skipped)
    fmt::print("  refused: {}: {}\n", planned->probes[skipped.probe].name, skipped.reason);
  const auto before = now();
  const auto tracer = start(*planned);
  if (!tracer) return;
  fmt::print("  attach {}={} functions of {} by {} in {} ms, {} refused by the kernel, {}\n", GetParam().text(),
             tracer->link().attached(), planned->sites.size(), tracer->link().backend_text(),
             (now() - before) / 1'000'000, tracer->link().refused().size(), tracer->link().carrier_text());
  // Trampolines of kernels before 6.6 take six arguments, and no structs before 6.1.
  EXPECT_LE(tracer->link().refused().size(), GetParam().one_by_one() ? 12U : 0U);
  for (const SkippedSite& skipped : tracer->link().refused())
    fmt::print("  refused: {}: {}\n", planned->probes[skipped.probe].name, skipped.reason);

  struct Done {
    const truth::Call* call;
    std::size_t from;  ///< its hits
    std::size_t to;
    long result;
  };
  std::vector<Done> done;
  for (const truth::Call& call : calls) {
    take(*tracer);
    const std::size_t from = hits_.size();
    const long result = call.run();
    take(*tracer);
    done.push_back({&call, from, hits_.size(), result});
  }
  const std::string how = fmt::format("{}: {}", tracer->link().backend_text(), tracer->link().carrier_text());
  finish(*tracer);
  std::uint64_t lost = 0;
  for (const ProbeCounts& counts : tracer->counts()) lost += counts.ring_full + counts.calls_full;
  EXPECT_EQ(lost, 0U);

  Judge judge(*planned, GetParam(), types);
  const auto me = static_cast<std::uint32_t>(::gettid());
  for (const Done& one : done) {
    std::vector<const Hit*> hits;
    for (std::size_t i = one.from; i < one.to; ++i)
      if (hits_[i].tid == me) hits.push_back(&hits_[i]);
    judge.judge(*one.call, hits, one.result);
  }
  judge.report(how);
  EXPECT_GE(judge.functions(), each == 1 ? 100U : 15U);
}

/// Of the kernel, or where it has none the test's; nothing if there are neither.
std::optional<Types> types_here() {
  if (abilities().kernel_btf) return Types::kernels;
  utsname system{};
  ::uname(&system);
  if (std::string_view(system.release).starts_with("6.1.")) return Types::ours;
  return std::nullopt;
}

TEST_P(EachTruth, gives_the_arguments_that_were_passed) {
  if (!types_here()) GTEST_SKIP() << "this kernel has no types, and the test has those of Linux 6.1";
  compare_with_system_calls(*types_here());
}

TEST_P(EachTruth, gives_the_arguments_of_some_functions) {
  if (!types_here()) GTEST_SKIP() << "this kernel has no types, and the test has those of Linux 6.1";
  if (!GetParam().one_by_one()) GTEST_SKIP() << "all functions take no longer";
  compare_with_system_calls(*types_here(), 10);
}

TEST_P(EachTruth, gives_words_where_there_are_no_types) {
  const bool one_by_one = GetParam().one_by_one();
  if (GetParam().kind().family == KernelFamily::trampoline) GTEST_SKIP() << "trampolines want types";
  if (abilities().kernel_btf && one_by_one) GTEST_SKIP() << "one backend is enough where the kernel has types";
  compare_with_system_calls(Types::none, one_by_one && GetParam().at_return() ? 10 : 1);
}

}  // namespace
}  // namespace usdt::ways
