// SPDX-License-Identifier: BSD-2-Clause
// What the tests of kernel functions have in common: the ways to attach, the hits that were seen, programs of one's
// own.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/usdt.hpp"

namespace usdt::ways {

using namespace std::chrono_literals;

using Names = std::set<std::string, std::less<>>;

/// CLOCK_MONOTONIC in ns, as events have it.
[[nodiscard]] std::uint64_t now();
[[nodiscard]] const KernelAbilities& abilities();
[[nodiscard]] KernelKind kind_of(std::string_view prefix);
/// Whose types functions have.
enum class Types : std::uint8_t {
  kernels,  ///< the kernel's own, where it has any
  ours,     ///< those of kernel_prototypes.hpp
  none,
};
/// Every function of the kernel, looked up once.
[[nodiscard]] const Result<KernelSelection>& all_functions(Types types = Types::kernels);
/// `names` of them, to be attached as `prefix` says.
[[nodiscard]] Selection select(std::string_view prefix, const Names& names, Types types = Types::kernels);

/// A way to attach, by the prefix of names and the backend.
struct Way {
  const char* prefix;
  Backend backend;
  bool (*possible)(const KernelAbilities&);

  [[nodiscard]] KernelKind kind() const { return kind_of(prefix); }
  [[nodiscard]] bool at_entry() const { return kind().moment != Moment::exit; }
  [[nodiscard]] bool at_return() const { return kind().moment != Moment::entry; }
  [[nodiscard]] bool one_by_one() const { return backend == Backend::tracing || backend == Backend::perf_kprobe; }
  [[nodiscard]] bool has_arguments() const { return at_entry() || kind().family == KernelFamily::trampoline; }
  [[nodiscard]] std::string text() const { return fmt::format("{} by {}", prefix, to_string(backend)); }
};
std::ostream& operator<<(std::ostream& out, const Way& way);
[[nodiscard]] std::vector<Way> every_way();
[[nodiscard]] std::vector<Way> ways_of_calls();
[[nodiscard]] std::string name_of(const testing::TestParamInfo<Way>& info);

/// What was recorded of one hit.
struct Hit {
  Index<PlannedSite> site;
  std::uint32_t pid;
  std::uint32_t tid;
  std::uint64_t ts;
  std::uint64_t duration;
  std::vector<Value> values;
};

[[nodiscard]] std::optional<std::uint64_t> bits_of(const Value& value);
/// Why there is no value; empty where there is one.
[[nodiscard]] std::string reason_of(const Value& value);
/// The lowest `size` bytes.
[[nodiscard]] std::uint64_t cut(std::uint64_t bits, std::uint32_t size);
/// True if `way` leaves the choice of the backend to the planner, and it took one that attaches to functions one by
/// one: another way does the same, and it takes long. Says which it was.
[[nodiscard]] bool is_forced_elsewhere(const Way& way, const AttachPlan& plan);

/// A cell of the table of docs/results/kernels.md; in the column of this kernel.
void tell(std::string_view table, std::string_view row, const std::string& cell);

/// A function of one argument that every kernel has; a system call hands it over as it is. No key has the ids of these
/// tests.
inline constexpr const char* kOneArgument = "keyctl_revoke_key";
inline constexpr int kItsResult = -ENOKEY;
void call_with(int id);
/// No hit is lost without a trace.
void expect_whole(const ProbeCounts& counts);

class KernelTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  [[nodiscard]] virtual bool wants_functions() const { return true; }

  static KernelFacts facts() { return {.abilities = abilities()}; }
  static PlanOptions options(Backend backend);
  static Result<AttachPlan> plan(const Way& way, const Names& names, Types types = Types::kernels) {
    return plan_attach(select(way.prefix, names, types), facts(), options(way.backend));
  }
  /// Attached, or null with the test skipped where this machine cannot at all.
  std::unique_ptr<Tracer> start(const AttachPlan& plan, const TraceOptions& how = {});
  Tracer::Callback keep();
  void take(Tracer& tracer) {
    while (tracer.poll(keep(), 0ms).value_or(0) > 0) {
    }
  }
  /// Detaches, and takes what is left.
  void finish(Tracer& tracer);

  std::vector<Hit> hits_;

 private:
  int kernel_log_ = -1;
};

/// A test for each way, skipped where this kernel does not have it.
class EachWay : public KernelTest, public testing::WithParamInterface<Way> {
 protected:
  void SetUp() override;
};

/// What read_everything of kernel_helpers.bpf.c is to read.
struct Reads {
  std::uint32_t arguments = 10;
  std::optional<std::uint32_t> text = {};  ///< the argument that points to it
};

/// A program of kernel_witness.bpf.c or kernel_helpers.bpf.c, attached.
class Own {
 public:
  Own(const char* program, AttachPlan plan, const Reads& reads = {}, LoadOptions options = {});
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  template <class T = std::uint64_t>
  T get(const char* variable, std::size_t n = 0) {
    T value;
    std::memcpy(&value, static_cast<const char*>(object_->global(variable)) + n * sizeof(T), sizeof(T));
    return value;
  }
  std::string text() { return static_cast<const char*>(object_->global("text")); }
  Link& link() { return *link_; }
  const AttachPlan& plan() const { return plan_; }

 private:
  AttachPlan plan_;
  std::optional<LoadedObject> object_;
  std::optional<Link> link_;
  std::optional<Error> error_;
};

}  // namespace usdt::ways
