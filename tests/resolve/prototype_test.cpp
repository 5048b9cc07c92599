// SPDX-License-Identifier: BSD-2-Clause
// Golden signatures per machine, from the documents kernel_places.hpp names.
#include "resolve/prototype.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "btf/btf_builder.hpp"
#include "parsers/args.hpp"
#include "resolve/encode.hpp"
#include "resolve/resolver.hpp"
#include "usdt/decode.hpp"

namespace usdt::resolve {
namespace {

using test::BtfBuilder;

/// "rdi u8, 8(%rsp) i4, !struct by value (24 bytes)"; the reason alone for what is unreadable.
std::string shown(const Arg& arg, Machine machine) {
  if (!arg.readable()) return fmt::format("!{}", arg.why_unreadable());
  return fmt::format("{} {}{}", location_text(arg.location, machine), arg.type.is_signed ? 'i' : 'u', arg.type.size);
}
std::string shown(const KernelSignature& signature, Machine machine) {
  std::string text;
  for (const Arg& arg : signature.args) text += (text.empty() ? "" : ", ") + shown(arg, machine);
  return text;
}
usdt_arg_spec encoded(const Arg& arg, Machine machine = Machine::x86_64) {
  return encode(arg, arch::for_machine(machine));
}

/// The types most tests need.
struct KernelArgs : testing::Test {
  BtfBuilder made;
  BtfBuilder::Id character = made.integer("char", 1, true);
  BtfBuilder::Id number = made.integer("int", 4, true);
  BtfBuilder::Id wide = made.integer("long long", 8, true);
  BtfBuilder::Id size = made.alias("size_t", made.integer("unsigned long", 8));
  BtfBuilder::Id boolean = made.alias("bool", made.boolean());
  BtfBuilder::Id huge = made.integer("__int128", 16, true);
  BtfBuilder::Id text = made.pointer(made.constant(character));
  BtfBuilder::Id real = made.floating("double", 8);
  BtfBuilder::Id pair = made.structure("pair", 16, {{"a", wide}, {"b", wide, 64}});
  BtfBuilder::Id huge_pair = made.structure("huge_pair", 16, {{"a", huge}});
  BtfBuilder::Id three = made.structure("three", 24, {{"a", wide}, {"b", wide, 64}, {"c", wide, 128}});
  BtfBuilder::Id packed = made.structure("packed", 9, {{"a", character}, {"b", wide, 8}});
  BtfBuilder::Id floats = made.structure("floats", 8, {{"x", real}});

  KernelSignature sign(BtfBuilder::Id result, const std::vector<BtfBuilder::Id>& parameters, Convention convention,
                       Machine machine, bool varargs = false) {
    std::vector<BtfBuilder::Param> named;
    for (const BtfBuilder::Id type : parameters) named.push_back({"", type});
    const auto proto = made.prototype(result, named, varargs);
    const auto types = made.types();
    return kernel_signature(*types, *types->prototype(proto), convention, machine);
  }
  std::string x86_64(const std::vector<BtfBuilder::Id>& parameters, BtfBuilder::Id result = 0) {
    return shown(sign(result, parameters, Convention::registers, Machine::x86_64), Machine::x86_64);
  }
  std::string aarch64(const std::vector<BtfBuilder::Id>& parameters, BtfBuilder::Id result = 0) {
    return shown(sign(result, parameters, Convention::registers, Machine::aarch64), Machine::aarch64);
  }
  std::string riscv64(const std::vector<BtfBuilder::Id>& parameters, BtfBuilder::Id result = 0) {
    return shown(sign(result, parameters, Convention::registers, Machine::riscv64), Machine::riscv64);
  }
  std::string i386(const std::vector<BtfBuilder::Id>& parameters, BtfBuilder::Id result = 0, bool varargs = false) {
    return shown(sign(result, parameters, Convention::registers, Machine::i386, varargs), Machine::i386);
  }
  std::string slots(const std::vector<BtfBuilder::Id>& parameters) {
    return shown(sign(0, parameters, Convention::slots, Machine::x86_64), Machine::x86_64);
  }
  std::string refusal(BtfBuilder::Id result, const std::vector<BtfBuilder::Id>& parameters, bool varargs = false) {
    return sign(result, parameters, Convention::slots, Machine::x86_64, varargs).no_trampoline;
  }
};

TEST_F(KernelArgs, are_named_and_typed_as_the_prototype_has_them) {
  const auto proto = made.prototype(number, {{"buf", text}, {"", size}});
  const auto types = made.types();
  const auto signature = kernel_signature(*types, *types->prototype(proto), Convention::registers, Machine::x86_64);
  ASSERT_EQ(signature.args.size(), 2U);
  const Arg& buf = signature.args[0];
  EXPECT_EQ(buf.name(), "buf");
  EXPECT_EQ(buf.c_type(), "const char *");
  EXPECT_EQ(type_name(buf.type), "u64");
  EXPECT_EQ(buf.type.kind, TypeKind::text);
  const RegisterInfo reg = register_info(Machine::x86_64, std::get<Register>(buf.location).id);
  EXPECT_EQ(reg.name, "rdi");
  EXPECT_EQ(reg.bits, 64);
  EXPECT_EQ(signature.args[1].name(), "arg1");
  EXPECT_EQ(signature.args[1].c_type(), "size_t");
  EXPECT_EQ(encoded(signature.args[0]).kind, USDT_ARG_REG);
  EXPECT_EQ(encoded(signature.args[0]).reg, 14) << "pt_regs.di";
  EXPECT_EQ(encoded(signature.args[1]).reg, 13) << "pt_regs.si";
  ASSERT_TRUE(signature.result);
  EXPECT_EQ(signature.result->c_type(), "int");
  EXPECT_EQ(shown(*signature.result, Machine::x86_64), "rax i4");
  EXPECT_EQ(encoded(*signature.result).reg, 10) << "pt_regs.ax";
  EXPECT_EQ(encoded(*signature.result).flags, USDT_ARG_SIGNED);
}

TEST_F(KernelArgs, of_x86_64_are_in_six_registers_and_then_above_the_return_address) {
  EXPECT_EQ(x86_64({text, character, boolean, number, size, wide, number, wide}),
            "rdi u8, rsi i1, rdx u1, rcx i4, r8 u8, r9 i8, 8(%rsp) i4, 16(%rsp) i8");
  const auto on_stack =
      sign(0, {size, size, size, size, size, size, number}, Convention::registers, Machine::x86_64).args.at(6);
  EXPECT_EQ(encoded(on_stack).kind, USDT_ARG_MEM);
  EXPECT_EQ(encoded(on_stack).reg, 19) << "pt_regs.sp";
  EXPECT_EQ(encoded(on_stack).value, 8U);
  EXPECT_EQ(encoded(on_stack).size, 4);
}

TEST_F(KernelArgs, of_x86_64_behind_structs_are_where_these_leave_them) {
  EXPECT_EQ(x86_64({pair, number}), "!struct by value (16 bytes), rdx i4");
  EXPECT_EQ(x86_64({three, number}), "!struct by value (24 bytes), rdi i4");
  EXPECT_EQ(x86_64({packed, number}), "!struct by value (9 bytes), rdi i4") << "unaligned members: in memory";
  EXPECT_EQ(x86_64({size, size, size, size, size, pair, number, number}),
            "rdi u8, rsi u8, rdx u8, rcx u8, r8 u8, !struct by value (16 bytes), r9 i4, 24(%rsp) i4")
      << "what does not fit leaves the last register";
  EXPECT_EQ(x86_64({number, huge, number}),
            "rdi i4, !16-byte value: only values of 1, 2, 4 and 8 bytes can be read, rcx i4");
}

TEST_F(KernelArgs, behind_what_compilers_put_in_different_places_are_not_guessed_at) {
  EXPECT_EQ(x86_64({size, size, size, size, size, huge, number}),
            "rdi u8, rsi u8, rdx u8, rcx u8, r8 u8, !16-byte value: only values of 1, 2, 4 and 8 bytes can be read, "
            "!behind an argument whose place type information does not tell");
}

TEST_F(KernelArgs, are_shifted_by_a_result_in_memory) {
  EXPECT_EQ(x86_64({number, wide}, three), "rsi i4, rdx i8");
  EXPECT_EQ(x86_64({number}, pair), "rdi i4");
  EXPECT_EQ(x86_64({number}, packed), "rsi i4");
  EXPECT_EQ(aarch64({number}, three), "x0 i4") << "its address is in x8";
  EXPECT_EQ(i386({number}, three), "edx i4");
  EXPECT_EQ(i386({number}, three, true), "8(%esp) i4");
  EXPECT_EQ(i386({number}, floats), "eax i4") << "8 bytes: -freg-struct-return";
}

TEST_F(KernelArgs, of_arm64_are_in_eight_registers_and_then_at_the_stack_pointer) {
  EXPECT_EQ(aarch64({text, number, number, number, number, number, number, boolean, character, wide}),
            "x0 u8, x1 i4, x2 i4, x3 i4, x4 i4, x5 i4, x6 i4, x7 u1, [sp, 0] i1, [sp, 8] i8");
  const auto all = sign(size, std::vector(9, size), Convention::registers, Machine::aarch64);
  EXPECT_EQ(encoded(all.args[7], Machine::aarch64).reg, 7);
  EXPECT_EQ(encoded(all.args[8], Machine::aarch64).kind, USDT_ARG_MEM);
  EXPECT_EQ(encoded(all.args[8], Machine::aarch64).reg, 31) << "user_pt_regs.sp";
  EXPECT_EQ(encoded(all.args[8], Machine::aarch64).value, 0U);
  EXPECT_EQ(encoded(*all.result, Machine::aarch64).reg, 0);
}

TEST_F(KernelArgs, of_riscv64_are_halved_between_the_last_register_and_the_stack) {
  EXPECT_EQ(riscv64({text, number, number, number, number, number, number, boolean, character, wide}),
            "a0 u8, a1 i4, a2 i4, a3 i4, a4 i4, a5 i4, a6 i4, a7 u1, 0(sp) i1, 8(sp) i8");
  EXPECT_EQ(riscv64({pair, number, three, number}),
            "!struct by value (16 bytes), a2 i4, !struct by value (24 bytes), a4 i4");
  EXPECT_EQ(riscv64({number}, three), "a1 i4") << "behind the address of room for the result";
  EXPECT_EQ(riscv64({size, size, size, size, size, size, size, pair, number}),
            "a0 u8, a1 u8, a2 u8, a3 u8, a4 u8, a5 u8, a6 u8, !struct by value (16 bytes), 8(sp) i4");
  const auto all = sign(size, std::vector(9, size), Convention::registers, Machine::riscv64);
  EXPECT_EQ(encoded(all.args[7], Machine::riscv64).reg, 17) << "user_regs_struct.a7";
  EXPECT_EQ(encoded(all.args[8], Machine::riscv64).reg, 2) << "user_regs_struct.sp";
  EXPECT_EQ(encoded(*all.result, Machine::riscv64).reg, 10);
}

TEST_F(KernelArgs, of_arm64_behind_structs_follow_a_a_p_c_s64) {
  EXPECT_EQ(aarch64({pair, number}), "!struct by value (16 bytes), x2 i4");
  EXPECT_EQ(aarch64({three, number}), "!struct by value (24 bytes), x1 i4") << "B.4: its address";
  EXPECT_EQ(aarch64({packed, number}), "!struct by value (9 bytes), x2 i4");
  EXPECT_EQ(aarch64({number, huge, number}),
            "x0 i4, !16-byte value: only values of 1, 2, 4 and 8 bytes can be read, x4 i4")
      << "C.10: an even register";
  EXPECT_EQ(aarch64({number, huge_pair, number}), "x0 i4, !struct by value (16 bytes), x4 i4");
  EXPECT_EQ(aarch64({size, size, size, size, size, size, size, pair, number}),
            "x0 u8, x1 u8, x2 u8, x3 u8, x4 u8, x5 u8, x6 u8, !struct by value (16 bytes), [sp, 16] i4")
      << "C.13: no register is left behind what does not fit";
  EXPECT_EQ(aarch64({size, size, size, size, size, size, size, size, size, huge_pair, number}),
            "x0 u8, x1 u8, x2 u8, x3 u8, x4 u8, x5 u8, x6 u8, x7 u8, [sp, 0] u8, !struct by value (16 bytes), "
            "[sp, 32] i4")
      << "C.14: to 16 bytes";
}

TEST_F(KernelArgs, of_i386_are_in_three_registers_and_then_above_the_return_address) {
  EXPECT_EQ(i386({text, number, boolean, character}), "eax u4, edx i4, ecx u1, 4(%esp) i1");
  EXPECT_EQ(i386({number, wide}), "eax i4, edx i8");
  EXPECT_EQ(i386({number, number, wide, number}), "eax i4, edx i4, 4(%esp) i8, 12(%esp) i4")
      << "no register is left behind what does not fit";
  EXPECT_EQ(i386({three, number}), "!struct by value (24 bytes), 28(%esp) i4");
  EXPECT_EQ(i386({text, number}, 0, true), "4(%esp) u4, 8(%esp) i4") << "variable arguments";
}

TEST_F(KernelArgs, of_i386_in_two_registers_and_on_the_stack_are_encoded_as_such) {
  const auto signature = sign(wide, {number, wide, number}, Convention::registers, Machine::i386);
  const Arg& two = signature.args[1];
  EXPECT_EQ(encoded(two, Machine::i386).kind, USDT_ARG_REG);
  EXPECT_EQ(encoded(two, Machine::i386).flags, USDT_ARG_PAIR | USDT_ARG_SIGNED);
  EXPECT_EQ(encoded(two, Machine::i386).reg, 12) << "edx";
  EXPECT_EQ(encoded(two, Machine::i386).index, 11) << "ecx";
  EXPECT_EQ(encoded(two, Machine::i386).size, 8);
  EXPECT_EQ(encoded(signature.args[2], Machine::i386).flags, USDT_ARG_ADDR32 | USDT_ARG_SIGNED);
  EXPECT_EQ(encoded(*signature.result, Machine::i386).reg, 10) << "eax";
  EXPECT_EQ(encoded(*signature.result, Machine::i386).index, 12) << "edx";
  EXPECT_EQ(encoded(*signature.result, Machine::i386).flags, USDT_ARG_PAIR | USDT_ARG_SIGNED);
}

TEST_F(KernelArgs, behind_floats_in_structs_are_not_guessed_at) {
  EXPECT_EQ(x86_64({real, number}), "!floating point, which the kernel does not hand to probes, rdi i4");
  EXPECT_EQ(x86_64({number, floats, number}),
            "rdi i4, !struct by value (8 bytes), !behind an argument whose place type information does not tell");
}

TEST_F(KernelArgs, that_are_operands_of_notes_too_are_encoded_as_those_are) {
  for (const Machine machine : {Machine::x86_64, Machine::aarch64, Machine::i386}) {
    const auto signature =
        sign(number, {text, number, boolean, character, number, size, number, number, number, number, character, wide},
             Convention::registers, machine);
    for (const Arg& arg : signature.args) {
      if (arg.needs.has(Need::reg_pair)) continue;  // pairs want a file made by GCC
      const std::string percent = machine != Machine::aarch64 && arg.location.index() == 1 ? "%" : "";
      const std::string written = fmt::format("{}{}@{}{}", arg.type.is_signed ? "-" : "", arg.type.size, percent,
                                              location_text(arg.location, machine));
      const auto parsed = parsers::parse_args(written, machine);
      const Arg note = resolve_arg(parsed.at(0), arch::for_machine(machine), nullptr);
      EXPECT_EQ(note.location, arg.location) << written;
      const auto of_note = encoded(note, machine), of_prototype = encoded(arg, machine);
      EXPECT_EQ(std::memcmp(&of_note, &of_prototype, sizeof(of_note)), 0) << written;
    }
  }
}

TEST_F(KernelArgs, of_trampolines_are_in_slots_of_which_longer_values_have_two) {
  EXPECT_EQ(slots({text, number, boolean}), "slot 0 u8, slot 1 i4, slot 2 u1");
  EXPECT_EQ(slots({pair, number, huge, number}),
            "!struct by value (16 bytes), slot 2 i4, !16-byte value: only values of 1, 2, 4 and 8 bytes can be read, "
            "slot 5 i4");
  const auto signature = sign(wide, {number, number}, Convention::slots, Machine::x86_64);
  EXPECT_EQ(encoded(signature.args[1]).kind, USDT_ARG_REG);
  EXPECT_EQ(encoded(signature.args[1]).reg, 1);
  EXPECT_EQ(std::get<Slot>(signature.args[1].location).number, 1);
  EXPECT_EQ(encoded(*signature.result).reg, USDT_SLOT_RESULT);
  EXPECT_FALSE(sign(0, {number}, Convention::slots, Machine::x86_64).result);
}

TEST_F(KernelArgs, trampolines_refuse_what_the_kernel_refuses) {
  EXPECT_EQ(refusal(0, {text, number, pair, huge}), "");
  EXPECT_EQ(refusal(0, std::vector(12, number)), "");
  EXPECT_EQ(refusal(0, std::vector(13, number)), "13 parameters, more than 12");
  EXPECT_EQ(refusal(0, {number}, true), "variable arguments");
  EXPECT_EQ(refusal(three, {number}), "it returns struct three");
  EXPECT_EQ(refusal(real, {number}), "it returns double");
  EXPECT_EQ(refusal(0, {number, three}), "arg1 is of type struct three (24 bytes)");
  EXPECT_EQ(refusal(0, {real}), "arg0 is of type double (8 bytes)");
  EXPECT_EQ(refusal(0, std::vector(7, pair)), "arguments in 14 slots, more than 12");
}

TEST_F(KernelArgs, that_are_structs_of_one_member_are_that_member) {
  const auto user = made.alias("kuid_t", made.structure("kuid", 4, {{"val", number}}));
  const auto entry =
      made.structure("entry", 8, {{"inner", made.structure("inner", 8, {{"pointer", made.pointer(0)}})}});
  EXPECT_EQ(x86_64({user, entry, wide}), "rdi i4, rsi u8, rdx i8");
  EXPECT_EQ(aarch64({user, entry, wide}), "x0 i4, x1 u8, x2 i8");
  const auto signature = sign(0, {user}, Convention::registers, Machine::x86_64);
  EXPECT_EQ(signature.args[0].c_type(), "kuid_t");
  const auto padded = made.structure("padded", 8, {{"a", number}});
  EXPECT_EQ(x86_64({padded, floats}), "!struct by value (8 bytes), !struct by value (8 bytes)");
}

TEST_F(KernelArgs, of_tracepoints_leave_the_first_parameter_out_and_have_one_slot_each) {
  const auto word = made.structure("word", 8, {{"a", wide}});
  const auto signature = sign(0, {made.pointer(0), boolean, word, number}, Convention::tracepoint, Machine::x86_64);
  EXPECT_EQ(shown(signature, Machine::x86_64), "slot 0 u1, slot 1 i8, slot 2 i4");
  EXPECT_EQ(signature.args[0].name(), "arg0");
  EXPECT_FALSE(signature.result);
  EXPECT_EQ(signature.no_trampoline, "");
}

TEST_F(KernelArgs, of_trampolines_take_a_slot_each_and_structs_two) {
  EXPECT_EQ(sign(number, {text, boolean, number, wide}, Convention::slots, Machine::x86_64).slots, 4U);
  EXPECT_EQ(sign(number, {pair, number}, Convention::slots, Machine::x86_64).slots, 3U);
  EXPECT_EQ(sign(number, {}, Convention::slots, Machine::x86_64).slots, 0U);
}

TEST_F(KernelArgs, know_what_their_values_mean) {
  const auto mode = made.enumeration("mode", 4, {{"OFF", 0}, {"ON", 1}, {"BOTH", -1}});
  const auto signature = sign(mode, {text, boolean, mode, number}, Convention::registers, Machine::x86_64);
  ASSERT_EQ(signature.args.size(), 4U);
  const auto arg = [&](std::size_t n) -> const Arg& { return signature.args[n]; };
  EXPECT_EQ(arg(0).type.kind, TypeKind::text);
  EXPECT_EQ(arg(1).type.kind, TypeKind::boolean);
  EXPECT_EQ(arg(2).type.kind, TypeKind::enumeration);
  EXPECT_EQ(arg(3).type.kind, TypeKind::integer);
  EXPECT_EQ(enumerator_name(arg(2), 1), "ON");
  EXPECT_EQ(enumerator_name(arg(2), 0xffffffff), "BOTH") << "its four bytes count";
  EXPECT_EQ(enumerator_name(arg(2), 2), "");
  EXPECT_EQ(enumerator_name(arg(3), 1), "");
  EXPECT_EQ(enumerator_name(*signature.result, 0), "OFF");
}

TEST_F(KernelArgs, without_types_are_the_registers_of_the_machine_and_six_words_at_least) {
  EXPECT_EQ(shown(untyped_signature(Convention::registers, Machine::x86_64), Machine::x86_64),
            "rdi u8, rsi u8, rdx u8, rcx u8, r8 u8, r9 u8");
  EXPECT_EQ(shown(untyped_signature(Convention::registers, Machine::i386), Machine::i386),
            "eax u4, edx u4, ecx u4, 4(%esp) u4, 8(%esp) u4, 12(%esp) u4");
  const auto signature = untyped_signature(Convention::registers, Machine::aarch64);
  EXPECT_EQ(shown(signature, Machine::aarch64), "x0 u8, x1 u8, x2 u8, x3 u8, x4 u8, x5 u8, x6 u8, x7 u8");
  EXPECT_EQ(signature.args[7].name(), "arg7");
  EXPECT_EQ(shown(*signature.result, Machine::aarch64), "x0 u8");
  EXPECT_TRUE(untyped_signature(Convention::slots, Machine::x86_64).args.empty());
}

}  // namespace
}  // namespace usdt::resolve
