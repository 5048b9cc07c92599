// SPDX-License-Identifier: BSD-2-Clause
// Kernel types as a graph; libbpf says what is right.
#include "btf/type_graph.hpp"

#include <bpf/btf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "btf_builder.hpp"

namespace usdt::test {
namespace {

using btf::Graph;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto id = Graph::id_of;

TEST(TypeGraph, tells_what_types_are_behind_their_typedefs) {
  BtfBuilder made;
  const auto number = made.integer("long unsigned int", 8);
  const auto letter = made.integer("char", 1, true);
  const auto word = made.alias("word", made.constant(number));
  const auto grid = made.array(made.array(word, 3), 2);
  const auto open_end = made.array(letter, 0);
  const auto text = made.pointer(made.constant(made.type_tag("user", letter)));
  const auto color = made.enumeration("color", 4, {{"RED", 0}, {"BLUE", 5}});
  const auto both = made.union_of("both", 8, {{"a", number}});
  const auto types = made.types();
  const Graph graph(types);
  const auto info = [&](std::uint32_t type) { return graph.info(id(type)).value(); };
  EXPECT_EQ(info(word).type, (Type{8, false, TypeKind::integer}));
  EXPECT_EQ(info(word).text, "word");
  EXPECT_EQ(info(grid).type, (Type{48, false, TypeKind::array}));
  EXPECT_EQ(info(grid).count, 2U);
  EXPECT_EQ(graph.info(info(grid).target)->text, "word [3]");
  EXPECT_EQ(info(open_end).count, std::nullopt);
  EXPECT_TRUE(graph.info(info(open_end).target)->is_char);
  EXPECT_EQ(info(text).type.kind, TypeKind::text);
  EXPECT_EQ(info(color).type.kind, TypeKind::enumeration);
  EXPECT_EQ(graph.enumerators(id(color))[1].name, "BLUE");
  EXPECT_TRUE(info(both).is_union);
  EXPECT_EQ(graph.info(TypeId::none)->text, "void");
  EXPECT_EQ(graph.info(id(9999)).error().kind, ErrorKind::malformed);
  EXPECT_EQ(graph.find("unsigned long").value(), id(number));
  EXPECT_EQ(graph.find("union both").value(), id(both));
  EXPECT_FALSE(graph.find("struct both"));
  EXPECT_THAT(graph.find("enum colour").error().message, HasSubstr("did you mean color?"));
}

TEST(TypeGraph, has_bit_fields_within_numbers_of_their_type) {
  BtfBuilder made;
  const auto number = made.integer("int", 4, true);
  const auto byte = made.integer("unsigned char", 1);
  const auto bits = made.structure("bits", 8, {{"a", number, 0, 5}, {"b", number, 37, 20}, {"c", byte, 60, 3}});
  const auto packed = made.structure("packed", 9, {{"a", number, 7, 31}, {"b", number, 38, 31}});
  const Graph graph(made.types());
  const auto places = [&](std::uint32_t type) {
    std::vector<std::array<std::uint64_t, 3>> all;
    const auto members = graph.members(id(type)).value();
    for (const MemberInfo& each : members) all.push_back({each.offset, each.shift, each.bits});
    return all;
  };
  using Place = std::array<std::uint64_t, 3>;
  EXPECT_THAT(places(bits), ElementsAre(Place{0, 0, 5}, Place{4, 5, 20}, Place{7, 4, 3}));
  EXPECT_THAT(places(packed), ElementsAre(Place{0, 7, 31}, Place{4, 6, 31}));
}

TEST(TypeGraph, tells_types_of_one_name_apart_and_finds_what_a_declaration_means) {
  BtfBuilder made;
  const auto number = made.integer("int", 4, true);
  const auto one = made.structure("twice", 4, {{"a", number}});
  const auto other = made.structure("twice", 4, {{"b", number}});
  made.structure("twice", 4, {{"a", number}});
  const auto alias = made.alias("twice", number);
  const auto once = made.structure("once", 4, {{"x", number}});
  const auto declared = made.forward("once", BTF_FWD_STRUCT);
  const auto unclear = made.forward("twice", BTF_FWD_STRUCT);
  const Graph graph(made.types());
  EXPECT_THAT(graph.find_all("twice").value(), ElementsAre(id(alias), id(one), id(other)));
  EXPECT_THAT(graph.find_all("struct twice").value(), ElementsAre(id(one), id(other)));
  EXPECT_EQ(graph.info(id(declared))->type.size, 4U);
  EXPECT_EQ(graph.members(id(declared))->size(), 1U);
  EXPECT_EQ(graph.info(id(unclear))->type.size, 0U);
  EXPECT_EQ(graph.find("once").value(), id(once));
}

TEST(TypeGraph, with_random_bytes_changed_never_reads_outside) {
  BtfBuilder made;
  const auto number = made.integer("int", 4, true);
  const auto inner = made.structure("inner", 8, {{"x", number}, {"y", made.pointer(number), 32}});
  made.structure("outer", 64, {{nullptr, inner}, {"bits", number, 70, 3}, {"all", made.array(inner, 4), 128}});
  made.forward("inner", BTF_FWD_STRUCT);
  made.alias("name", inner);
  const auto whole = made.bytes();
  std::mt19937 random(20261122);
  for (int round = 0; round < 5000; ++round) {
    auto changed = whole;
    const unsigned flips = 1 + random() % 8;
    for (unsigned i = 0; i < flips; ++i)
      changed[24 + random() % (whole.size() - 24)] = static_cast<std::byte>(random() % (i % 2 ? 32 : 256));
    const auto types = btf::Types::parse(std::move(changed));
    if (!types) continue;
    const Graph graph(*types);
    for (std::uint32_t each = 0; each < 16; ++each) {
      (void)graph.info(id(each));
      (void)graph.members(id(each));
      (void)graph.enumerators(id(each));
    }
    (void)graph.find_all("inner");
  }
}

TEST(TypeGraph, of_the_running_kernel_has_the_members_libbpf_finds) {
  const auto types = btf::Types::load();
  if (!types) GTEST_SKIP() << types.error().message;
  const Graph graph(*types);
  const std::unique_ptr<::btf, decltype(&btf__free)> theirs(btf__load_vmlinux_btf(), btf__free);
  ASSERT_TRUE(theirs);
  unsigned compared = 0;
  unsigned bit_fields = 0;
  for (unsigned each = 1; each < btf__type_cnt(theirs.get()); ++each) {
    const btf_type* type = btf__type_by_id(theirs.get(), each);
    if (!btf_is_composite(type)) continue;
    const auto members = graph.members(id(each));
    ASSERT_TRUE(members) << members.error().message;
    ASSERT_EQ(members->size(), btf_vlen(type));
    ASSERT_EQ(graph.info(id(each))->type.size, type->size);
    for (unsigned i = 0; i < btf_vlen(type); ++i, ++compared) {
      const MemberInfo& ours = (*members)[i];
      ASSERT_EQ(ours.name, btf__name_by_offset(theirs.get(), btf_members(type)[i].name_off));
      ASSERT_EQ(8 * ours.offset + ours.shift, btf_member_bit_offset(type, i)) << ours.name;
      ASSERT_EQ(ours.bits, btf_member_bitfield_size(type, i)) << ours.name;
      const auto size = btf__resolve_size(theirs.get(), btf_members(type)[i].type);
      ASSERT_EQ(graph.info(ours.type)->type.size, size < 0 ? 0 : size) << ours.name;
      if (ours.bits == 0) continue;
      ++bit_fields;
      ASSERT_LE(ours.shift + ours.bits, 8 * size) << ours.name;
      ASSERT_LE(ours.offset + static_cast<std::uint64_t>(size), type->size) << ours.name;
    }
  }
  EXPECT_GT(compared, 10'000U);
  EXPECT_GT(bit_fields, 100U);
}

TEST(TypeGraph, of_the_running_kernel_finds_types_by_name) {
  const auto types = btf::Types::load();
  if (!types) GTEST_SKIP() << types.error().message;
  const Graph graph(*types);
  const auto file = graph.find("struct file");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(graph.info(*file)->type.size, (*types)->structure_size("file").value());
  EXPECT_EQ(graph.find("file").value(), *file);
  EXPECT_EQ(graph.info(graph.find("u32").value())->type, (Type{4, false, TypeKind::integer}));
  EXPECT_EQ(graph.info(graph.find("unsigned int").value())->type, (Type{4, false, TypeKind::integer}));
}

}  // namespace
}  // namespace usdt::test
