// SPDX-License-Identifier: BSD-2-Clause
#include "proc/file_head.hpp"

#include <elf.h>
#include <fcntl.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "arch/arch.hpp"
#include "arch/host.hpp"
#include "sys/read.hpp"
#include "sys/regular_file.hpp"

namespace usdt::proc {
namespace {

// BINPRM_BUF_SIZE: the kernel itself reads no more of a "#!" line.
constexpr std::size_t kHeadBytes = 256;

FileHead judge(std::string_view head) {
  FileHead result;
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(head[at]); };
  if (head.starts_with(std::string_view(ELFMAG, SELFMAG))) {
    result.format = FileFormat::elf;
    // e_machine is bytes 18 and 19 in both classes, in the file's own byte order.
    if (head.size() >= 20) {
      const bool little = byte(EI_DATA) == ELFDATA2LSB;
      const int machine = little ? byte(18) | byte(19) << 8 : byte(19) | byte(18) << 8;
      result.ident = {byte(EI_CLASS), byte(EI_DATA), static_cast<std::uint16_t>(machine)};
    }
  } else if (head.starts_with("!<arch>\n")) {
    result.format = FileFormat::archive;
  } else if (head.starts_with("#!")) {
    result.format = FileFormat::script;
    result.script_line = head.substr(2, head.find('\n') - 2);
  }
  return result;
}

}  // namespace

ElfIdent ident_of(Machine machine) noexcept {
  const arch::Arch& arch = arch::for_machine(machine);
  return {arch.word_size == 8 ? std::uint8_t{ELFCLASS64} : std::uint8_t{ELFCLASS32}, ELFDATA2LSB, arch.elf_machine};
}

ElfIdent host_ident() noexcept { return ident_of(arch::kHostMachine); }

std::optional<FileHead> read_head_at(int dir, const char* path) {
  const sys::RegularFile file = sys::open_regular(dir, path);
  if (!file.fd) {
    errno = file.error;
    return std::nullopt;
  }
  std::array<char, kHeadBytes> head;
  errno = 0;
  const std::size_t size = sys::read_at(file.fd.get(), 0, std::as_writable_bytes(std::span(head)));
  if (size == 0 && errno != 0) return std::nullopt;
  return judge({head.data(), size});
}

std::optional<FileHead> read_head(const char* path) { return read_head_at(AT_FDCWD, path); }

}  // namespace usdt::proc
