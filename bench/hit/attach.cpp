// SPDX-License-Identifier: BSD-2-Clause
// Time to attach to and detach from many sites of a file that a process has mapped: stage by stage, against
// BPF_LINK_CREATE and close(2) with the same offsets, and against libbpf's one call for each probe.
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "hit_libbpf.bpf.hpp"
#include "hit_one.bpf.hpp"
#include "kernel.hpp"
#include "parts.hpp"
#include "usdt/bpf_object.hpp"
#include "usdt/features.hpp"
#include "usdt/link.hpp"

namespace usdt::bench {
namespace {

constexpr std::array<std::size_t, 5> kSites = {1, 100, 1'000, 10'000, 50'000};
constexpr std::array<std::size_t, 3> kLibbpfProbes = {1, 10, 100};
constexpr std::size_t kFileOfLibbpf = 100;

std::filesystem::path file_of(std::size_t sites) {
  return std::filesystem::path(USDT_BENCH_HIT_DIR) / fmt::format("hit_sites_{}.so", sites);
}

/// A file mapped to be run, so that attaching to it writes breakpoints.
class Mapped {
 public:
  explicit Mapped(const std::filesystem::path& path) {
    const sys::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::error_code none;
    size_ = std::filesystem::file_size(path, none);
    if (fd) start_ = ::mmap(nullptr, size_, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_POPULATE, fd.get(), 0);
  }
  ~Mapped() {
    if (start_ != MAP_FAILED) ::munmap(start_, size_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

 private:
  void* start_ = MAP_FAILED;
  std::size_t size_ = 0;
};

enum Stage : std::size_t { kScan, kPlan, kLoad, kAttach, kDetach, kStages };
using Stages = std::array<double, kStages>;  ///< ms

/// The library, from the file's name to its sites attached, and back.
Result<Stages> attach_all(const std::filesystem::path& path, std::size_t sites) {
  Stages ms{};
  Stopwatch watch;
  auto file = find_sites(path, "*");
  if (!file) return fail(file.error());
  ms[kScan] = watch.lap_ms();
  auto plan = plan_attach({.files = {std::move(*file)}}, kernel_facts());
  if (!plan) return fail(plan.error());
  ms[kPlan] = watch.lap_ms();
  auto object = BpfObject::open(hit_one_object());
  if (!object) return fail(object.error());
  auto loaded = object->load(std::move(*plan));
  if (!loaded) return fail(loaded.error());
  ms[kLoad] = watch.lap_ms();
  auto link = loaded->attach("hit_one");
  if (!link) return fail(link.error());
  ms[kAttach] = watch.lap_ms();
  if (link->attached() != sites)
    return fail(ErrorKind::io, fmt::format("attached to {} of {} sites", link->attached(), sites));
  watch.lap_ms();
  link->detach();
  ms[kDetach] = watch.lap_ms();
  return ms;
}

/// The kernel's part alone: {attach, detach}.
Result<Stages> bare(int program, const std::filesystem::path& path, const std::vector<std::uint64_t>& offsets) {
  Stages ms{};
  Stopwatch watch;
  auto link = create_link(program, path, offsets);
  if (!link) return fail(link.error());
  ms[kAttach] = watch.lap_ms();
  link->reset();
  ms[kDetach] = watch.lap_ms();
  return ms;
}

struct CloseObject {
  void operator()(bpf_object* object) const { bpf_object__close(object); }
};
using LibbpfObject = std::unique_ptr<bpf_object, CloseObject>;

/// bpf_program__attach_usdt() for each of the first probes, the program being loaded: {attach, detach}.
Result<Stages> libbpf_one_by_one(bpf_program* program, const std::filesystem::path& path, std::size_t probes) {
  Stages ms{};
  Stopwatch watch;
  std::vector<bpf_link*> links;
  for (std::size_t i = 0; i < probes; ++i) {
    links.push_back(bpf_program__attach_usdt(program, -1, path.c_str(), "hit", fmt::format("p{}", i).c_str(), nullptr));
    if (!links.back()) break;
  }
  const int error = errno;
  ms[kAttach] = watch.lap_ms();
  const bool complete = links.back() != nullptr;
  for (bpf_link* link : links) bpf_link__destroy(link);
  ms[kDetach] = watch.lap_ms();
  if (!complete) return fail(os_failure(ErrorKind::io, fmt::format("libbpf: attach probe {}", links.size()), error));
  return ms;
}

/// Rounds of measurements with several stages: result[candidate][stage].
using StagedCandidate = std::function<Result<Stages>()>;
Result<std::vector<std::array<Series, kStages>>> measure_stages(unsigned rounds,
                                                                const std::vector<StagedCandidate>& staged) {
  std::vector<std::array<Series, kStages>> results(staged.size());
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < staged.size(); ++i)
    candidates.emplace_back([&, i]() -> Result<double> {
      auto stages = staged[i]();
      if (!stages) return fail(stages.error());
      for (std::size_t stage = 0; stage < kStages; ++stage) results[i][stage].push_back((*stages)[stage]);
      return (*stages)[kAttach];
    });
  if (auto done = measure(rounds, candidates); !done) return fail(done.error());
  return results;
}

struct SizeResult {
  std::size_t sites = 0;
  std::array<Series, kStages> ours;
  std::array<Series, kStages> bare;
  Series start;  ///< all stages of ours up to being attached
};

Result<SizeResult> measure_size(std::size_t sites, int program, unsigned rounds) {
  const std::filesystem::path path = file_of(sites);
  const Mapped mapped(path);
  auto file = find_sites(path, "*");
  if (!file) return fail(file.error());
  auto plan = plan_attach({.files = {std::move(*file)}}, kernel_facts());
  if (!plan) return fail(plan.error());
  std::vector<std::uint64_t> offsets;
  for (const PlannedSite& site : plan->sites) offsets.push_back(std::get<FilePlace>(site.point).offset.value);
  auto results =
      measure_stages(rounds, {[&] { return attach_all(path, sites); }, [&] { return bare(program, path, offsets); }});
  if (!results) return fail(results.error().within(fmt::format("{} sites", sites)));
  SizeResult size{sites, std::move((*results)[0]), std::move((*results)[1]), Series(rounds)};
  for (const Stage stage : {kScan, kPlan, kLoad, kAttach})
    for (unsigned round = 0; round < rounds; ++round) size.start[round] += size.ours[stage][round];
  return size;
}

void print_size(const SizeResult& size) {
  fmt::print("  {:>6}", size.sites);
  for (const Stage stage : {kScan, kPlan, kLoad, kAttach}) fmt::print(" {:>8.1f}", spread(size.ours[stage]).median);
  fmt::print(" {:>26} {:>24} {:>22} {:>22}\n", text(spread(size.start), 1), text(spread(size.bare[kAttach]), 1),
             text(spread(size.ours[kDetach]), 1), text(spread(size.bare[kDetach]), 1));
}

/// At most three times the bare system call and 50 ms more.
void judge(const std::string& what, const Series& ours, const Series& bare_ms) {
  constexpr double kTimes = 3, kAllowance = 50;
  Series allowed = scaled(bare_ms, kTimes);
  for (double& ms : allowed) ms += kAllowance;
  print_verdict(what, spread(ratio(ours, allowed)), 1, "of three times the bare call plus 50 ms");
}

Result<void> compare_with_libbpf(unsigned rounds) {
  const LibbpfObject object(bpf_object__open_mem(hit_libbpf_object().data(), hit_libbpf_object().size(), nullptr));
  if (!object || bpf_object__load(object.get()) != 0) return fail(os_failure(ErrorKind::io, "libbpf: load", errno));
  bpf_program* program = bpf_object__find_program_by_name(object.get(), "hit_empty");
  const std::filesystem::path path = file_of(kFileOfLibbpf);
  const Mapped mapped(path);
  std::vector<StagedCandidate> candidates = {[&] { return attach_all(path, kFileOfLibbpf); }};
  for (const std::size_t probes : kLibbpfProbes)
    candidates.emplace_back([&, probes] { return libbpf_one_by_one(program, path, probes); });
  // Detaching one by one waits for the kernel each time: more rounds would take minutes.
  auto results = measure_stages(std::min(rounds, 3U), candidates);
  if (!results) return fail(results.error());
  fmt::print("\n  {:<44} {:>26} {:>26}\n", "100 probes of one file, ms", "attach", "detach");
  for (std::size_t i = 0; i < results->size(); ++i) {
    const std::string who =
        i == 0 ? "the library, all of them" : fmt::format("libbpf, {} of them one by one", kLibbpfProbes[i - 1]);
    fmt::print("  {:<44} {:>26} {:>26}\n", who, text(spread((*results)[i][kAttach]), 1),
               text(spread((*results)[i][kDetach]), 1));
  }
  return {};
}

}  // namespace

Result<void> measure_attach(const Settings& settings) {
  auto program = load_empty_program();
  if (!program) return fail(program.error());
  fmt::print("\nAttaching and detaching, ms: median (lowest..highest) of {} rounds\n\n", settings.rounds);
  fmt::print("  {:>6} {:>8} {:>8} {:>8} {:>8} {:>26} {:>24} {:>22} {:>22}\n", "sites", "scan", "plan", "load", "attach",
             "all four", "bare BPF_LINK_CREATE", "detach", "bare close");
  std::vector<SizeResult> sizes;
  for (const std::size_t sites : kSites) {
    auto size = measure_size(sites, program->get(), settings.rounds);
    if (!size) return fail(size.error());
    print_size(*size);
    std::fflush(stdout);
    sizes.push_back(std::move(*size));
  }
  if (auto compared = compare_with_libbpf(settings.rounds); !compared) return compared;
  fmt::print("\n  Targets\n");
  for (const SizeResult& size : sizes) {
    if (size.sites != 10'000) continue;
    judge("10000 sites, start to attached", size.start, size.bare[kAttach]);
    judge("10000 sites, detach", size.ours[kDetach], size.bare[kDetach]);
  }
  // attach_all() made sure that every one was.
  fmt::print("  met      {} sites attached\n", sizes.back().sites);
  return {};
}

}  // namespace usdt::bench
