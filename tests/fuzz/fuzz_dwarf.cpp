// SPDX-License-Identifier: BSD-2-Clause
// Any bytes as an ELF file with debug information, held in memory: everything that is asked of it says what it finds or
// why not. libdw is not instrumented; what it allocates and returns is.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "dwarf/debug_info.hpp"
#include "dwarf/functions.hpp"
#include "dwarf/lines.hpp"
#include "dwarf/running.hpp"
#include "locate/signature.hpp"

namespace {

using namespace usdt;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

void check_arg(const Arg& arg, const std::vector<Piece>& pieces) {
  require(arg.declaration != nullptr, "an argument without a declaration");
  require(!arg.declaration->type.empty(), "an argument without a type");
  require(arg.readable() || !arg.why_unreadable().empty(), "unreadable without a reason");
  require(!arg.readable() || (arg.type.size != 0 && arg.type.size <= 8), "a readable value of no size");
  for (const Piece& piece : pieces) require(piece.size != 0 || arg.type.size == 0, "a piece of no size");
}

void check_types(const TypeGraph& graph, TypeId type, unsigned depth) {
  const auto info = graph.info(type);
  require(info || !info.error().message.empty(), "an error without a message");
  const auto members = graph.members(type);
  (void)graph.enumerators(type);
  if (depth == 0) return;
  if (info && info->target != TypeId::none) check_types(graph, info->target, depth - 1);
  for (std::size_t i = 0; members && i < members->size() && i < 8; ++i) {
    const MemberInfo& member = (*members)[i];
    require(member.bits == 0 || member.shift < 64, "a bit-field that begins behind its number");
    check_types(graph, member.type, depth - 1);
  }
}

void check_function(const dwarf::DebugInfo& info, const locate::Signatures& signatures,
                    const dwarf::FunctionInfo& function) {
  require(!function.name.empty() && !function.instances.empty(), "a function without name or code");
  for (const dwarf::Instance& instance : function.instances) {
    const auto signature = signatures.of(function, instance);
    require(signature.has_value(), "an instance without a signature");
    require(signature->args.size() == signature->pieces.size(), "arguments and pieces differ in number");
    for (std::size_t i = 0; i < signature->args.size(); ++i) check_arg(signature->args[i], signature->pieces[i]);
    if (signature->result) check_arg(*signature->result, signature->result_pieces);
    const auto types = info.types();
    require(signature->args.size() == signature->types.size(), "arguments and types differ in number");
    for (const TypeId type : signature->types) check_types(*types, type, 3);
    check_types(*types, signature->result_type, 3);
    if (!instance.inlined) (void)dwarf::function_at(info, instance.pc);
  }
}

void check_file(const std::string& path) {
  const auto file = ElfFile::open(path, {.debug_dirs = {}});
  if (!file) return;
  const auto info = dwarf::DebugInfo::open(*file);
  if (!info) return require(!info.error().message.empty(), "an error without a message");
  const locate::Signatures signatures(*info);
  // Before all of them are asked for: only then units are left out by their bytes.
  const auto named = dwarf::functions_named(*info, "main");
  for (std::size_t i = 0; named && i < named->size(); ++i) check_function(*info, signatures, (*named)[i]);
  const auto functions = dwarf::find_functions(*info, [](const dwarf::FunctionInfo&) { return true; });
  if (!functions) return require(!functions.error().message.empty(), "an error without a message");
  for (const dwarf::FunctionInfo& function : *functions) check_function(*info, signatures, function);
  if (const auto lines = dwarf::addresses_of_line(*info, "seed.c", 3)) {
    for (const VirtAddr pc : *lines) {
      const auto function = dwarf::function_around(*info, pc);
      require(!function || function->instances.size() == 1, "a line in several functions");
      const auto variables =
          function ? signatures.with_variables(*function, function->instances.front(), 3) : Result<locate::Signature>();
      for (std::size_t i = 0; variables && i < variables->args.size(); ++i)
        check_arg(variables->args[i], variables->pieces[i]);
    }
  }
  (void)dwarf::next_line_with_code(*info, "seed.c", 3);
  const auto found = info->types()->find_all("struct node");
  for (std::size_t i = 0; found && i < found->size(); ++i) check_types(*info->types(), (*found)[i], 4);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int fd = ::memfd_create("fuzz_dwarf", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  require(fd >= 0 && ::ftruncate(fd, 0) == 0, "no file in memory");
  require(::pwrite(fd, data, size, 0) == static_cast<ssize_t>(size), "a short write to memory");
  check_file(path);
  return 0;
}
