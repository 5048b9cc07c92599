// SPDX-License-Identifier: BSD-2-Clause
// The helpers of usdt.bpf.h, under each carrier: this process passes its own probes and compares what programs saw.
#include <bpf/bpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <thread>

#include "bpf_directory.hpp"
#include "own_programs.bpf.hpp"
#include "probed.hpp"
#include "refused.bpf.hpp"
#include "sleeping_programs.bpf.hpp"
#include "usdt/bpf/filter.h"
#include "usdt/usdt.hpp"

namespace usdt {
namespace {

using testing::HasSubstr;

constexpr char kText[] = "some text";

AttachPlan plan_of(const std::string& name, PlanOptions options = {},
                   const std::filesystem::path& file = std::filesystem::read_symlink("/proc/self/exe")) {
  options.scope = *OneProcess::of(::getpid());
  auto pattern = ProbePattern::parse("usdt:" + file.string() + ":own:" + name);
  auto selection = select({*pattern}, {});
  EXPECT_TRUE(selection) << selection.error().message;
  auto plan = plan_attach(*selection, kernel_facts(), options);
  EXPECT_TRUE(plan) << plan.error().message;
  return std::move(*plan);
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

bool has_cookies() { return probe_feature(Feature::attach_cookie).answer != Answer::no; }
constexpr char kNoCookies[] = "no attach cookies on this kernel";

/// Whether programs on sites may sleep, as a kernel since 6.0 lets them.
bool may_sleep() {
  bpf_insn nothing[2] = {};  // r0 = 0; exit
  nothing[0].code = BPF_ALU64 | BPF_MOV | BPF_K;
  nothing[1].code = BPF_JMP | BPF_EXIT;
  LIBBPF_OPTS(bpf_prog_load_opts, options, .prog_flags = BPF_F_SLEEPABLE);
  const int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "may_sleep", "GPL", nothing, std::size(nothing), &options);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

std::span<const std::byte> object_of(std::string_view program) {
  return program.ends_with("_sleeping") ? sleeping_programs_object() : own_programs_object();
}

/// One program of own_programs.bpf.c or sleeping_programs.bpf.c on the sites of a plan.
class Attached {
 public:
  Attached(const char* program, AttachPlan plan, LoadOptions options = {})
      : object_(loaded(program, std::move(plan), std::move(options))) {
    auto link = object_.attach(program);
    if (!link) throw std::runtime_error(link.error().message);
    link_.emplace(std::move(*link));
  }

  template <class T = std::uint64_t>
  T seen(const char* variable, std::size_t n = 0) {
    T value;
    std::memcpy(&value, static_cast<const char*>(object_.global(variable)) + n * sizeof(T), sizeof(T));
    return value;
  }
  std::int64_t error(std::size_t n) { return seen<std::int64_t>("errors", n); }
  std::string text() { return static_cast<const char*>(object_.global("text")); }
  Link& link() { return *link_; }
  void drop() { link_.reset(); }
  LoadedObject& object() { return object_; }
  const AttachPlan& plan() { return object_.plan(); }

 private:
  static LoadedObject loaded(const char* program, AttachPlan plan, LoadOptions options) {
    options.programs = {program};
    auto loaded = BpfObject::open(object_of(program))->load(std::move(plan), options);
    if (!loaded) throw std::runtime_error(loaded.error().message);
    return std::move(*loaded);
  }

  LoadedObject object_;
  std::optional<Link> link_;
};

class OwnPrograms : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "not root";
  }
};

class EachCarrier : public OwnPrograms, public testing::WithParamInterface<Carrier> {
 protected:
  void SetUp() override {
    OwnPrograms::SetUp();
    const bool without_cookies = GetParam() == Carrier::automatic || GetParam() == Carrier::ip_hash;
    if (!without_cookies && !has_cookies()) GTEST_SKIP() << kNoCookies;
  }
};

INSTANTIATE_TEST_SUITE_P(OwnPrograms, EachCarrier,
                         testing::Values(Carrier::automatic, Carrier::table, Carrier::per_link, Carrier::ip_hash),
                         [](const auto& param) {
                           std::string name(to_string(param.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(EachCarrier, shows_every_value_its_size_and_kind_or_why_there_is_none) {
  Attached on("read_all", plan_of("mixed", {.user_cookie = 99}), {.carrier = GetParam()});
  probed::mixed(kText, -5, 65535, -128);
  EXPECT_EQ(on.seen("hits"), 1U);
  EXPECT_EQ(on.seen("count"), 6U);
  EXPECT_EQ(on.seen("values", 0), reinterpret_cast<std::uintptr_t>(kText));
  EXPECT_EQ(on.seen<std::int64_t>("values", 1), -5);
  EXPECT_EQ(on.seen("values", 2), 65535U);
  EXPECT_EQ(on.seen<std::int64_t>("values", 3), -7);
  EXPECT_EQ(on.seen<std::int64_t>("values", 4), -128);
  for (std::size_t n = 0; n < 5; ++n) EXPECT_EQ(on.error(n), 0) << n;
  EXPECT_EQ(on.error(5), -EOPNOTSUPP) << "a vector register is not handed to probes";
  EXPECT_EQ(on.error(6), -ENOENT) << "there is no such argument";
  constexpr int sizes[] = {sizeof(void*), -4, 2, -4, -1, 8, 0};
  constexpr int kinds[] = {USDT_ARG_REG, USDT_ARG_MEM,        USDT_ARG_MEM, USDT_ARG_CONST,
                           USDT_ARG_REG, USDT_ARG_UNREADABLE, -ENOENT};
  for (std::size_t n = 0; n < 7; ++n) {
    EXPECT_EQ(on.seen<std::int64_t>("sizes", n), sizes[n]) << n;
    EXPECT_EQ(on.seen<std::int64_t>("kinds", n), kinds[n]) << n;
  }
  EXPECT_EQ(on.seen("cookie"), 99U);
  EXPECT_EQ(on.seen("site"), 0U);
}

TEST_P(EachCarrier, gives_typed_variables_what_fits_them) {
  Attached on("read_typed", plan_of("typed"), {.carrier = GetParam()});
  probed::typed(kText, -1000, 65535);
  EXPECT_EQ(on.seen("values", 0), reinterpret_cast<std::uintptr_t>(kText));
  EXPECT_EQ(on.seen<std::int64_t>("values", 1), -1000);
  EXPECT_EQ(on.error(2), -ERANGE) << "-1000 is no byte";
  EXPECT_EQ(on.seen("values", 2), 0U);
  EXPECT_EQ(on.seen("values", 3), 65535U);
  EXPECT_EQ(on.error(0), 0);
  EXPECT_EQ(on.error(1), 0);
  EXPECT_EQ(on.error(3), 0);
}

TEST_P(EachCarrier, answers_what_the_plan_asks_about_hits) {
  const auto where = parse_expression("arg1 < -5 && str(arg0) =~ \"the*\" || 7 / arg1 == 7");
  ASSERT_TRUE(where) << where.error().message;
  Attached on("ask_first", plan_of("typed", {.where = std::make_shared<const Expression>(*where)}),
              {.carrier = GetParam()});
  for (const int number : {-6, -5, 0, 1, -1000}) probed::typed("the text", number, 1);
  probed::typed("a text", -6, 1);
  EXPECT_EQ(on.seen("hits"), 6U);
  EXPECT_EQ(on.seen<std::int64_t>("sizes", USDT_YES), 3) << "-6, 1, -1000";
  EXPECT_EQ(on.seen<std::int64_t>("sizes", USDT_NO), 2) << "-5, and -6 of the other text";
  EXPECT_EQ(on.seen<std::int64_t>("sizes", USDT_UNDECIDED), 1) << "0";
  EXPECT_EQ(on.seen<std::int64_t>("values", 0), -1000);
}

TEST_P(EachCarrier, runs_a_typed_program_with_true_values_only) {
  {
    Attached on("take_typed", plan_of("typed", {.user_cookie = 1}), {.carrier = GetParam()});
    probed::typed(kText, -1000, 65535);
    EXPECT_EQ(on.seen("hits"), 1U);
    EXPECT_EQ(on.seen("values", 0), reinterpret_cast<std::uintptr_t>(kText));
    EXPECT_EQ(on.seen<std::int64_t>("values", 1), -1000);
    EXPECT_EQ(on.seen("values", 2), 65535U);
    EXPECT_EQ(on.seen("cookie"), 1U);
    EXPECT_EQ(on.seen("usdt_unread_hits"), 0U);
  }
  Attached on("take_typed", plan_of("partly"), {.carrier = GetParam()});
  for (int i = 0; i < 3; ++i) probed::partly(kText, 7);
  EXPECT_EQ(on.seen("hits"), 0U);
  EXPECT_EQ(on.seen("usdt_unread_hits"), 3U);
}

TEST_P(EachCarrier, runs_a_typed_program_of_twelve_parameters) {
  Attached on("take_twelve", plan_of("twelve"), {.carrier = GetParam()});
  constexpr std::array numbers{-9, 8, 7, 6, -5, 4, 3, 2, -1, 0, 1000, 2};
  const auto folded = [&](std::size_t from, std::size_t to) {
    return std::accumulate(numbers.begin() + from, numbers.begin() + to, 0, [](int sum, int n) { return sum * 2 + n; });
  };
  probed::twelve(numbers.data());
  EXPECT_EQ(on.seen("hits"), 1U);
  EXPECT_EQ(on.seen<std::int64_t>("values", 0), folded(0, 7));
  EXPECT_EQ(on.seen<std::int64_t>("values", 1), folded(7, 12));
}

TEST_P(EachCarrier, reads_in_a_loop) {
  Attached on("read_in_a_loop", plan_of("typed"), {.carrier = GetParam()});
  probed::typed(kText, -1000, 65535);
  EXPECT_EQ(on.seen("hits"), 1U);
  EXPECT_EQ(on.seen("values", 0), 4 * (reinterpret_cast<std::uintptr_t>(kText) - 1000 + 65535));
}

TEST_P(EachCarrier, hands_on_floats_as_their_bits) {
  Attached on("read_all", plan_of("floats"), {.carrier = GetParam()});
  probed::floats(-0.5F, 1e300);
  EXPECT_EQ(float_from_bits(on.seen("values", 0), 4), -0.5);
  EXPECT_EQ(float_from_bits(on.seen("values", 1), 8), 1e300);
}

TEST_P(EachCarrier, tells_sites_of_a_plan_apart) {
  Attached on("read_site", plan_of("*"), {.carrier = GetParam()});
  const auto site_of = [&](const char* name) {
    for (const Index<PlannedSite> i : on.plan().sites.indices())
      if (on.plan().probes[on.plan().sites[i].probe].name == name) return i.value;
    return 0xffffffffU;
  };
  probed::typed(kText, 1, 2);
  EXPECT_EQ(on.seen("site"), site_of("typed"));
  probed::mixed(kText, 1, 2, 3);
  EXPECT_EQ(on.seen("site"), site_of("mixed"));
  probed::partly(kText, 1);
  EXPECT_EQ(on.seen("site"), site_of("partly"));
}

TEST_P(EachCarrier, keeps_the_user_cookie_of_each_probe) {
  Attached on("read_site",
              plan_of("*", {.user_cookie_of = [](const PointName& point) { return point.name.size() * 1000; }}),
              {.carrier = GetParam()});
  probed::typed(kText, 1, 2);
  EXPECT_EQ(on.seen("cookie"), 5000U);
  probed::partly(kText, 1);
  EXPECT_EQ(on.seen("cookie"), 6000U);
}

/// A page that has content and is not in memory of this process yet.
class AbsentPage {
 public:
  AbsentPage() {
    std::FILE* file = std::tmpfile();
    std::vector<char> bytes(8192, 'x');
    const std::uint64_t number = 42;
    std::memcpy(bytes.data(), &number, sizeof(number));
    std::memcpy(bytes.data() + 4090, "over the edge", 14);
    std::fwrite(bytes.data(), 1, bytes.size(), file);
    std::fflush(file);
    start_ = static_cast<char*>(::mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE, ::fileno(file), 0));
    ::madvise(start_, 8192, MADV_RANDOM);  // no faulting of the neighbours
    std::fclose(file);
  }
  ~AbsentPage() { ::munmap(start_, 8192); }
  AbsentPage(const AbsentPage&) = delete;
  AbsentPage& operator=(const AbsentPage&) = delete;
  [[nodiscard]] const std::uint64_t* number() const { return reinterpret_cast<const std::uint64_t*>(start_); }
  [[nodiscard]] const char* text() const { return start_ + 4090; }

 private:
  char* start_;
};

TEST_P(EachCarrier, says_that_memory_is_paged_out) {
  const AbsentPage page;
  Attached on("read_memory", plan_of("memory"), {.carrier = GetParam()});
  probed::memory(page.number(), page.text());
  ASSERT_EQ(on.seen("hits"), 1U);
  EXPECT_EQ(on.error(0), -EFAULT);
  EXPECT_EQ(on.seen<std::int64_t>("text_length"), -EFAULT);
  probed::memory(page.number(), "");
  EXPECT_EQ(on.text(), "");
  EXPECT_EQ(on.seen<std::int64_t>("text_length"), 1) << "the closing 0 counts";
}

TEST_P(EachCarrier, waits_for_memory_that_is_paged_out_if_the_program_may_sleep) {
  if (!may_sleep()) GTEST_SKIP() << "no sleepable programs on sites on this kernel";
  const AbsentPage page;
  Attached on("read_memory_sleeping", plan_of("memory"), {.carrier = GetParam()});
  probed::memory(page.number(), page.text());
  ASSERT_EQ(on.seen("hits"), 1U);
  EXPECT_EQ(on.error(0), 0);
  EXPECT_EQ(on.seen("values", 0), 42U);
  EXPECT_EQ(on.text(), "over the edge");
  EXPECT_EQ(on.seen<std::int64_t>("text_length"), 14);
  probed::memory(nullptr, nullptr);
  EXPECT_EQ(on.error(0), -EFAULT);
  EXPECT_EQ(on.seen<std::int64_t>("text_length"), -EFAULT);
}

TEST_F(OwnPrograms, take_the_cookie_carrier_where_it_is_asked_for) {
  if (!has_cookies()) GTEST_SKIP() << kNoCookies;
  Attached on("take_typed", plan_of("typed"), {.carrier = Carrier::cookie});
  EXPECT_EQ(on.link().carrier(), Carrier::cookie);
  probed::typed(kText, -3, 4);
  EXPECT_EQ(on.seen<std::int64_t>("values", 1), -3);
}

TEST_F(OwnPrograms, that_sleep_take_the_cookie_carrier_too) {
  if (!has_cookies()) GTEST_SKIP() << kNoCookies;
  if (!may_sleep()) GTEST_SKIP() << "no sleepable programs on sites on this kernel";
  Attached sleeping("take_typed_sleeping", plan_of("memory"), {.carrier = Carrier::cookie});
  const std::uint64_t number = 77;
  probed::memory(&number, kText);
  EXPECT_EQ(sleeping.seen("values", 0), 77U);
}

TEST_F(OwnPrograms, may_leave_site_numbers_out) {
  if (!has_cookies()) GTEST_SKIP() << kNoCookies;
  Attached on("read_site", plan_of("typed"), {.carrier = Carrier::cookie, .site_numbers = false});
  probed::typed(kText, 1, 2);
  EXPECT_EQ(on.seen("site"), 0xffffffffU);
}

TEST_F(OwnPrograms, are_loaded_where_they_are_wanted) {
  auto object = BpfObject::open(own_programs_object());
  ASSERT_TRUE(object);
  const AttachPlan plan = plan_of("typed");
  const auto wrong = object->load(plan, {.programs = {"read_all", "read_al"}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::not_found);
  EXPECT_THAT(wrong.error().message, HasSubstr("'read_al'"));
  const auto loaded = object->load(plan, {.programs = {"take_nothing", "read_memory"}});
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_TRUE(loaded->attach("take_nothing"));
  EXPECT_TRUE(loaded->attach("read_memory"));
  EXPECT_EQ(loaded->attach().error().kind, ErrorKind::invalid_argument) << "which of the two?";
  const auto other = loaded->attach("read_all");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("no program 'read_all' loaded"));
}

bool is_loaded(const Result<LoadedObject>& object, std::string_view program) {
  EXPECT_TRUE(object) << object.error().message;
  return object && object->program_fd(program).has_value();
}

TEST_F(OwnPrograms, are_loaded_as_often_as_wanted_with_the_constants_of_each_time) {
  auto object = BpfObject::open(own_programs_object());
  ASSERT_TRUE(object) << object.error().message;
  const auto sum_of_one_hit = [&]() -> std::uint64_t {
    auto loaded = object->load(plan_of("typed"), {.programs = {"read_in_a_loop"}});
    EXPECT_TRUE(loaded) << loaded.error().message;
    auto link = loaded->attach("read_in_a_loop");
    EXPECT_TRUE(link) << link.error().message;
    probed::typed(kText, -1000, 65535);
    return *static_cast<const std::uint64_t*>(loaded->global("values"));
  };
  const std::uint64_t once = reinterpret_cast<std::uintptr_t>(kText) - 1000 + 65535;
  ASSERT_TRUE(object->set_constant("read_times", std::uint32_t{2}));
  EXPECT_EQ(sum_of_one_hit(), 2 * once);
  EXPECT_EQ(sum_of_one_hit(), 2 * once);
  ASSERT_TRUE(object->set_constant("read_times", std::uint32_t{3}));
  EXPECT_FALSE(object->load(plan_of("typed"), {.programs = {"no_such_program"}}));
  EXPECT_FALSE(object->set_constant("no_such_constant", std::uint32_t{1}));
  EXPECT_EQ(sum_of_one_hit(), 3 * once);
  EXPECT_FALSE(object->programs().empty());
}

TEST_F(OwnPrograms, for_no_attach_point_are_loaded_where_nothing_is_chosen_or_they_are) {
  const auto object = BpfObject::open(own_programs_object());
  const AttachPlan plan = plan_of("typed");
  const auto all = object->load(plan);
  EXPECT_TRUE(is_loaded(all, "beside")) << "as its section says";
  EXPECT_FALSE(is_loaded(all, "asleep")) << "as its section says";

  const auto one = object->load(plan, {.programs = {"read_site"}});
  EXPECT_TRUE(is_loaded(one, "read_site"));
  EXPECT_FALSE(is_loaded(one, "beside"));

  const auto named = object->load(plan, {.programs = {"read_site", "asleep", "beside"}});
  EXPECT_TRUE(is_loaded(named, "asleep"));
  EXPECT_TRUE(is_loaded(named, "beside"));
  EXPECT_FALSE(is_loaded(named, "read_all"));
}

// Each argument is one of several values by the path taken, and so is what follows: the verifier must not go through
// each combination of them.
TEST_F(OwnPrograms, cost_the_verifier_no_more_for_each_argument_the_more_there_are) {
  if (!has_cookies()) GTEST_SKIP() << kNoCookies;
  const auto load = [](const char* program) {
    auto object = BpfObject::open(own_programs_object());
    const auto before = std::chrono::steady_clock::now();
    const auto loaded = object->load(plan_of("typed"), {.carrier = Carrier::table, .programs = {program}});
    EXPECT_TRUE(loaded) << loaded.error().message;
    return std::chrono::steady_clock::now() - before;
  };
  const auto three = load("keep_three");
  EXPECT_LT(load("keep_nine"), 20 * three);
}

TEST_F(OwnPrograms, of_another_version_are_refused) {
  auto object = BpfObject::open(own_programs_object());
  ASSERT_TRUE(object->set_constant("usdt_spec_version", std::uint32_t{USDT_SPEC_VERSION + 1}));
  const auto loaded = object->load(plan_of("typed"));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().kind, ErrorKind::invalid_argument);
  EXPECT_THAT(loaded.error().message, HasSubstr("compile it again"));
}

TEST_F(OwnPrograms, the_verifier_refuses_are_told_from_those_of_who_may_not_load) {
  const std::size_t before = open_descriptors();
  {
    auto object = BpfObject::open(refused_object());
    const auto loaded = object->load(plan_of("typed"));
    ASSERT_FALSE(loaded);
    const Error& error = loaded.error();
    EXPECT_EQ(to_string(error.kind), "verifier") << error.message;
    EXPECT_THAT(error.message, HasSubstr("the program 'reads_anywhere': "));
    EXPECT_THAT(error.message, HasSubstr("invalid mem access"));
    EXPECT_THAT(error.message, testing::Not(HasSubstr("processed ")));
    // The whole: from the first instruction to the statistics.
    EXPECT_THAT(error.log, HasSubstr("0: (")) << error.log;
    EXPECT_THAT(error.log, HasSubstr("processed "));
    EXPECT_THAT(error.log, HasSubstr("invalid mem access"));
    EXPECT_THAT(error.log, testing::Not(HasSubstr("libbpf")));
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(OwnPrograms, that_run_out_of_descriptors_say_so_and_leave_nothing) {
  if (!has_cookies()) GTEST_SKIP() << kNoCookies;
  const AttachPlan plan = plan_of("*");
  const LoadOptions options{.carrier = Carrier::per_link, .programs = {"read_site"}};
  // The library raises a soft limit, and not everybody may raise a hard one again that was lowered: others take the
  // room.
  const rlimit few{1024, 1024};
  ::setrlimit(RLIMIT_NOFILE, &few);
  const std::size_t before = open_descriptors();
  {
    auto object = BpfObject::open(own_programs_object());
    std::vector<int> taken;
    const std::size_t opened = open_descriptors();  // since libbpf 1.4 each map of an object has one
    while (opened + taken.size() + 20 < few.rlim_max) taken.push_back(::dup(STDERR_FILENO));
    const auto loaded = object->load(plan, options);
    for (const int fd : taken) ::close(fd);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().kind, ErrorKind::limit);
    EXPECT_THAT(loaded.error().message, HasSubstr("ulimit -n"));
    EXPECT_EQ(open_descriptors(), opened);
    const auto again = object->load(plan, options);
    EXPECT_TRUE(again) << "it may be tried again: " << again.error().message;
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(OwnPrograms, are_pinned_in_a_bpf_file_system_only) {
  if (probe_feature(Feature::attach_cookie).answer == Answer::no)
    GTEST_SKIP() << "no links on perf events on this kernel (Linux 5.15, as cookies)";
  Attached on("read_site", plan_of("typed"));
  std::string directory = (std::filesystem::temp_directory_path() / "usdt-bpf-XXXXXX").string();
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  for (const std::string& pin : {directory + "/pin", directory + "/no/such/pin"}) {
    const auto pinned = on.link().pin(pin);
    ASSERT_FALSE(pinned);
    EXPECT_EQ(pinned.error().kind, ErrorKind::invalid_argument);
    EXPECT_THAT(pinned.error().message, HasSubstr(directory));
    EXPECT_THAT(pinned.error().message, HasSubstr("mount -t bpf"));
    EXPECT_FALSE(std::filesystem::exists(pin));
  }
  std::filesystem::remove(directory);
}

TEST_F(OwnPrograms, of_a_file_that_is_written_to_are_let_go_pinned_or_not) {
  if (!has_cookies()) GTEST_SKIP() << kNoCookies;
  const test::BpfDirectory directory;
  if (!directory.mounted()) GTEST_SKIP() << "no BPF file system can be mounted here";
  std::string copy = (std::filesystem::temp_directory_path() / "usdt-copy-XXXXXX").string();
  ::close(::mkstemp(copy.data()));
  std::filesystem::copy_file("/proc/self/exe", copy, std::filesystem::copy_options::overwrite_existing);
  Attached on("read_site", plan_of("*", {}, copy));
  ASSERT_TRUE(on.link().pin(directory.file("pin")));
  const std::size_t sites = on.link().attached();
  EXPECT_TRUE(on.link().changes().empty());
  std::filesystem::resize_file(copy, 100);
  for (int i = 0; i < 100 && on.link().changes().empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto changes = on.link().changes();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(to_string(changes[0].kind), "written");
  EXPECT_EQ(changes[0].file, Index<PlannedFile>(0));
  EXPECT_EQ(changes[0].let_go, sites);
  EXPECT_EQ(on.link().attached(), 0U);
  EXPECT_EQ(Link::open(directory.file("pin")).error().kind, ErrorKind::not_found);
  std::filesystem::remove(copy);
}

TEST_F(OwnPrograms, stay_attached_while_they_are_pinned) {
  if (!has_cookies()) GTEST_SKIP() << kNoCookies;
  const test::BpfDirectory directory;
  if (!directory.mounted()) GTEST_SKIP() << "no BPF file system can be mounted here";
  const std::filesystem::path pin = directory.file("pin");
  Attached on("read_site", plan_of("*"), {.carrier = Carrier::per_link});
  const auto pinned = on.link().pin(pin);
  ASSERT_TRUE(pinned) << pinned.error().message;
  EXPECT_EQ(on.link().pin(pin).error().os_error, EEXIST);
  const std::size_t sites = on.link().attached();
  on.drop();
  probed::typed(kText, 1, 2);
  EXPECT_EQ(on.seen("hits"), 1U);
  {
    auto again = Link::open(pin);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->attached(), sites);
    EXPECT_EQ(again->carrier(), Carrier::per_link);
    EXPECT_EQ(again->backend(), on.object().backend());
    ASSERT_TRUE(Link::unpin(pin));
    probed::typed(kText, 1, 2);
    EXPECT_EQ(on.seen("hits"), 2U) << "the opened link still holds it";
  }
  probed::typed(kText, 1, 2);
  EXPECT_EQ(on.seen("hits"), 2U);
  EXPECT_EQ(Link::open(pin).error().kind, ErrorKind::not_found);
}

TEST_F(OwnPrograms, may_be_attached_by_several_threads_at_once) {
  std::vector<Carrier> carriers{Carrier::automatic, Carrier::ip_hash};
  if (has_cookies()) carriers.insert(carriers.end(), {Carrier::table, Carrier::per_link});
  std::atomic<int> done = 0, good = 0;
  const auto enough = std::chrono::steady_clock::now() + std::chrono::seconds(5);  // an emulated machine takes minutes
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 3 && std::chrono::steady_clock::now() < enough; ++i) {
        Attached on("read_site", plan_of("typed"), {.carrier = carriers[t % carriers.size()]});
        probed::typed(kText, 1, 2);
        ++done;
        good += on.seen("hits") > 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(done, 8);
  EXPECT_EQ(good, done);
}

TEST_F(OwnPrograms, of_one_object_may_be_attached_by_several_threads_at_once) {
  const auto object = BpfObject::open(own_programs_object())->load(plan_of("typed"));
  ASSERT_TRUE(object) << object.error().message;
  std::mutex mutex;
  std::vector<Link> links;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      auto link = object->attach("read_site");
      ASSERT_TRUE(link) << link.error().message;
      const std::lock_guard lock(mutex);
      links.push_back(std::move(*link));
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(links.size(), 8U);
  probed::typed(kText, 1, 2);
  EXPECT_EQ(*static_cast<const std::uint64_t*>(object->global("hits")), 8U);
}

}  // namespace
}  // namespace usdt
