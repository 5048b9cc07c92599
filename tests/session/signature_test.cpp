// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/signature.hpp"

#include <gtest/gtest.h>

namespace usdt {
namespace {

TEST(Signature, a_name_is_where_c_has_it) {
  EXPECT_EQ(declaration_text("int", "n"), "int n");
  EXPECT_EQ(declaration_text("struct file *", "file"), "struct file *file");
  EXPECT_EQ(declaration_text("ns::Peer &", "peer"), "ns::Peer &peer");
  EXPECT_EQ(declaration_text("int", ""), "int");
}

TEST(Signature, pointers_to_functions_and_arrays_have_theirs_within_parentheses) {
  EXPECT_EQ(declaration_text("void *(*)(void *)", "start_routine"), "void *(*start_routine)(void *)");
  EXPECT_EQ(declaration_text("int (*)[4]", "rows"), "int (*rows)[4]");
  EXPECT_EQ(declaration_text("int (&)[4]", "row"), "int (&row)[4]");
  EXPECT_EQ(declaration_text("void (**)(int)", "slot"), "void (**slot)(int)");
  EXPECT_EQ(declaration_text("void (*)(int (*)(int))", "outer"), "void (*outer)(int (*)(int))");
  EXPECT_EQ(declaration_text("int (*(*)(char))(int)", "chooser"), "int (*(*chooser)(char))(int)");
}

TEST(Signature, a_template_of_functions_has_no_place_within) {
  EXPECT_EQ(declaration_text("std::function<void (int)> *", "done"), "std::function<void (int)> *done");
  EXPECT_EQ(declaration_text("Hook<void (*)(int)>", "hook"), "Hook<void (*)(int)> hook");
}

}  // namespace
}  // namespace usdt
