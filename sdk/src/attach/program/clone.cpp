// SPDX-License-Identifier: BSD-2-Clause
#include "program/clone.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "backend/table.hpp"
#include "program/verifier_log.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"

namespace usdt::backends {
namespace {

constexpr std::uint8_t kLoadImmediate = 0x18;  // BPF_LD | BPF_IMM | BPF_DW, of two slots

void write_cookie(std::vector<bpf_insn>& code, std::uint64_t cookie) {
  for (std::size_t i = 0; i + 1 < code.size(); ++i) {
    if (code[i].code != kLoadImmediate) continue;
    if (code[i].src_reg == 0 && code[i].imm == USDT_PATCH_COOKIE && code[i + 1].imm == 0) {
      code[i].imm = static_cast<std::int32_t>(cookie);
      code[i + 1].imm = static_cast<std::int32_t>(cookie >> 32);
    }
    ++i;
  }
}

/// Loads what failed with `error` once more, for the verifier's words. Only failures pay for it.
Result<sys::UniqueFd> load_with_log(std::string_view program, sys::ProgLoad attr, int error) {
  std::string log;
  int fd = -ENOSPC;
  // Less than the 16 MiB that kernels before 5.2 refuse (bpf_check(), kernel/bpf/verifier.c).
  for (std::size_t size = std::size_t{1} << 20; fd == -ENOSPC && size < std::size_t{1} << 24; size *= 4) {
    log.assign(size, '\0');
    attr.log_level = 1;
    attr.log_buf = reinterpret_cast<std::uintptr_t>(log.data());
    attr.log_size = static_cast<std::uint32_t>(log.size());
    fd = sys::syscalls().bpf(sys::kBpfProgLoadCmd, &attr, sizeof(attr));
  }
  if (fd >= 0) return sys::UniqueFd(fd);
  if (fd == -EMFILE || fd == -ENFILE)  // whatever the verifier has said
    return fail(os_failure(ErrorKind::limit, fmt::format("load the program '{}'", program), -fd));
  log.resize(std::strlen(log.c_str()));
  if (!log.empty()) return fail(verifier_refusal(program, std::move(log), error));
  return fail(os_failure(ErrorKind::io, fmt::format("load the program '{}'", program), error));
}

}  // namespace

ProgramType program_type(const ProgramKind& kind, Backend files) noexcept {
  const Moment moment = kind.returns == ReturnBy::probe ? kind.moment : Moment::entry;
  const backends::BackendRow& row = backends::row_of(kind.backend == Backend::automatic ? files : kind.backend, moment);
  return {row.program_type, row.attach_types.of(moment)};
}

Result<sys::UniqueFd> clone_program(const bpf_program* program, const std::string& license, const CloneTarget& target) {
  const bpf_insn* first = bpf_program__insns(program);
  std::vector<bpf_insn> code(first, first + bpf_program__insn_cnt(program));
  if (target.cookie) write_cookie(code, *target.cookie);
  sys::ProgLoad attr;
  attr.prog_type = target.type.type;
  attr.expected_attach_type = target.type.attach_type;
  attr.insn_cnt = static_cast<std::uint32_t>(code.size());
  attr.insns = reinterpret_cast<std::uintptr_t>(code.data());
  attr.license = reinterpret_cast<std::uintptr_t>(license.c_str());
  attr.attach_btf_id = target.btf_id;
  attr.attach_btf_obj_fd = static_cast<std::uint32_t>(target.btf_fd);
  std::strncpy(attr.prog_name, bpf_program__name(program), sizeof(attr.prog_name) - 1);
  const int fd = sys::syscalls().bpf(sys::kBpfProgLoadCmd, &attr, sizeof(attr));
  if (fd >= 0) return sys::UniqueFd(fd);
  if (fd == -EMFILE || fd == -ENFILE) return fail(os_failure(ErrorKind::limit, "load a program", -fd));
  return load_with_log(bpf_program__name(program), attr, -fd);
}

Result<sys::UniqueFd> open_module_btf(const std::string& module) {
  sys::IdQuery next;
  while (sys::syscalls().bpf(sys::kBpfBtfGetNextIdCmd, &next, sizeof(next)) >= 0) {
    next.id = next.next_id;
    sys::IdQuery open{.id = next.id};
    const int fd = sys::syscalls().bpf(sys::kBpfBtfGetFdByIdCmd, &open, sizeof(open));
    if (fd < 0) {
      if (fd == -ENOENT) continue;  // gone meanwhile
      return fail(os_failure(ErrorKind::io, "open the BTF of a module", -fd));
    }
    sys::UniqueFd owner(fd);
    char name[64] = {};
    sys::BtfInfo info;
    info.name = reinterpret_cast<std::uintptr_t>(name);
    info.name_len = sizeof(name);
    sys::ObjectInfo attr;
    attr.bpf_fd = static_cast<std::uint32_t>(fd);
    attr.info_len = sizeof(info);
    attr.info = reinterpret_cast<std::uintptr_t>(&info);
    if (sys::syscalls().bpf(sys::kBpfObjGetInfoByFdCmd, &attr, sizeof(attr)) < 0) continue;
    if (info.kernel_btf != 0 && module == name) return owner;
  }
  return fail(ErrorKind::not_found, fmt::format("no type information (BTF) of the module '{}'", module));
}

}  // namespace usdt::backends
