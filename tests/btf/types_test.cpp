// SPDX-License-Identifier: BSD-2-Clause
#include "btf/types.hpp"

#include <bpf/btf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

namespace usdt::btf {
namespace {

/// struct outer { int first; struct { union { int a; int deep; }; }; int bits : 3; }, made by libbpf's writer.
std::vector<std::byte> sample() {
  const std::unique_ptr<::btf, decltype(&btf__free)> types(btf__new_empty(), btf__free);
  btf__add_int(types.get(), "int", 4, BTF_INT_SIGNED);  // 1
  btf__add_union(types.get(), nullptr, 4);              // 2
  btf__add_field(types.get(), "a", 1, 0, 0);
  btf__add_field(types.get(), "deep", 1, 0, 0);
  btf__add_struct(types.get(), nullptr, 8);  // 3
  btf__add_field(types.get(), nullptr, 2, 32, 0);
  btf__add_enum(types.get(), "unrelated", 4);  // 4
  btf__add_enum_value(types.get(), "x", 1);
  btf__add_struct(types.get(), "outer", 16);  // 5
  btf__add_field(types.get(), "first", 1, 0, 0);
  btf__add_field(types.get(), nullptr, 3, 32, 0);
  btf__add_field(types.get(), "bits", 1, 96, 3);
  std::uint32_t size = 0;
  const auto* raw = static_cast<const std::byte*>(btf__raw_data(types.get(), &size));
  return {raw, raw + size};
}

TEST(Types, finds_members_in_anonymous_structs_and_unions_but_no_bit_fields) {
  const auto types = Types::parse(sample());
  ASSERT_TRUE(types) << types.error().message;
  EXPECT_EQ((*types)->member_offset("outer", "first").value(), 0U);
  EXPECT_EQ((*types)->member_offset("outer", "deep").value(), 8U);
  EXPECT_EQ((*types)->member_offset("outer", "bits").error().kind, ErrorKind::not_found);
  EXPECT_EQ((*types)->member_offset("other", "first").error().message, "kernel BTF has no other.first");
}

TEST(Types, cut_anywhere_is_malformed) {
  const auto whole = sample();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto types = Types::parse({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
    EXPECT_FALSE(types) << size;
  }
}

TEST(Types, with_any_byte_changed_never_reads_outside) {
  const auto whole = sample();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const unsigned value : {0x00U, 0x01U, 0x7fU, 0xffU}) {
      auto changed = whole;
      changed[at] = static_cast<std::byte>(value);
      if (const auto types = Types::parse(std::move(changed))) (void)(*types)->member_offset("outer", "deep");
    }
  }
}

TEST(Types, of_the_running_kernel_agrees_with_libbpf) {
  const auto ours = Types::load();
  if (!ours) GTEST_SKIP() << ours.error().message;
  const std::unique_ptr<::btf, decltype(&btf__free)> theirs(btf__load_vmlinux_btf(), btf__free);
  ASSERT_TRUE(theirs);
  const int id = btf__find_by_name_kind(theirs.get(), "task_struct", BTF_KIND_STRUCT);
  ASSERT_GT(id, 0);
  const btf_type* task = btf__type_by_id(theirs.get(), static_cast<unsigned>(id));
  int compared = 0;
  for (unsigned i = 0; i < btf_vlen(task); ++i) {
    const std::string_view name = btf__name_by_offset(theirs.get(), btf_members(task)[i].name_off);
    if (name.empty() || btf_member_bitfield_size(task, i) != 0) continue;
    EXPECT_EQ((*ours)->member_offset("task_struct", name).value(), btf_member_bit_offset(task, i) / 8) << name;
    ++compared;
  }
  EXPECT_GT(compared, 50);
}

}  // namespace
}  // namespace usdt::btf
