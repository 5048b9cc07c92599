// SPDX-License-Identifier: BSD-2-Clause
// Where debug information is found, and what is said where it is not; debug information made to lead nowhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "dwarf/debug_info.hpp"
#include "dwarf/functions.hpp"
#include "dwarf/lines.hpp"
#include "locate/signature.hpp"
#include "toolchain.hpp"

namespace usdt::test {
namespace {

using dwarf::DebugInfo;
using testing::HasSubstr;

class OpenedProgram : public testing::Test {
 protected:
  void SetUp() override {
    dir_.write("prog.c",
               "int twice(int x) { return 2 * x; }\nint main(int argc, char **argv) { return twice(argc); }\n");
    const auto built = run_in(dir_,
                              "cc -g -O1 prog.c -o whole -Wl,--build-id=0x0123456789abcdef && "
                              "objcopy --only-keep-debug whole prog.debug && objcopy --strip-all whole bare && "
                              "objcopy --strip-all --add-gnu-debuglink=prog.debug whole linked && rm -f prog.c");
    ASSERT_EQ(built.status, 0) << built.output;
  }
  [[nodiscard]] Result<DebugInfo> open(std::string_view name) const {
    const auto file = ElfFile::open(dir_ / name, {.debug_dirs = {dir_ / "root"}});
    if (!file) return fail(file.error());
    return DebugInfo::open(*file);
  }
  static void expect_twice(const Result<DebugInfo>& info) {
    ASSERT_TRUE(info) << info.error().message;
    const auto found = dwarf::functions_named(*info, "twice");
    ASSERT_TRUE(found && found->size() == 1);
    const auto signature = locate::Signatures(*info).of(found->front(), found->front().instances.front());
    ASSERT_TRUE(signature && signature->args.size() == 1);
    EXPECT_EQ(signature->args[0].name(), "x");
    EXPECT_EQ(signature->args[0].c_type(), "int");
    EXPECT_TRUE(signature->args[0].readable()) << signature->args[0].why_unreadable();
    ASSERT_TRUE(signature->result);
    EXPECT_EQ(signature->result->c_type(), "int");
  }
  TempDir dir_;
};

TEST_F(OpenedProgram, has_its_own) {
  const auto info = open("whole");
  expect_twice(info);
  EXPECT_EQ(info->path(), dir_ / "whole");
}

TEST_F(OpenedProgram, has_a_separate_file_by_its_build_id) {
  std::filesystem::create_directories(dir_ / "root/.build-id/01");
  std::filesystem::copy(dir_ / "prog.debug", dir_ / "root/.build-id/01/23456789abcdef.debug");
  const auto info = open("bare");
  expect_twice(info);
  EXPECT_EQ(info->path(), dir_ / "root/.build-id/01/23456789abcdef.debug");
}

TEST_F(OpenedProgram, has_a_separate_file_by_its_link) { expect_twice(open("linked")); }

TEST_F(OpenedProgram, does_not_take_the_file_of_another_build) {
  dir_.write("other.c", "int main(void) { return 0; }\n");
  ASSERT_EQ(run_in(dir_,
                   "cc -g other.c -o other -Wl,--build-id=0xfedcba98 && "
                   "objcopy --only-keep-debug other prog.debug")
                .status,
            0);
  const auto info = open("linked");
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().kind, ErrorKind::not_found);
}

TEST_F(OpenedProgram, is_read_to_the_end_although_another_user_cuts_it_off) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root: every file that may be read is one's own or root's";
  const std::filesystem::path path = dir_ / "whole";
  constexpr off_t larger_than_copies = 65 << 20;
  ASSERT_EQ(::truncate(path.c_str(), larger_than_copies), 0);
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  const auto info = open("whole");
  ASSERT_EQ(::truncate(path.c_str(), 4096), 0);
  expect_twice(info);
}

TEST_F(OpenedProgram, of_another_user_is_not_read_if_it_is_too_large_to_be_copied) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root";
  const std::filesystem::path path = dir_ / "whole";
  ASSERT_EQ(::truncate(path.c_str(), off_t{1} << 30), 0);
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  const auto info = open("whole");
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().kind, ErrorKind::limit);
  EXPECT_THAT(info.error().message, HasSubstr("can be changed by others"));
}

TEST_F(OpenedProgram, says_that_it_has_none) {
  const auto info = open("bare");
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().kind, ErrorKind::not_found);
  EXPECT_THAT(info.error().message, HasSubstr("bare has no debug information (DWARF)"));
}

TEST_F(OpenedProgram, is_linked) {
  dir_.write("prog.c", "int one(void) { return 1; }\n");
  ASSERT_EQ(run_in(dir_, "cc -g -c prog.c -o prog.o").status, 0);
  const auto info = open("prog.o");
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().kind, ErrorKind::not_supported);
}

TEST_F(OpenedProgram, stops_when_asked) {
  const auto info = open("whole");
  ASSERT_TRUE(info);
  StopSource stop;
  stop.request_stop();
  const auto functions = dwarf::functions_named(*info, "twice", stop.get_token());
  ASSERT_FALSE(functions);
  EXPECT_EQ(functions.error().kind, ErrorKind::stopped);
}

TEST_F(OpenedProgram, stops_when_who_opened_it_asks) {
  StopSource stop;
  const auto file = ElfFile::open(dir_ / "whole");
  const auto info = DebugInfo::open(*file, stop.get_token());
  ASSERT_TRUE(info);
  stop.request_stop();
  const auto functions = dwarf::functions_named(*info, "twice");
  ASSERT_FALSE(functions);
  EXPECT_EQ(functions.error().kind, ErrorKind::stopped);
}

TEST_F(OpenedProgram, has_no_signature_that_may_lack_parameters_once_it_was_stopped) {
  StopSource stop;
  const auto file = ElfFile::open(dir_ / "whole");
  const auto info = DebugInfo::open(*file, stop.get_token());
  ASSERT_TRUE(info);
  const auto functions = dwarf::functions_named(*info, "twice");
  ASSERT_TRUE(functions);
  ASSERT_FALSE(functions->empty());
  const auto& function = functions->front();
  const locate::Signatures signatures(*info);
  EXPECT_TRUE(signatures.of(function, function.instances.front()));
  stop.request_stop();
  const auto signature = signatures.of(function, function.instances.front());
  ASSERT_FALSE(signature);
  EXPECT_EQ(signature.error().kind, ErrorKind::stopped);
  const auto again = dwarf::function_at(*info, function.instances.front().pc);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, ErrorKind::stopped);
}

TEST_F(OpenedProgram, refuses_instances_of_another) {
  const auto info = open("whole");
  ASSERT_TRUE(info);
  EXPECT_FALSE(locate::Signatures(*info).of({}, {.pc = VirtAddr(1), .die = static_cast<dwarf::DieId>(7)}));
}

TEST_F(OpenedProgram, does_not_wait_for_a_fifo_in_place_of_a_split_file) {
  dir_.write("split.c", "int main(int argc, char **argv) { return argc; }\n");
  const auto built = run_in(dir_,
                            "cc -g -gsplit-dwarf -c split.c -o split.o && cc split.o -o split && rm split.dwo && "
                            "mkfifo split.dwo");
  ASSERT_EQ(built.status, 0) << built.output;
  const auto info = open("split");
  ASSERT_TRUE(info) << info.error().message;
  const auto found = dwarf::functions_named(*info, "main");
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->empty());
}

TEST_F(OpenedProgram, has_parameters_in_their_slots_behind_the_prologue) {
  dir_.write("slots.c", "int f(int a, long b) { return a + (int)b; }\nint main(void) { return f(1, 2); }\n");
  for (const std::string compiler : {"gcc", "clang"}) {
    ASSERT_EQ(run_in(dir_, compiler + " -g -O0 slots.c -o slots").status, 0);
    const auto info = open("slots");
    ASSERT_TRUE(info) << info.error().message;
    const auto found = dwarf::functions_named(*info, "f");
    ASSERT_TRUE(found && found->size() == 1);
    dwarf::Instance instance = found->front().instances.front();
    const VirtAddr entry = instance.pc;
    const auto body = dwarf::body_of(*info, instance);
    ASSERT_TRUE(body && *body > entry);
    for (const VirtAddr pc : {entry, entry + 1, *body}) {
      instance.pc = pc;
      const auto signature = locate::Signatures(*info).of(found->front(), instance);
      ASSERT_TRUE(signature && signature->args.size() == 2);
      for (const Arg& arg : signature->args) {
        EXPECT_EQ(std::holds_alternative<Register>(arg.location), pc == entry);
        EXPECT_EQ(std::holds_alternative<Memory>(arg.location), pc == *body) << arg.why_unreadable();
        EXPECT_EQ(arg.readable(), pc != entry + 1);
      }
    }
  }
}

/// One unit with `dies`, whose abbreviations are: 2 a function f (type: 4 bytes), 3 its parameter x of a type, 4 a
/// typedef of a type, 5 a function by its origin, 6 a DIE with a next sibling, 7 a namespace.
std::string hostile(std::string_view dies) {
  return R"(
  .text
  .globl f, _start
  .type f, @function
f: ret
.Lend: .size f, .-f
_start: nop
  .section .debug_abbrev,"",@progbits
  .byte 1, 0x11, 1, 0x13, 0x0b, 0x11, 1, 0x12, 6, 0, 0
  .byte 2, 0x2e, 1, 3, 8, 0x3f, 0x19, 0x27, 0x19, 0x11, 1, 0x12, 6, 0x40, 0x18, 0, 0
  .byte 3, 5, 0, 3, 8, 0x49, 0x13, 2, 0x18, 0, 0
  .byte 4, 0x16, 0, 3, 8, 0x49, 0x13, 0, 0
  .byte 5, 0x2e, 0, 0x31, 0x13, 0x11, 1, 0x12, 6, 0, 0
  .byte 6, 0x39, 1, 1, 0x13, 0, 0
  .byte 7, 0x39, 1, 0, 0
  .byte 0
  .section .debug_info,"",@progbits
.Lunit: .long .Lu1 - .Lu0
.Lu0: .short 5
  .byte 1, 8
  .long .debug_abbrev
  .byte 1, 0x1d
  .quad f
  .long .Lend - f
)" + std::string(dies) +
         "\n  .byte 0\n.Lu1:\n  .section .note.GNU-stack,\"\",@progbits\n";
}

class HostileUnit : public testing::Test {
 protected:
  /// All functions with their signatures.
  [[nodiscard]] Result<std::vector<locate::Signature>> read(std::string_view dies) {
    dir_.write("x.s", hostile(dies));
    const auto built = run_in(dir_, "as -64 x.s -o x.o && ld -Ttext=0x401000 x.o -o x");
    EXPECT_EQ(built.status, 0) << built.output;
    const auto file = ElfFile::open(dir_ / "x");
    if (!file) return fail(file.error());
    const auto info = DebugInfo::open(*file);
    if (!info) return fail(info.error());
    const auto functions = dwarf::find_functions(*info, [](const dwarf::FunctionInfo&) { return true; });
    if (!functions) return fail(functions.error());
    types_ = info->types();
    const locate::Signatures signatures(*info);
    std::vector<locate::Signature> all;
    for (const auto& function : *functions)
      for (const auto& instance : function.instances) all.push_back(*signatures.of(function, instance));
    return all;
  }
  TempDir dir_;
  std::shared_ptr<const TypeGraph> types_;
};

constexpr std::string_view kFunction = R"(  .byte 2
  .string "f"
  .quad f
  .long .Lend - f
  .byte 1, 0x9c
  .byte 3
  .string "x"
  .long .Ltype - .Lunit
  .byte 1, 0x55
  .byte 0
)";

TEST_F(HostileUnit, a_typedef_of_itself_is_a_type_that_is_not_known) {
  const auto all = read(std::string(kFunction) + ".Ltype: .byte 4\n .string \"t\"\n .long .Ltype - .Lunit\n");
  ASSERT_TRUE(all && all->size() == 1);
  EXPECT_EQ((*all)[0].args[0].why_unreadable(), "of a type that is not known");
  const TypeId type = (*all)[0].types.at(0);
  EXPECT_EQ(types_->info(type).error().kind, ErrorKind::malformed);
  EXPECT_EQ(types_->members(type).error().kind, ErrorKind::malformed);
  EXPECT_TRUE(types_->enumerators(type).empty());
  EXPECT_TRUE(types_->find("t")) << "it has a name all the same";
}

TEST_F(HostileUnit, a_function_that_is_its_own_origin_ends) {
  const auto all = read(".Lself: .byte 5\n .long .Lself - .Lunit\n .quad f\n .long .Lend - f\n");
  EXPECT_TRUE(all) << all.error().message;
}

TEST_F(HostileUnit, siblings_in_a_circle_end) {
  const auto all =
      read(".Lone: .byte 6\n .long .Ltwo - .Lunit\n .byte 0\n.Ltwo: .byte 6\n .long .Lone - .Lunit\n .byte 0\n");
  EXPECT_TRUE(all || all.error().kind == ErrorKind::malformed);
}

TEST_F(HostileUnit, siblings_that_are_ones_own_children_are_met_once) {
  const auto all = read(std::string(kFunction) + ".Ltype: .byte 4\n .string \"t\"\n .long .Ltype - .Lunit\n" +
                        ".rept 60\n .byte 6\n .long . + 4 - .Lunit\n .endr\n .byte 7\n .rept 62\n .byte 0\n .endr\n");
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().kind, ErrorKind::malformed);
}

TEST_F(HostileUnit, types_are_looked_for_in_siblings_in_a_circle_to_an_end) {
  dir_.write("x.s", hostile(".Lone: .byte 6\n .long .Ltwo - .Lunit\n .byte 0\n"
                            ".Ltwo: .byte 6\n .long .Lone - .Lunit\n .byte 0\n"));
  ASSERT_EQ(run_in(dir_, "as -64 x.s -o x.o && ld -Ttext=0x401000 x.o -o x").status, 0);
  const auto info = DebugInfo::open(*ElfFile::open(dir_ / "x"));
  ASSERT_TRUE(info) << info.error().message;
  const auto found = info->types()->find("x");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().kind, testing::AnyOf(ErrorKind::malformed, ErrorKind::not_found));
}

TEST_F(HostileUnit, namespaces_how_deep_soever) {
  const auto all = read(".rept 100000\n .byte 7\n .endr\n .rept 100000\n .byte 0\n .endr\n");
  EXPECT_TRUE(all) << all.error().message;
}

TEST_F(HostileUnit, a_compressed_section_that_claims_too_much_is_not_unpacked) {
  dir_.write("x.s", hostile(kFunction) + "\n .section .debug_info\n .Ltype = .Lunit\n");
  const auto built = run_in(dir_, "as -64 x.s -o x.o && ld -Ttext=0x401000 x.o -o y");
  ASSERT_EQ(built.status, 0) << built.output;
  // Real compressors do not lie: the head is written by hand.
  dir_.write("claim.py", R"(import struct
data = bytearray(open('y', 'rb').read())
shoff, = struct.unpack_from('<Q', data, 40)
size, count, names = struct.unpack_from('<HHH', data, 58)
strings, = struct.unpack_from('<Q', data, shoff + names * size + 24)
for i in range(count):
    at = shoff + i * size
    name, kind, flags, address, offset, length = struct.unpack_from('<IIQQQQ', data, at)
    text = data[strings + name:data.index(0, strings + name)]
    if text == b'.debug_info':
        struct.pack_into('<Q', data, at + 8, flags | 0x800)
        struct.pack_into('<IIQQ', data, offset, 1, 0, 1 << 45, 1)
open('z', 'wb').write(data)
)");
  const auto head = run_in(dir_, "python3 claim.py");
  ASSERT_EQ(head.status, 0) << head.output;
  const auto file = ElfFile::open(dir_ / "z");
  ASSERT_TRUE(file);
  const auto info = DebugInfo::open(*file);
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().kind, ErrorKind::limit);
}

}  // namespace
}  // namespace usdt::test
