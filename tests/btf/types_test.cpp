// SPDX-License-Identifier: BSD-2-Clause
#include "btf/types.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "btf/names.hpp"
#include "btf_builder.hpp"

namespace usdt::btf {
namespace {

using test::BtfBuilder;

/// struct outer { int first; struct { union { int a; int deep; }; }; int bits : 3; } and a function of it.
BtfBuilder sample() {
  BtfBuilder types;
  const auto number = types.integer("int", 4, true);
  const auto inner = types.union_of(nullptr, 4, {{"a", number}, {"deep", number}});
  const auto middle = types.structure(nullptr, 8, {{nullptr, inner, 32}});
  const auto colour = types.enumeration("colour", 4, {{"red", 1}, {"none", -1}});
  const auto outer = types.structure("outer", 16, {{"first", number}, {nullptr, middle, 32}, {"bits", number, 96, 3}});
  const auto far = types.enumeration64("far", false, {{"away", 1ULL << 40}});
  const auto several = types.array(types.constant(types.pointer(types.volatile_of(outer))), 3);
  const auto call = types.prototype(number, {{"o", types.pointer(several)}, {"c", colour}, {"f", far}}, true);
  types.function("call", call);
  types.alias("btf_trace_called", types.pointer(call));
  types.decl_tag("tag", outer);
  types.type_tag("user", types.restrict_of(types.floating("double", 8)));
  types.forward("later", BTF_FWD_UNION);
  return types;
}

TEST(Types, members_are_found_in_anonymous_structs_and_unions_but_no_bit_fields) {
  const auto types = sample().types();
  EXPECT_EQ(types->member_offset("outer", "first").value(), 0U);
  EXPECT_EQ(types->member_offset("outer", "deep").value(), 8U);
  EXPECT_EQ(types->member_offset("outer", "bits").error().kind, ErrorKind::not_found);
  EXPECT_EQ(types->member_offset("other", "first").error().message, "kernel BTF has no other.first");
  EXPECT_EQ(types->structure_size("outer").value(), 16U);
  EXPECT_EQ(types->structure_size("out").error().message, "kernel BTF has no struct out");
}

TEST(Types, functions_and_tracepoints_are_listed_with_their_prototypes) {
  const auto types = sample().types();
  const auto functions = types->functions();
  ASSERT_EQ(functions.size(), 1U);
  EXPECT_EQ(functions[0].name, "call");
  EXPECT_EQ(types->function_id("call"), functions[0].id);
  EXPECT_EQ(types->function_id("cal"), 0U);
  EXPECT_EQ(types->function_id("call_"), 0U);
  const auto some = types->functions_of({"c", "call", "cell", ""});
  ASSERT_EQ(some.size(), 1U);
  EXPECT_EQ(some[0].id, functions[0].id);
  const auto tracepoints = types->tracepoints();
  ASSERT_EQ(tracepoints.size(), 1U);
  EXPECT_EQ(tracepoints[0].name, "called");
  EXPECT_EQ(types->tracepoint_id("called"), tracepoints[0].id);
  EXPECT_EQ(types->tracepoint_id("call"), 0U);
  EXPECT_EQ(tracepoints[0].proto, functions[0].proto);
  const auto prototype = types->prototype(functions[0].proto);
  ASSERT_TRUE(prototype) << prototype.error().message;
  EXPECT_TRUE(prototype->varargs);
  EXPECT_EQ(prototype_text(*types, "call", *prototype),
            "int call(volatile struct outer *const (*o)[3], enum colour c, enum far f, ...)");
}

TEST(Types, tracepoints_get_the_names_of_parameters_from_what_calls_them) {
  test::BtfBuilder made;
  const auto number = made.integer("int", 4, true);
  const auto data = made.pointer(0);
  made.alias("btf_trace_one", made.pointer(made.prototype(0, {{"", data}, {"", number}})));
  made.alias("btf_trace_other", made.pointer(made.prototype(0, {{"", data}, {"", number}, {"", number}})));
  made.alias("btf_trace_lonely", made.pointer(made.prototype(0, {{"", data}})));
  made.function("__traceiter_one", made.prototype(number, {{"__data", data}, {"id", number}}));
  made.function("__traceiter_other", made.prototype(number, {{"__data", data}, {"id", number}, {"odd", data}}));
  const auto types = made.types();
  const auto tracepoints = types->tracepoints();
  ASSERT_EQ(tracepoints.size(), 3U);
  EXPECT_EQ(types->prototype(tracepoints[0].proto)->parameters[1].name, "id");
  EXPECT_EQ(types->prototype(tracepoints[1].proto)->parameters[1].name, "") << "other types: another tracepoint's";
  EXPECT_EQ(types->prototype(tracepoints[2].proto)->parameters.size(), 1U);
}

TEST(Types, what_is_no_prototype_is_malformed) {
  const auto types = sample().types();
  for (const std::uint32_t id : {0U, 1U, 9999U}) {
    const auto prototype = types->prototype(id);
    ASSERT_FALSE(prototype);
    EXPECT_EQ(prototype.error().kind, ErrorKind::malformed);
  }
}

TEST(Types, classes_sizes_and_signs_are_those_behind_typedefs_and_qualifiers) {
  BtfBuilder made;
  const auto character = made.integer("char", 1, true);
  const auto byte = made.integer("unsigned char", 1);
  const auto number = made.integer("int", 4, true);
  const auto size = made.alias("size_t", made.alias("__kernel_size_t", made.integer("unsigned long", 8)));
  struct Case {
    std::uint32_t type;
    ValueClass value_class;
    std::uint32_t size;
    bool is_signed;
    bool text;
  };
  const std::vector<Case> cases = {
      {character, ValueClass::character, 1, true, false},
      {byte, ValueClass::integer, 1, false, false},
      {made.constant(made.volatile_of(size)), ValueClass::integer, 8, false, false},
      {made.alias("bool", made.boolean()), ValueClass::boolean, 1, false, false},
      {made.pointer(made.constant(character)), ValueClass::pointer, 8, false, true},
      {made.pointer(made.type_tag("user", character)), ValueClass::pointer, 8, false, true},
      {made.restrict_of(made.pointer(byte)), ValueClass::pointer, 8, false, false},
      {made.pointer(0), ValueClass::pointer, 8, false, false},
      {made.enumeration("plain", 4, {{"a", 1}}), ValueClass::enumeration, 4, false, false},
      {made.enumeration("negative", 1, {{"a", -1}}), ValueClass::enumeration, 1, true, false},
      {made.enumeration64("wide", true, {{"a", 1}}), ValueClass::enumeration, 8, true, false},
      {made.alias("pair_t", made.structure("pair", 8)), ValueClass::structure, 8, false, false},
      {made.union_of("either", 4), ValueClass::structure, 4, false, false},
      {made.floating("double", 8), ValueClass::other, 8, false, false},
      {made.array(number, 4), ValueClass::other, 0, false, false},
  };
  std::vector<BtfBuilder::Param> parameters;
  for (const Case& one : cases) parameters.push_back({"", one.type});
  const auto proto = made.prototype(0, parameters);
  const auto types = made.types();
  const auto prototype = types->prototype(proto);
  ASSERT_TRUE(prototype) << prototype.error().message;
  EXPECT_EQ(prototype->result.value_class, ValueClass::none);
  EXPECT_FALSE(prototype->varargs);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(type_name(*types, cases[i].type));
    const ValueType& type = prototype->parameters.at(i).type;
    EXPECT_EQ(type.value_class, cases[i].value_class);
    EXPECT_EQ(type.size, cases[i].size);
    EXPECT_EQ(type.is_signed, cases[i].is_signed);
    EXPECT_EQ(type.text, cases[i].text);
    EXPECT_EQ(type.type_id, cases[i].type);
  }
}

TEST(Types, names_are_what_C_writes) {
  BtfBuilder made;
  const auto character = made.integer("char", 1, true);
  const auto number = made.integer("int", 4, true);
  const auto buffer = made.pointer(made.structure("sk_buff", 232));
  const auto nothing = made.prototype(0, {});
  const auto handler = made.pointer(made.prototype(number, {{"skb", buffer}, {"flags", number}}));
  const std::vector<std::pair<std::uint32_t, std::string>> names = {
      {0, "void"},
      {number, "int"},
      {made.pointer(0), "void *"},
      {made.pointer(made.constant(character)), "const char *"},
      {made.constant(made.pointer(character)), "char *const"},
      {made.pointer(made.constant(made.pointer(character))), "char *const *"},
      {made.restrict_of(made.pointer(made.volatile_of(made.constant(number)))), "const volatile int *restrict"},
      {made.pointer(made.alias("loff_t", number)), "loff_t *"},
      {buffer, "struct sk_buff *"},
      {made.pointer(buffer), "struct sk_buff **"},
      {made.pointer(made.forward("later", BTF_FWD_UNION)), "union later *"},
      {made.enumeration("zone_type", 4, {}), "enum zone_type"},
      {made.structure(nullptr, 8), "struct {...}"},
      {made.pointer(made.type_tag("user", character)), "char *"},
      {made.array(made.pointer(character), 4), "char *[4]"},
      {made.pointer(made.constant(made.array(made.array(number, 3), 2))), "const int (*)[2][3]"},
      {nothing, "void (void)"},
      {made.pointer(nothing), "void (*)(void)"},
      {handler, "int (*)(struct sk_buff *, int)"},
      {made.pointer(made.prototype(handler, {{"", number}}, true)), "int (*(*)(int, ...))(struct sk_buff *, int)"},
      {9999, "?"},
  };
  const auto types = made.types();
  for (const auto& [id, name] : names) EXPECT_EQ(type_name(*types, id), name);
  EXPECT_EQ(declaration(*types, handler, "done"), "int (*done)(struct sk_buff *, int)");
  EXPECT_EQ(prototype_text(*types, "f", *types->prototype(nothing)), "void f(void)");
}

TEST(Types, enumerators_are_found_by_the_bits_of_the_enums_size) {
  BtfBuilder made;
  const auto plain = made.enumeration("plain", 4, {{"one", 1}, {"high", 0xffffffff}});
  const auto negative = made.constant(made.alias("err_t", made.enumeration("negative", 4, {{"none", 0}, {"bad", -1}})));
  const auto small = made.enumeration("small", 1, {{"minus", -2}});
  const auto wide = made.enumeration64("wide", false, {{"low", 1}, {"both", 0x1234567800000001}});
  const auto types = made.types();
  EXPECT_EQ(types->enumerator(plain, 1), "one");
  EXPECT_EQ(types->enumerator(plain, 0xffffffff), "high");
  EXPECT_EQ(types->enumerator(plain, 2), "");
  EXPECT_EQ(types->enumerator(negative, 0xffffffffffffffff), "bad");
  EXPECT_EQ(types->enumerator(negative, 0xffffffff), "bad");
  EXPECT_EQ(types->enumerator(small, 0xfe), "minus");
  EXPECT_EQ(types->enumerator(wide, 0x1234567800000001), "both");
  EXPECT_EQ(types->enumerator(wide, 1), "low");
  EXPECT_EQ(types->enumerator(0, 1), "");
  EXPECT_EQ(types->enumerator(9999, 1), "");
}

TEST(Types, layouts_tell_strictest_members_packing_and_floats) {
  BtfBuilder made;
  const auto byte = made.integer("char", 1);
  const auto number = made.integer("long", 8);
  const auto big = made.integer("__int128", 16);
  const auto plain = made.structure("plain", 16, {{"a", byte}, {"b", number, 64}, {"c", byte, 1, 3}});
  const auto packed = made.structure("packed", 9, {{"a", byte}, {"b", number, 8}});
  const auto nested = made.structure("nested", 32, {{nullptr, made.union_of(nullptr, 16, {{"x", big}})}});
  const auto floats = made.structure("floats", 8, {{"all", made.array(made.floating("float", 4), 2)}});
  const auto types = made.types();
  EXPECT_EQ(types->layout(plain).alignment, 8U);
  EXPECT_FALSE(types->layout(plain).packed);
  EXPECT_TRUE(types->layout(packed).packed);
  EXPECT_EQ(types->layout(nested).alignment, 16U);
  EXPECT_FALSE(types->layout(nested).floats);
  EXPECT_TRUE(types->layout(floats).floats);
}

TEST(Types, a_modules_types_go_on_where_the_kernels_end) {
  BtfBuilder kernel;
  const auto number = kernel.integer("int", 4, true);
  kernel.structure("shared", 8, {{"first", number}, {"second", number, 32}});
  BtfBuilder module(&kernel);
  const auto own = module.structure("own", 4, {{"field", number}});
  const auto call = module.prototype(number, {{"own", module.pointer(own)}, {"count", number}});
  module.function("module_call", call);
  const auto base = kernel.types();
  const auto types = module.types(base);
  ASSERT_EQ(types->functions().size(), 1U);
  EXPECT_TRUE(base->functions().empty());
  EXPECT_EQ(types->functions()[0].name, "module_call");
  EXPECT_EQ(prototype_text(*types, "module_call", *types->prototype(call)),
            "int module_call(struct own *own, int count)");
  EXPECT_EQ(types->member_offset("own", "field").value(), 0U);
  EXPECT_EQ(types->member_offset("shared", "second").value(), 4U);
  EXPECT_FALSE(base->prototype(call));
}

TEST(Types, of_a_module_that_is_none_or_not_loaded_are_errors) {
  EXPECT_EQ(Types::load_module("../vmlinux", nullptr).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(Types::load_module("ext4", nullptr).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(Types::load_module("", nullptr).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(Types::load_module("no_such_module", sample().types()).error().kind, ErrorKind::not_found);
}

/// Asks everything of every type, those past the end included.
void ask_everything(const Types& types) {
  for (std::uint32_t id = 0; id < 40; ++id) {
    (void)type_name(types, id);
    (void)types.enumerator(id, 1);
    (void)types.layout(id);
    if (const auto prototype = types.prototype(id)) (void)prototype_text(types, "f", *prototype);
  }
  (void)types.functions();
  (void)types.function_id("x");
  (void)types.tracepoint_id("x");
  (void)types.tracepoints();
  (void)types.member_offset("outer", "deep");
}

TEST(Types, cut_anywhere_are_malformed) {
  const auto whole = sample().bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto types = Types::parse({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
    ASSERT_FALSE(types) << size;
    EXPECT_EQ(types.error().kind, ErrorKind::malformed);
  }
}

TEST(Types, with_any_byte_changed_never_read_outside) {
  const auto whole = sample().bytes();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const unsigned value : {0x00U, 0x01U, 0x7fU, 0x80U, 0xffU}) {
      auto changed = whole;
      changed[at] = static_cast<std::byte>(value);
      if (const auto types = Types::parse(std::move(changed))) ask_everything(**types);
    }
  }
}

TEST(Types, with_random_bytes_changed_never_read_outside) {
  const auto whole = sample().bytes();
  std::mt19937 random(20260730);
  for (int round = 0; round < 5000; ++round) {
    auto changed = whole;
    const unsigned flips = 1 + random() % 8;
    // Ids and offsets are small: small values lead to types, large ones to nowhere.
    for (unsigned i = 0; i < flips; ++i)
      changed[24 + random() % (whole.size() - 24)] = static_cast<std::byte>(random() % (i % 2 ? 32 : 256));
    const auto types = Types::parse(std::move(changed));
    if (types) ask_everything(**types);
  }
}

TEST(Types, that_lead_to_themselves_end) {
  BtfBuilder made;
  const auto self = made.alias("self", 1);                                                // 1
  const auto pointer = made.pointer(2);                                                   // 2
  const auto array = made.array(3, 4);                                                    // 3
  const auto box = made.structure("box", 8, {{nullptr, 4}, {nullptr, 4}, {"other", 5}});  // 4, 5
  made.structure("other", 8, {{nullptr, 4}, {"x", 5}, {"y", 5}, {"z", 5}});
  const auto call = made.prototype(7, {{"a", 7}, {"b", 7}, {"c", 7}});  // 6, 7
  made.pointer(call);
  const auto types = made.types();
  EXPECT_EQ(types->prototype(made.prototype(0, {})).error().kind, ErrorKind::malformed) << "added behind the bytes";
  for (const auto id : {self, pointer, array, box, call, call + 1})
    EXPECT_LT(type_name(*types, id).size(), 40000U) << id;
  EXPECT_FALSE(types->member_offset("box", "none"));
  (void)types->layout(5);
  (void)types->layout(array);
}

struct FreeBtf {
  void operator()(::btf* btf) const { btf__free(btf); }
  void operator()(btf_dump* dump) const { btf_dump__free(dump); }
};

/// The running kernel's, by us and by libbpf.
struct RunningKernel : testing::Test {
  void SetUp() override {
    auto loaded = Types::load();
    if (!loaded) GTEST_SKIP() << loaded.error().message;
    ours = *loaded;
    theirs.reset(btf__load_vmlinux_btf());
    ASSERT_TRUE(theirs);
  }
  std::shared_ptr<const Types> ours;
  std::unique_ptr<::btf, FreeBtf> theirs;
};

TEST_F(RunningKernel, has_the_members_libbpf_finds) {
  const int id = btf__find_by_name_kind(theirs.get(), "task_struct", BTF_KIND_STRUCT);
  ASSERT_GT(id, 0);
  const btf_type* task = btf__type_by_id(theirs.get(), static_cast<unsigned>(id));
  int compared = 0;
  for (unsigned i = 0; i < btf_vlen(task); ++i) {
    const std::string_view name = btf__name_by_offset(theirs.get(), btf_members(task)[i].name_off);
    if (name.empty() || btf_member_bitfield_size(task, i) != 0) continue;
    EXPECT_EQ(ours->member_offset("task_struct", name).value(), btf_member_bit_offset(task, i) / 8) << name;
    ++compared;
  }
  EXPECT_GT(compared, 50);
}

TEST_F(RunningKernel, has_the_functions_and_parameters_libbpf_finds) {
  auto next = ours->functions();
  std::size_t seen = 0;
  for (unsigned id = 1; id < btf__type_cnt(theirs.get()); ++id) {
    const btf_type* function = btf__type_by_id(theirs.get(), id);
    if (!btf_is_func(function)) continue;
    ASSERT_LT(seen, next.size());
    ASSERT_EQ(next[seen].id, id);
    ASSERT_EQ(next[seen].name, btf__name_by_offset(theirs.get(), function->name_off));
    const btf_type* proto = btf__type_by_id(theirs.get(), function->type);
    const auto prototype = ours->prototype(next[seen].proto);
    ASSERT_TRUE(prototype) << next[seen].name;
    ASSERT_EQ(prototype->parameters.size() + (prototype->varargs ? 1 : 0), btf_vlen(proto)) << next[seen].name;
    for (std::size_t i = 0; i < prototype->parameters.size(); ++i) {
      const btf_param& parameter = btf_params(proto)[i];
      const ValueType& type = prototype->parameters[i].type;
      ASSERT_EQ(prototype->parameters[i].name, btf__name_by_offset(theirs.get(), parameter.name_off));
      ASSERT_EQ(type.size, btf__resolve_size(theirs.get(), parameter.type)) << next[seen].name << " " << i;
    }
    ++seen;
  }
  EXPECT_EQ(seen, next.size());
}

void append(void* text, const char* format, va_list values) {
  char part[1024];
  std::vsnprintf(part, sizeof(part), format, values);
  static_cast<std::string*>(text)->append(part);
}

/// Without blanks, "volatile" before "const", the attributes libbpf prints where the kernel's source has __user and the
/// like, and the numbers it gives to types of one name ("x___2").
std::string squeezed(std::string text) {
  std::erase(text, ' ');
  for (std::size_t at; (at = text.find("__attribute__((btf_type_tag(")) != std::string::npos;)
    text.erase(at, text.find(")))", at) + 3 - at);
  for (std::size_t at; (at = text.find("___")) != std::string::npos;)
    text.erase(at, std::min(text.find_first_not_of("0123456789", at + 3), text.size()) - at);
  for (std::size_t at; (at = text.find("volatileconst")) != std::string::npos;) text.replace(at, 13, "constvolatile");
  return text;
}

TEST_F(RunningKernel, has_the_type_names_libbpf_prints) {
  std::string text;
  const std::unique_ptr<btf_dump, FreeBtf> dump(btf_dump__new(theirs.get(), append, &text, nullptr));
  ASSERT_TRUE(dump);
  std::size_t compared = 0;
  for (unsigned id = 1; id < btf__type_cnt(theirs.get()); ++id) {
    const btf_type* type = btf__type_by_id(theirs.get(), id);
    if (!btf_is_ptr(type) && !btf_is_mod(type) && !btf_is_array(type) && !btf_is_func_proto(type)) continue;
    // libbpf drops the const of const arrays whose elements are not.
    if (btf_is_mod(type) && btf_is_array(btf__type_by_id(theirs.get(), type->type))) continue;
    text.clear();
    ASSERT_EQ(btf_dump__emit_type_decl(dump.get(), id, nullptr), 0);
    const auto prototype = ours->prototype(id);
    const std::string name = prototype ? prototype_text(*ours, {}, *prototype) : type_name(*ours, id);
    // libbpf writes anonymous structs and enums out, and has names in the parameter lists of function pointers too.
    if (name.find("{...}") != std::string::npos || name.find("(*") != std::string::npos) continue;
    if (text.ends_with("()")) text.insert(text.size() - 1, "void");
    EXPECT_EQ(squeezed(name), squeezed(text)) << id;
    ++compared;
  }
  EXPECT_GT(compared, 10000U);
}

TEST_F(RunningKernel, has_well_known_prototypes_and_tracepoints) {
  bool read = false, fork = false;
  for (const Function& function : ours->functions()) {
    if (function.name != "vfs_read") continue;
    read = true;
    EXPECT_EQ(prototype_text(*ours, function.name, *ours->prototype(function.proto)),
              "ssize_t vfs_read(struct file *file, char *buf, size_t count, loff_t *pos)");
  }
  for (const Function& tracepoint : ours->tracepoints()) {
    if (tracepoint.name != "sched_process_fork") continue;
    fork = true;
    const auto prototype = ours->prototype(tracepoint.proto);
    ASSERT_EQ(prototype->parameters.size(), 3U);
    EXPECT_EQ(type_name(*ours, prototype->parameters[1].type.type_id), "struct task_struct *");
  }
  EXPECT_TRUE(read);
  EXPECT_TRUE(fork);
}

}  // namespace
}  // namespace usdt::btf
