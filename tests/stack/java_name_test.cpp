// SPDX-License-Identifier: BSD-2-Clause
// The names are those that OpenJDK 17 wrote (jcmd PID Compiler.perfmap).
#include "stack/java_name.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace usdt::stack {
namespace {

TEST(JavaName, is_that_of_perf_maps) {
  EXPECT_EQ(java_method_name("Deep", "sum", "(I)I"), "int Deep.sum(int)");
  EXPECT_EQ(java_method_name("java/lang/Thread", "yield", "()V"), "void java.lang.Thread.yield()");
  EXPECT_EQ(
      java_method_name("jdk/internal/misc/Unsafe", "getReferenceVolatile", "(Ljava/lang/Object;J)Ljava/lang/Object;"),
      "java.lang.Object jdk.internal.misc.Unsafe.getReferenceVolatile(java.lang.Object, long)");
  EXPECT_EQ(java_method_name("T", "<init>", "([[IZBCDFJS[Ljava/lang/String;)[[J"),
            "long[][] T.<init>(int[][], boolean, byte, char, double, float, long, short, java.lang.String[])");
}

TEST(JavaName, keeps_what_is_no_signature) {
  for (const std::string_view odd : {"", "(", "()", "(I", "(Q)V", "(Ljava/lang/Object)V", "([)V", "()VV", "I"})
    EXPECT_EQ(java_method_name("a/B", "c", odd), "a.B.c" + std::string(odd)) << odd;
}

TEST(JavaName, is_told_from_those_of_stubs) {
  EXPECT_TRUE(is_java_method("int Deep.sum(int)"));
  EXPECT_TRUE(is_java_method("java.lang.Object T.make(java.lang.Object, long)"));
  for (const std::string_view stub : {"Interpreter", "StubRoutines (1)", "I2C/C2I adapters", "vtable stub", "", "x(y)",
                                      "exception_blob", "RuntimeStub - _new_array_Java"})
    EXPECT_FALSE(is_java_method(stub)) << stub;
}

}  // namespace
}  // namespace usdt::stack
