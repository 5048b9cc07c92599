// SPDX-License-Identifier: BSD-2-Clause
// The instructions that expressions become answer as evaluate() does. The kernel runs them without any probe
// (BPF_PROG_TEST_RUN of raw tracepoints, Linux 5.10). USDT_LONG=1: 10^6 random ones.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <set>
#include <string>
#include <utility>

#include "expr/compile.hpp"
#include "expr/row.hpp"
#include "random_expressions.hpp"
#include "sys/unique_fd.hpp"
#include "usdt/bpf/filter.h"
#include "usdt/table.hpp"

namespace usdt::test {
namespace {

using sys::UniqueFd;

/// What a program is run with: values in the order of TypedExpression::args(), then `unread` and `duration`.
using Context = std::array<std::uint64_t, USDT_FILTER_VALUES + 2>;

long bpf(int command, bpf_attr& attr) { return ::syscall(SYS_bpf, command, &attr, sizeof(attr)); }

bpf_insn insn(int code, unsigned to, unsigned from, int offset, std::int32_t immediate) {
  bpf_insn made{};
  made.code = static_cast<std::uint8_t>(code);
  made.dst_reg = to & 15;
  made.src_reg = from & 15;
  made.off = static_cast<std::int16_t>(offset);
  made.imm = immediate;
  return made;
}

/// A program that asks the question of `code` about its context.
std::vector<bpf_insn> program_round(const std::vector<bpf_insn>& code) {
  constexpr int kAt = -static_cast<int>(sizeof(usdt_question));
  std::vector<bpf_insn> program;
  const auto copy = [&](int from, std::size_t to) {
    program.push_back(insn(BPF_LDX | BPF_MEM | 0x18, 2, 1, from, 0));
    program.push_back(insn(BPF_STX | BPF_MEM | 0x18, 10, 2, kAt + static_cast<int>(to), 0));
  };
  for (int i = 0; i < USDT_FILTER_VALUES; ++i) copy(8 * i, static_cast<std::size_t>(8 * i));
  copy(8 * USDT_FILTER_VALUES, offsetof(usdt_question, unread));
  copy(8 * (USDT_FILTER_VALUES + 1), offsetof(usdt_question, duration));
  program.push_back(insn(BPF_ALU64 | 0xb0 | BPF_K, 6, 0, 0, 4711));  // r6 is the program's
  const auto placed = expr::in_frame(code, kAt, kAt);
  program.insert(program.end(), placed.begin(), placed.end());
  program.push_back(insn(BPF_JMP | BPF_JEQ | BPF_K, 6, 0, 1, 4711));
  program.push_back(insn(BPF_ALU64 | 0xb0 | BPF_K, 0, 0, 0, 99));
  program.push_back(insn(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
  return program;
}

/// Nothing: the kernel refuses it, whose log is in `log`.
UniqueFd load(const std::vector<bpf_insn>& program, std::string& log) {
  bpf_attr attr{};
  attr.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
  attr.insns = reinterpret_cast<std::uint64_t>(program.data());
  attr.insn_cnt = static_cast<std::uint32_t>(program.size());
  attr.license = reinterpret_cast<std::uint64_t>("GPL");
  const long fd = bpf(BPF_PROG_LOAD, attr);
  if (fd >= 0) return UniqueFd(static_cast<int>(fd));
  log.resize(1 << 20);
  attr.log_buf = reinterpret_cast<std::uint64_t>(log.data());
  attr.log_size = static_cast<std::uint32_t>(log.size());
  attr.log_level = 1;
  static_cast<void>(bpf(BPF_PROG_LOAD, attr));
  return {};
}

/// An array whose element is `table`.
UniqueFd map_of(const std::vector<std::uint64_t>& table) {
  bpf_attr attr{};
  attr.map_type = BPF_MAP_TYPE_ARRAY;
  attr.key_size = sizeof(std::uint32_t);
  attr.value_size = static_cast<std::uint32_t>(table.size() * sizeof(table[0]));
  attr.max_entries = 1;
  UniqueFd map(static_cast<int>(bpf(BPF_MAP_CREATE, attr)));
  const std::uint32_t first = 0;
  attr = {};
  attr.map_fd = static_cast<std::uint32_t>(map.get());
  attr.key = reinterpret_cast<std::uint64_t>(&first);
  attr.value = reinterpret_cast<std::uint64_t>(table.data());
  EXPECT_EQ(bpf(BPF_MAP_UPDATE_ELEM, attr), 0) << std::strerror(errno);
  return map;
}

std::uint32_t run(const UniqueFd& program, const Context& context) {
  bpf_attr attr{};
  attr.test.prog_fd = static_cast<std::uint32_t>(program.get());
  attr.test.ctx_in = reinterpret_cast<std::uint64_t>(context.data());
  attr.test.ctx_size_in = sizeof(context);
  if (bpf(BPF_PROG_TEST_RUN, attr) != 0) {
    ADD_FAILURE() << "run it: " << std::strerror(errno);
    return 99;
  }
  return attr.test.retval;
}

class CompiledExpression : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root: loads BPF programs";
  }

  /// The kernel's answer to `expression` about `hit` is that of evaluate().
  static void expect_same(const std::string& text, const TypedExpression& expression, const UniqueFd& program,
                          const NumbersOfHit& hit) {
    Context context{};
    for (std::size_t i = 0; i < expression.args().size(); ++i) {
      context[i] = hit.numbers[expression.args()[i]];
      if ((hit.unread >> expression.args()[i] & 1) != 0) context[USDT_FILTER_VALUES] |= 1U << i;
    }
    const auto wanted = evaluate(expression, hit);
    const std::uint32_t got = run(program, context);
    EXPECT_EQ(got, !wanted        ? USDT_UNDECIDED
                   : *wanted != 0 ? USDT_YES
                                  : USDT_NO)
        << text << fmt::format(" of {:#x}, unread {:#x}", fmt::join(hit.numbers, " "), hit.unread);
  }

  static UniqueFd loaded(const std::string& text, const TypedExpression& expression) {
    auto code = expr::compile(expression, {});
    if (!code) {
      EXPECT_EQ(code.error().kind, ErrorKind::limit) << text << ": " << code.error().message;
      return {};
    }
    const UniqueFd table = code->table.empty() ? UniqueFd() : map_of(code->table);
    expr::set_table(code->instructions, table.get());
    std::string log;
    UniqueFd program = load(program_round(code->instructions), log);
    EXPECT_GE(program.get(), 0) << text << "\n" << log.c_str();
    return program;
  }
};

/// How many random ones there are.
std::size_t how_many() { return test::how_many(1000, 1'000'000); }

/// Many expressions in one program, since to load one takes longer than to answer hundreds: each has its arguments in a
/// map that this process sees, and leaves its answer and its value there.
class Batch {
 public:
  static constexpr std::size_t kMost = 64;
  struct Member {
    std::string text;
    TypedExpression expression;
    std::vector<NumbersOfHit> hits;
  };

  Batch() {
    bpf_attr attr{};
    attr.map_type = BPF_MAP_TYPE_ARRAY;
    attr.key_size = sizeof(std::uint32_t);
    attr.value_size = sizeof(Shared);
    attr.max_entries = 1;
    attr.map_flags = BPF_F_MMAPABLE;
    map_ = UniqueFd(static_cast<int>(bpf(BPF_MAP_CREATE, attr)));
    void* shared = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, map_.get(), 0);
    EXPECT_NE(shared, MAP_FAILED) << std::strerror(errno);
    if (shared != MAP_FAILED) shared_ = static_cast<Shared*>(shared);
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch() {
    if (shared_ != nullptr) ::munmap(shared_, sizeof(Shared));
  }

  /// The kernel's answers to all of them are those of evaluate(); returns how many there were.
  [[nodiscard]] std::size_t compare(const std::vector<Member>& members) const {
    std::vector<bpf_insn> program{insn(BPF_LD | BPF_IMM | 0x18, 7, BPF_PSEUDO_MAP_VALUE, 0, map_.get())};
    program.push_back(insn(0, 0, 0, 0, 0));
    std::vector<bool> there;
    for (const Member& member : members) there.push_back(add(program, member, there.size()));
    program.push_back(insn(BPF_ALU64 | 0xb0 | BPF_K, 0, 0, 0, 0));
    program.push_back(insn(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
    std::string log;
    const UniqueFd loaded = load(program, log);
    EXPECT_GE(loaded.get(), 0) << members.front().text << " and others\n" << log.c_str();
    if (!loaded || shared_ == nullptr) return 0;
    std::size_t compared = 0;
    for (std::size_t k = 0; k < members.front().hits.size(); ++k) {
      for (std::size_t n = 0; n < members.size(); ++n) {
        std::ranges::copy(members[n].hits[k].numbers, shared_->arguments[n].begin());
        shared_->arguments[n][USDT_FILTER_VALUES] = members[n].hits[k].unread;
      }
      EXPECT_EQ(run(loaded, {}), 0U);
      for (std::size_t n = 0; n < members.size(); ++n) compared += there[n] ? compare(members[n], n, k) : 0;
    }
    return compared;
  }

 private:
  struct Told {
    std::uint64_t answer, value;
  };
  struct Shared {
    std::array<Told, kMost> told;
    std::array<Context, kMost> arguments;
  };

  [[nodiscard]] std::size_t compare(const Member& member, std::size_t n, std::size_t k) const {
    const NumbersOfHit& hit = member.hits[k];
    const auto wanted = evaluate(member.expression, member.expression.root().of[1], hit);
    const Told told = shared_->told[n];
    EXPECT_EQ(told.answer, wanted ? USDT_YES : USDT_UNDECIDED) << member.text;
    EXPECT_EQ(told.value, wanted.value_or(told.value))
        << member.text << fmt::format(" of {:#x}", fmt::join(hit.numbers, " "));
    return 1;
  }

  /// Asks for the expression as the key of a row. False: it does not fit a program.
  static bool add(std::vector<bpf_insn>& program, const Member& member, std::size_t n) {
    constexpr int kQuestion = -static_cast<int>(sizeof(usdt_question));
    constexpr int kRow = kQuestion - static_cast<int>(sizeof(usdt_row));
    constexpr int kKey = kRow + static_cast<int>(offsetof(usdt_row, key));
    auto code = expr::compile(member.expression, {});
    if (!code) {
      EXPECT_EQ(code.error().kind, ErrorKind::limit) << member.text << ": " << code.error().message;
      return false;
    }
    program.push_back(insn(BPF_ALU64 | 0xb0 | BPF_K, 3, 0, 0, 0));
    program.push_back(insn(BPF_STX | BPF_MEM | 0x18, 10, 3, kKey, 0));
    const int arguments = static_cast<int>(offsetof(Shared, arguments) + n * sizeof(Context));
    program.push_back(insn(BPF_LDX | BPF_MEM | 0x18, 4, 7, arguments + 8 * USDT_FILTER_VALUES, 0));
    for (std::size_t i = 0; i < member.expression.args().size(); ++i) {
      const int position = member.expression.args()[i];
      program.push_back(insn(BPF_LDX | BPF_MEM | 0x18, 2, 7, arguments + 8 * position, 0));
      program.push_back(insn(BPF_STX | BPF_MEM | 0x18, 10, 2, kQuestion + 8 * static_cast<int>(i), 0));
      program.push_back(insn(BPF_ALU64 | 0xb0 | BPF_X, 2, 4, 0, 0));
      program.push_back(insn(BPF_ALU64 | BPF_RSH | BPF_K, 2, 0, 0, position));
      program.push_back(insn(BPF_ALU64 | BPF_AND | BPF_K, 2, 0, 0, 1));
      program.push_back(insn(BPF_ALU64 | BPF_LSH | BPF_K, 2, 0, 0, static_cast<int>(i)));
      program.push_back(insn(BPF_ALU64 | BPF_OR | BPF_X, 3, 2, 0, 0));
    }
    program.push_back(
        insn(BPF_STX | BPF_MEM | 0x18, 10, 3, kQuestion + static_cast<int>(offsetof(usdt_question, unread)), 0));
    const auto placed = expr::in_frame(code->instructions, kQuestion, kRow);
    program.insert(program.end(), placed.begin(), placed.end());
    const int to = static_cast<int>(n * sizeof(Told));
    program.push_back(insn(BPF_STX | BPF_MEM | 0x18, 7, 0, to, 0));
    program.push_back(insn(BPF_LDX | BPF_MEM | 0x18, 1, 10, kKey, 0));
    program.push_back(insn(BPF_STX | BPF_MEM | 0x18, 7, 1, to + 8, 0));
    return true;
  }

  UniqueFd map_;
  Shared* shared_ = nullptr;
};

/// An expression as the key of a row, which has its value.
Result<TypedExpression> typed_as_key(const std::string& text, const std::vector<Arg>& args) {
  auto parsed = parse_expression(text);
  if (!parsed) return fail(parsed.error());
  const Expression row = expr::row_of(nullptr, TableQuestion{.keys = {std::move(*parsed)}});
  std::vector<std::size_t> places;
  for (const ValuePath& path : row.values)
    places.push_back(static_cast<std::size_t>(std::get<std::string>(path.root)[0] - 'a'));
  return TypedExpression::check(row, args, places);
}

TEST_F(CompiledExpression, of_random_numbers_has_the_value_that_records_have) {
  ExpressionWriter writer(611, false);
  const auto args = six_arguments(false);
  const Batch batch;
  std::vector<Batch::Member> members;
  std::size_t asked = 0, refused = 0;
  for (std::size_t n = 0; n < how_many() && !HasFailure(); ++n) {
    const std::string text = writer.expression();
    auto hits = random_hits(writer, args);
    auto expression = typed_as_key(text, args);
    if (!expression) {  // a constant division by 0
      EXPECT_TRUE(expression.error().message.ends_with("a division by 0")) << expression.error().message;
      ++refused;
    } else {
      members.push_back({text, std::move(*expression), std::move(hits)});
    }
    if (members.size() < Batch::kMost && n + 1 < how_many()) continue;
    if (!members.empty()) asked += batch.compare(members);
    members.clear();
  }
  fmt::print("{} values of {} expressions, {} of them with constant divisions by 0\n", asked, how_many(), refused);
  EXPECT_GT(asked, how_many());
}

/// Whether `a` is in the bucket it is in by evaluate().
Expression in_its_bucket(unsigned sub_bits, const std::vector<Arg>& args, const NumbersOfHit& hit) {
  Expression question = log2_buckets(*parse_expression("a"), sub_bits);
  const auto key = TypedExpression::check(question, args, {0});
  const auto bucket = static_cast<std::int64_t>(evaluate(*key, hit).value());
  question.root = {.op = Operator::equal,
                   .of = {question.root, {.op = Operator::integer, .bits = static_cast<std::uint64_t>(bucket)}}};
  return question;
}

TEST_F(CompiledExpression, finds_the_bucket_that_records_are_in) {
  ExpressionWriter writer(22, false);
  for (std::size_t n = 0; n < how_many() / 4 && !HasFailure(); ++n) {
    const auto args = six_arguments(n % 2 == 0);
    NumbersOfHit hit;
    hit.numbers.assign(6, writer.number() >> writer.below(64));
    const auto sub_bits = static_cast<unsigned>(n % 5);
    const Expression question = in_its_bucket(sub_bits, args, hit);
    const auto typed = TypedExpression::check(question, args, {0});
    ASSERT_TRUE(typed) << typed.error().message;
    const UniqueFd program = loaded("bucket", *typed);
    EXPECT_EQ(run(program, {hit.numbers[0]}), USDT_YES) << hit.numbers[0] << " with " << sub_bits;
    EXPECT_EQ(run(program, {~hit.numbers[0]}), USDT_NO) << hit.numbers[0] << " with " << sub_bits;
  }
}

TEST_F(CompiledExpression, finds_the_bucket_that_reals_of_records_are_in) {
  ExpressionWriter writer(23, false);
  constexpr std::array<double, 10> kOdd{0.0, -0.0, 1e-310, -1e-310, 0.1, 0.7, -0.3, 1e308, INFINITY, -INFINITY};
  for (std::size_t n = 0; n < how_many() / 4 && !HasFailure(); ++n) {
    std::vector<Arg> args = six_arguments(false);
    const bool narrow = n % 3 == 0;
    args[0].type = {.size = narrow ? 4U : 8U, .kind = TypeKind::floating};
    const double real = n % 2 == 0 ? kOdd[n / 2 % kOdd.size()] : std::bit_cast<double>(writer.number());
    NumbersOfHit hit;
    hit.numbers.assign(
        6, narrow ? std::bit_cast<std::uint32_t>(static_cast<float>(real)) : std::bit_cast<std::uint64_t>(real));
    for (const Expression& buckets : {log2_buckets(*parse_expression("a"), static_cast<unsigned>(n % 5)),
                                      *linear_buckets(*parse_expression("a"), -10, 16, 3, 1)}) {
      const auto key = TypedExpression::check(buckets, args, {0});
      ASSERT_TRUE(key) << key.error().message;
      const auto bucket = evaluate(*key, hit);
      EXPECT_EQ(bucket.has_value(), !std::isnan(narrow ? static_cast<double>(static_cast<float>(real)) : real));
      for (const std::uint64_t wanted : {bucket.value_or(0), bucket.value_or(0) + 1}) {
        Expression question = buckets;
        question.root = {.op = Operator::equal, .of = {buckets.root, {.op = Operator::integer, .bits = wanted}}};
        const auto typed = TypedExpression::check(question, args, {0});
        ASSERT_TRUE(typed) << typed.error().message;
        expect_same("bucket", *typed, loaded("bucket", *typed), hit);
      }
    }
  }
}

TEST_F(CompiledExpression, of_reals_orders_them_as_ieee_754_does) {
  ExpressionWriter writer(754, false);
  std::vector<Arg> args = six_arguments(false);
  for (std::size_t i = 0; i < 4; ++i) args[i].type = {.size = i < 2 ? 8U : 4U, .kind = TypeKind::floating};
  constexpr std::array kOdd{0.0, -0.0, 1.0, -1.0, 0.1, 1e-310, -1e-310, 1e308, 3.5};
  for (const char* op : {"<", "<=", ">", ">=", "==", "!="}) {
    for (const char* of : {"a {} b", "c {} d", "a {} 0.1", "c {} 0.1", "c {} 3.5", "-1 {} a", "c {} 1e-45"}) {
      const std::string text = fmt::format(fmt::runtime(of), op);
      const auto expression = typed(text, args);
      ASSERT_TRUE(expression) << text << ": " << expression.error().message;
      const UniqueFd program = loaded(text, *expression);
      for (int k = 0; k < 100 && !HasFailure(); ++k) {
        NumbersOfHit hit;
        for (std::size_t i = 0; i < 6; ++i) {
          const double odd = kOdd[writer.below(kOdd.size())];
          const bool wide = i < 2;
          const std::uint64_t random = wide ? writer.number() : writer.number() & 0xffff'ffff;
          const std::uint64_t chosen = wide ? std::bit_cast<std::uint64_t>(odd)
                                            : std::uint64_t{std::bit_cast<std::uint32_t>(static_cast<float>(odd))};
          hit.numbers.push_back(writer.below(2) == 0 ? random : chosen);
        }
        if (writer.below(4) == 0) hit.numbers[1] = hit.numbers[0], hit.numbers[3] = hit.numbers[2];
        expect_same(text, *expression, program, hit);
      }
    }
  }
}

TEST_F(CompiledExpression, knows_the_task_and_its_name) {
  ASSERT_EQ(::prctl(PR_SET_NAME, "a thread's name"), 0);
  const auto args = six_arguments(false);
  const auto answer = [&](const std::string& text) {
    const auto expression = typed(text, args);
    EXPECT_TRUE(expression) << text << ": " << expression.error().message;
    if (!expression) return 99U;
    const UniqueFd program = loaded(text, *expression);
    Context context{};
    context[USDT_FILTER_VALUES + 1] = 5'000'000;
    return program.get() < 0 ? 99U : run(program, context);
  };
  EXPECT_EQ(answer(fmt::format("pid == {} && tid == {}", ::getpid(), ::gettid())), USDT_YES);
  EXPECT_EQ(answer(fmt::format("pid != {}", ::getpid())), USDT_NO);
  EXPECT_EQ(answer(fmt::format("uid == {} && gid == {}", ::getuid(), ::getgid())), USDT_YES);
  EXPECT_EQ(answer("duration == 5ms"), USDT_YES);
  EXPECT_EQ(answer("cpu < 4096 && nsecs > 1s && cgroup != 0"), USDT_YES);
  EXPECT_EQ(answer("comm == \"a thread's name\""), USDT_YES);
  EXPECT_EQ(answer("comm == \"a thread's nam\""), USDT_NO);
  EXPECT_EQ(answer("comm =~ \"a thread*\""), USDT_YES);
  EXPECT_EQ(answer("comm =~ \"b*\""), USDT_NO);
  EXPECT_EQ(answer("comm =~ \"*\""), USDT_YES);
  EXPECT_EQ(answer("comm != \"a name of more than fifteen bytes\""), USDT_YES);
}

TEST_F(CompiledExpression, reads_texts_only_as_far_as_it_must) {
  std::vector<Arg> args = six_arguments(false);
  args[0].type = {.size = 8, .kind = TypeKind::text};
  const auto answer = [&](const std::string& text, const char* at) {
    const auto expression = typed(text, args);
    EXPECT_TRUE(expression) << text << ": " << expression.error().message;
    if (!expression) return 99U;
    const UniqueFd program = loaded(text, *expression);
    return program.get() < 0 ? 99U : run(program, {reinterpret_cast<std::uint64_t>(at)});
  };
  for (const std::size_t length : {0U, 1U, 7U, 8U, 15U, 16U, 17U, 31U, 32U, 33U, 47U, 48U, 200U}) {
    std::string text(length, 'x');
    for (std::size_t i = 0; i < length; ++i) text[i] = static_cast<char>('a' + i % 26);
    const std::string copy = text;
    EXPECT_EQ(answer("a == \"" + text + "\"", copy.c_str()), USDT_YES) << length;
    EXPECT_EQ(answer("a == \"" + text + "!\"", copy.c_str()), USDT_NO) << length;
    EXPECT_EQ(answer("a =~ \"" + text + "*\"", (copy + "more").c_str()), USDT_YES) << length;
    EXPECT_EQ(answer("a =~ \"" + text + "!*\"", copy.c_str()), USDT_NO) << length;
    if (length == 0) continue;
    EXPECT_EQ(answer("a == \"" + text.substr(0, length - 1) + "\"", copy.c_str()), USDT_NO) << length;
    EXPECT_EQ(answer("a == \"" + text.substr(0, length - 1) + "Z\"", copy.c_str()), USDT_NO) << length;
  }
  EXPECT_EQ(answer("a == \"x\"", nullptr), USDT_UNDECIDED);
  EXPECT_EQ(answer("a != \"x\"", nullptr), USDT_UNDECIDED);
}

/// Memory that ends where the next page cannot be read.
class EndOfPage {
 public:
  EndOfPage() : size_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
    void* pages = ::mmap(nullptr, 2 * size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    page_ = static_cast<char*>(pages);
    ::mprotect(page_ + size_, size_, PROT_NONE);
  }
  EndOfPage(const EndOfPage&) = delete;
  EndOfPage& operator=(const EndOfPage&) = delete;
  ~EndOfPage() { ::munmap(page_, 2 * size_); }

  /// Where a copy of `bytes` is.
  std::uint64_t put(std::string_view bytes) {
    char* at = page_ + size_ - bytes.size();
    std::memcpy(at, bytes.data(), bytes.size());
    return reinterpret_cast<std::uint64_t>(at);
  }

 private:
  std::size_t size_;
  char* page_;
};

constexpr std::size_t kArray = 24;

/// What arguments point to: a and e to a NUL, b an array of kArray characters, c as long as d says; all of them at the
/// end of what can be read.
struct Texts {
  std::string a = {}, b = {}, c = {}, e = {};
};

struct TextsOfHit final : HitFacts {
  explicit TextsOfHit(const Texts& of) : texts(of) {}
  const Texts& texts;
  bool cut = false;
  [[nodiscard]] const std::string& at(std::size_t position) const {
    return position == 0 ? texts.a : position == 1 ? texts.b : position == 2 ? texts.c : texts.e;
  }
  [[nodiscard]] std::optional<std::uint64_t> value(std::size_t position) const override {
    return position == 3 ? std::optional(texts.c.size()) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::string_view> text(std::size_t position) const override { return at(position); }
  [[nodiscard]] bool is_cut(std::size_t) const override { return cut; }
  [[nodiscard]] std::optional<std::uint64_t> field(HitField) const override { return std::nullopt; }
  [[nodiscard]] std::optional<std::string_view> comm() const override { return "abaab"; }
  [[nodiscard]] std::optional<std::string> site_text(HitField field) const override {
    return field == HitField::name ? "abaab" : field == HitField::provider ? "ab" : "ab:abaab";
  }
};

class CompiledTexts : public CompiledExpression {
 protected:
  CompiledTexts() {
    for (const std::size_t i : {0, 1, 2, 4}) args_[i].type = {.size = 8, .kind = TypeKind::text};
    args_[1].length = 5;
    args_[2].length = 3;
    args_[3].type = {.size = 8};
    args_[5].hidden = true;
    args_[5].location = Constant{kArray};
    ::prctl(PR_SET_NAME, "abaab");
  }

  std::uint32_t answer(const std::string& text, const Texts& texts) {
    const TextsOfHit hit(texts);
    auto known = programs_.find(text);
    if (known == programs_.end()) {
      auto expression = typed(text, args_);
      if (expression) expression = expression->at_site({.provider = "ab", .name = "abaab"});
      EXPECT_TRUE(expression) << text << ": " << expression.error().message;
      if (!expression) return 99;
      UniqueFd program = loaded(text, *expression);
      known = programs_.emplace(text, std::pair(std::move(*expression), std::move(program))).first;
    }
    const auto& [expression, program] = known->second;
    if (!program) return 99;
    Context context{};
    for (std::size_t i = 0; i < expression.args().size(); ++i) {
      const std::size_t position = expression.args()[i];
      const bool ends_at_nul = position == 0 || position == 4;
      context[i] = position == 3 ? texts.c.size()
                                 : pages_[position].put(hit.at(position) + (ends_at_nul ? std::string(1, '\0') : ""));
    }
    const auto wanted = evaluate(expression, hit);
    const std::uint32_t got = run(program, context);
    EXPECT_EQ(got, !wanted        ? USDT_UNDECIDED
                   : *wanted != 0 ? USDT_YES
                                  : USDT_NO)
        << text << fmt::format(" of {:?}, {:?}, {:?}, {:?}", texts.a, texts.b, texts.c, texts.e);
    return got;
  }

  std::vector<Arg> args_ = six_arguments(false);
  std::array<EndOfPage, 5> pages_;
  std::map<std::string, std::pair<TypedExpression, UniqueFd>> programs_;
};

/// Few characters, so that many texts match.
std::string few_letters(ExpressionWriter& writer, std::size_t most) {
  std::string text(writer.below(most), ' ');
  for (char& c : text) c = "aab["[writer.below(4)];
  return text;
}

/// As much of `text` as fits an array, and something behind its NUL.
std::string as_array(std::string text) {
  text.resize(std::min(text.size(), kArray));
  if (text.size() < kArray) text.push_back('\0');
  text.resize(kArray, 'b');
  return text;
}

std::string random_glob(ExpressionWriter& writer) {
  std::string glob = few_letters(writer, 6);
  for (std::size_t more = writer.below(5); more > 0; --more) {
    constexpr std::array kPieces{"*", "?", "[ab]", "[!a]", "[^b-z]", "\\*", "*", "a", "[", "b*"};
    glob += kPieces[writer.below(kPieces.size())];
    glob += few_letters(writer, 3);
  }
  return glob;
}

/// As an expression has it in quotes.
std::string quoted(const std::string& text) {
  std::string made = "\"";
  for (const char c : text) made += c == '\\' ? "\\\\" : std::string(1, c);
  return made + "\"";
}

TEST_F(CompiledTexts, match_globs_as_records_do_and_as_fnmatch_says) {
  ExpressionWriter writer(42, false);
  const auto of_length = [&](std::size_t most) { return few_letters(writer, most); };
  for (std::size_t n = 0; n < how_many() / 10 && !HasFailure(); ++n) {
    const std::string glob = random_glob(writer);
    for (int k = 0; k < 8 && !HasFailure(); ++k) {
      const std::size_t most = k % 2 == 0 ? 8 : 40;
      Texts hit{.a = of_length(most), .b = as_array(of_length(most)), .c = of_length(most), .e = ""};
      if (k == 6) hit.a.assign(511, 'a'), hit.c.assign(512, 'a');
      if (k == 7) hit.a = std::string(300, 'a') + "b", hit.c = std::string("a\0b", 3);
      for (const char* subject : {"a", "b", "c", "comm"}) answer(fmt::format("{} =~ {}", subject, quoted(glob)), hit);
      const bool matches = ::fnmatch(glob.c_str(), hit.a.c_str(), 0) == 0;
      EXPECT_EQ(answer("a =~ " + quoted(glob), hit), matches ? USDT_YES : USDT_NO) << glob << " and " << hit.a;
    }
  }
}

TEST_F(CompiledTexts, of_more_than_512_characters_match_where_these_decide) {
  const std::string many(512, 'x');
  EXPECT_EQ(answer("a =~ \"*x?x*\"", {.a = many + "y"}), USDT_YES);
  EXPECT_EQ(answer("a =~ \"x*y\"", {.a = many + "y"}), USDT_UNDECIDED);
  EXPECT_EQ(answer("a =~ \"?[!x]*y\"", {.a = many + "y"}), USDT_NO);
  EXPECT_EQ(answer("a =~ \"x*y\"", {.a = many.substr(2) + "y"}), USDT_YES);
  EXPECT_EQ(answer("a == str(e)", {.a = many, .e = many}), USDT_UNDECIDED);
  EXPECT_EQ(answer("a == str(e)", {.a = many.substr(1), .e = many.substr(1)}), USDT_YES);
}

TEST_F(CompiledTexts, are_compared_with_each_other_as_records_are_and_as_strcmp_says) {
  ExpressionWriter writer(43, false);
  constexpr std::array<std::size_t, 9> kLengths{1, 4, 16, 17, 18, 34, 200, 256, 400};
  for (std::size_t n = 0; n < how_many() && !HasFailure(); ++n) {
    std::string text = few_letters(writer, kLengths[writer.below(kLengths.size())]);
    if (writer.below(8) == 0) text = "abaab";
    if (writer.below(4) == 0) text.resize(kLengths[writer.below(kLengths.size())], 'b');
    Texts hit{.a = text, .b = as_array(text), .c = text, .e = text};
    if (writer.below(3) == 0) hit.a += "a";
    if (writer.below(3) == 0) hit.c += std::string("\0x", 1 + writer.below(2));
    if (writer.below(3) == 0 && !hit.e.empty()) hit.e[writer.below(hit.e.size())] = 'Z';
    if (writer.below(3) == 0) hit.b[writer.below(kArray)] = '\0';
    for (const char* of : {"str(a) == str(b)", "str(a) == c", "c != str(b)", "str(a) == comm", "comm != str(b)",
                           "comm == c", "b == comm", "a in {str(e), str(b)}", "c == c"})
      answer(of, hit);
    EXPECT_EQ(answer("a == str(e)", hit), hit.a == hit.e ? USDT_YES : USDT_NO) << hit.a << " and " << hit.e;
  }
}

TEST_F(CompiledTexts, that_cannot_be_read_have_no_answer) {
  for (const char* text : {"a =~ \"*b*\"", "str(a) == str(e)", "str(e) != str(a)", "a =~ \"?\"", "comm != a"}) {
    const auto expression = typed(text, args_);
    ASSERT_TRUE(expression) << expression.error().message;
    const UniqueFd program = loaded(text, *expression);
    const char* there = "text";
    const bool first = expression->args()[0] == 0;
    Context context{};
    context[first ? 1 : 0] = reinterpret_cast<std::uint64_t>(there);
    EXPECT_EQ(run(program, context), USDT_UNDECIDED) << text;
  }
}

TEST_F(CompiledTexts, that_end_at_no_nul_before_the_next_page_have_no_answer_unless_what_is_there_decides) {
  const auto ask = [&](const std::string& text, const std::string& bytes) {
    const auto expression = typed(text, args_);
    return run(loaded(text, *expression), {pages_[0].put(bytes)});
  };
  const std::string sixteen = "SELECT 1 FROM ab";
  EXPECT_EQ(ask("a =~ \"SELECT*FROM*\"", sixteen + "cd"), USDT_YES);
  EXPECT_EQ(ask("a =~ \"SELECT*WHERE*\"", sixteen + "cd"), USDT_UNDECIDED);
  EXPECT_EQ(ask("a =~ \"*FROM*\"", "FROM"), USDT_UNDECIDED);
  EXPECT_EQ(ask("a =~ \"UPDATE*FROM*\"", sixteen + "cd"), USDT_NO);
}

TEST_F(CompiledTexts, may_be_names_of_probes_which_are_known_before) {
  const Texts hit{.a = "abaab", .b = as_array("ab"), .c = "x", .e = "abaab"};
  for (const char* yes :
       {"name == \"abaab\"", "name =~ \"a*a?\"", "probe == \"ab:abaab\"", "a == name", "name == a", "b == provider",
        "name == comm", "provider != name", "a =~ \"x\" || name =~ \"ab*\"", "name in {\"x\", \"abaab\"}"})
    EXPECT_EQ(answer(yes, hit), USDT_YES) << yes;
  for (const char* no : {"name == \"abaa\"", "provider =~ \"?\"", "c == name", "name == \"x\" && a =~ \"*\""})
    EXPECT_EQ(answer(no, hit), USDT_NO) << no;
}

TEST_F(CompiledTexts, have_the_length_that_is_said_with_them) {
  const Texts hit{.a = "", .b = "", .c = std::string("a\0b", 3), .e = ""};
  EXPECT_EQ(answer("str(c, d) == \"a\\x00b\"", hit), USDT_YES);
  EXPECT_EQ(answer("str(c, d) =~ \"a?b\"", hit), USDT_YES);
  const auto unknown = typed("str(a, d) == \"a\"", args_);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "a was not read with that length");
}

TEST_F(CompiledTexts, may_be_many_in_one_question) {
  std::string text = "a =~ \"*0*\"";
  for (int i = 1; i < 24; ++i) text += fmt::format(" || {} =~ \"*{}*\"", "abce"[i % 4], i);
  EXPECT_EQ(answer(text, {.a = "x", .b = as_array("y"), .c = "z", .e = "23"}), USDT_YES);
  EXPECT_EQ(answer(text, {.a = "x", .b = as_array("y"), .c = "z", .e = "24"}), USDT_NO);
}

}  // namespace
}  // namespace usdt::test
