// SPDX-License-Identifier: BSD-2-Clause
// Any bytes as the memory of a process that runs an interpreter: functions are read from it, or refused, and what is
// read is no larger than nobody reads.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

#include "interpreter/code_words.hpp"
#include "interpreter/cpython.hpp"
#include "interpreter/php.hpp"
#include "interpreter/ruby.hpp"

namespace {

using namespace usdt;
using namespace usdt::interpreter;

/// The bytes, again and again: pointers in them lead to others.
class Bytes final : public Memory {
 public:
  explicit Bytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  [[nodiscard]] bool read(std::uint64_t address, std::span<std::byte> room) const override {
    constexpr std::size_t most = 1 << 20;
    if (room.size() > most) std::abort();
    if (bytes_.empty() || address % 7 == 0) return false;
    for (std::size_t i = 0; i < room.size(); ++i)
      room[i] = static_cast<std::byte>(bytes_[(address + i) % bytes_.size()]);
    return true;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

template <class Layout>
std::uint64_t cookie_of(const Memory& memory, const Layout& layout, std::uint64_t code) {
  const auto words = read_code_words(memory, layout.walk.code, code);
  const auto name = words ? memory.value<std::array<__u64, USDT_NAME_WORDS>>((*words)[layout.walk.code.name_word] +
                                                                             layout.walk.code.name_at)
                          : std::nullopt;
  if (!name) return 0;
  return usdt_code_cookie(words->data(), layout.walk.code.mask,
                          usdt_name_hash(name->data(), layout.walk.code.name_bytes));
}

void read_python(const Memory& memory, const CPythonLayout& layout, std::uint64_t code) {
  CodeNames names;
  if (read_code(memory, layout, 0, code, cookie_of(memory, layout, code), names) != CodeState::read) return;
  for (const std::int64_t distance : {-2, 0, 6, 1000}) static_cast<void>(names.line_at(distance));
}

void read_ruby(const Memory& memory, const RubyLayout& ruby, std::uint64_t code) {
  RubyNames names;
  if (read_ruby_code(memory, ruby, code, cookie_of(memory, ruby, code), names) == CodeState::read)
    for (const std::uint64_t position : {0U, 1U, 60U, 4000U})
      static_cast<void>(names.line_before(names.instructions + 8 * position));
  RubyNameTable table(ruby, code, 256);
  static_cast<void>(table.find(memory, code));
}

void read_php(const Memory& memory, const PhpLayout& php, std::uint64_t code) {
  PhpNames names;
  if (read_function(memory, php, code, cookie_of(memory, php, code), names) == CodeState::read)
    static_cast<void>(line_of(memory, php, names, names.instructions));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::uint64_t code = 0;
  if (size < sizeof(code)) return 0;
  std::memcpy(&code, data, sizeof(code));
  const Bytes memory({data + sizeof(code), size - sizeof(code)});
  for (const std::uint16_t version :
       {std::uint16_t{0x030b}, std::uint16_t{0x030c}, std::uint16_t{0x030d}, std::uint16_t{0x030e}})
    if (const auto layout = cpython_layout(version, memory, code)) read_python(memory, *layout, code);
  for (const std::uint16_t version : {std::uint16_t{0x0802}, std::uint16_t{0x0804}})
    read_php(memory, *php_layout(version), code);
  for (const std::uint16_t version : {std::uint16_t{0x0301}, std::uint16_t{0x0303}})
    read_ruby(memory, *ruby_layout(version), code);
  return 0;
}
