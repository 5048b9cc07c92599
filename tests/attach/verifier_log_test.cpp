// SPDX-License-Identifier: BSD-2-Clause
#include "program/verifier_log.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace usdt::backends {
namespace {

// As libbpf 1.1 printed it on Linux 6.18.
constexpr char kText[] =
    "libbpf: prog 'reads_anywhere': BPF program load failed: Permission denied\n"
    "libbpf: prog 'reads_anywhere': -- BEGIN PROG LOAD LOG --\n"
    "0: R1=ctx() R10=fp0\n"
    "; return *(int*)value; @ refused.bpf.c:9\n"
    "1: (61) r0 = *(u32 *)(r2 +0)\n"
    "R2 invalid mem access 'scalar'\n"
    "processed 2 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0\n"
    "-- END PROG LOAD LOG --\n"
    "libbpf: prog 'reads_anywhere': failed to load: -13\n"
    "libbpf: failed to load object 'refused'\n";

TEST(VerifierLog, is_what_stands_between_libbpfs_marks) {
  const VerifierReport report = find_verifier_report(kText);
  EXPECT_EQ(report.program, "reads_anywhere");
  EXPECT_TRUE(report.log.starts_with("0: R1=ctx()")) << report.log;
  EXPECT_TRUE(report.log.ends_with("mark_read 0\n")) << report.log;
}

TEST(VerifierLog, is_empty_where_the_verifier_said_nothing) {
  const VerifierReport report = find_verifier_report(
      "libbpf: prog 'hit': BPF program load failed: Operation not permitted\nlibbpf: failed to load object 'usdt'\n");
  EXPECT_EQ(report.program, "");
  EXPECT_EQ(report.log, "");
}

TEST(VerifierLog, that_is_cut_off_is_kept_as_far_as_it_goes) {
  EXPECT_EQ(find_verifier_report("prog 'a': -- BEGIN PROG LOAD LOG --\n0: (b7)").log, "0: (b7)");
}

TEST(VerifierLog, gives_the_error_its_last_words_and_itself) {
  const Error error = verifier_refusal("reads_anywhere", find_verifier_report(kText).log, EACCES);
  EXPECT_EQ(error.kind, ErrorKind::verifier);
  EXPECT_EQ(error.os_error, EACCES);
  EXPECT_EQ(error.message,
            "the kernel's verifier refuses the program 'reads_anywhere': ; return *(int*)value; @ refused.bpf.c:9; "
            "1: (61) r0 = *(u32 *)(r2 +0); R2 invalid mem access 'scalar' (Permission denied)");
  EXPECT_EQ(error.log, find_verifier_report(kText).log);
}

TEST(VerifierLog, without_statistics_ends_with_its_last_line) {
  EXPECT_EQ(verifier_refusal("p", "one\n\ntwo\nthree\nfour\n", EINVAL).message,
            "the kernel's verifier refuses the program 'p': two; three; four (Invalid argument)");
}

}  // namespace
}  // namespace usdt::backends
