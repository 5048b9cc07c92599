// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/ask_lists.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

#include "kernel/ask.hpp"
#include "kernel/small_program.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"

namespace usdt::kernel {
namespace {

/// The program that the kernel runs for each symbol (kernel/kallsyms.c: bpf_iter_ksym): it writes a line of those
/// wanted.
std::optional<SmallProgram> symbol_writer(const btf::Types& types, std::span<const std::string_view> beginnings) {
  const auto type = types.member_offset("kallsym_iter", "type");
  const auto name = types.member_offset("kallsym_iter", "name");
  const auto module = types.member_offset("kallsym_iter", "module_name");
  const auto value = types.member_offset("kallsym_iter", "value");
  if (!type || !name || !module || !value) return std::nullopt;
  constexpr std::uint32_t seq_printf = 126;
  static constexpr char line[] = "%lx %c %s\t[%s]\t%pS\n";
  constexpr int line_at = -24;
  constexpr int words_at = line_at - 5 * 8;
  static_assert(sizeof(line) <= 24);
  std::vector<std::size_t> to_end;
  std::vector<std::size_t> to_line;
  SmallProgram code;
  code.add(Op::load_64, 6, 1).add(Op::load_64, 7, 1, 8);  // struct bpf_iter__ksym: meta, ksym
  to_end.push_back(code.size());
  code.add(Op::jump_if_set_to, 7);
  code.add(Op::load_64, 6, 6);  // struct bpf_iter_meta: seq
  code.add(Op::load_8, 8, 7, static_cast<int>(*type)).add(Op::move, 2, 8).add(Op::set_bits, 2, 0, 0, 'a' - 'A');
  code.add(Op::jump_if_set_to, 2, 0, 1, 't');
  to_end.push_back(code.size());
  code.add(Op::jump_if_not_set_to, 2, 0, 0, 'w');
  code.add(Op::load_64, 2, 7, static_cast<int>(*name));
  for (const std::string_view beginning : beginnings) {
    std::uint64_t letters = 0;
    std::uint64_t mask = 0;
    const std::size_t count = std::min(beginning.size(), sizeof(letters));
    std::memcpy(&letters, beginning.data(), count);
    std::memset(&mask, 0xff, count);
    code.wide(3, mask).add(Op::mask, 3, 2).wide(4, letters);
    to_line.push_back(code.size());
    code.add(Op::jump_if_equal, 3, 4);
  }
  to_end.push_back(code.size());
  code.add(Op::jump);
  for (const std::size_t jump : to_line) code.land_here(jump);
  code.put(line, line_at);
  code.add(Op::load_64, 2, 7, static_cast<int>(*value)).add(Op::store_64, 10, 2, words_at);
  code.add(Op::store_64, 10, 2, words_at + 32).add(Op::store_64, 10, 8, words_at + 8);
  code.add(Op::move, 2, 7).add(Op::add, 2, 0, 0, *name).add(Op::store_64, 10, 2, words_at + 16);
  code.add(Op::move, 2, 7).add(Op::add, 2, 0, 0, *module).add(Op::store_64, 10, 2, words_at + 24);
  code.add(Op::move, 1, 6).add(Op::move, 2, 10).add(Op::add, 2, 0, 0, static_cast<std::uint32_t>(line_at));
  code.add(Op::set, 3, 0, 0, sizeof(line));
  code.add(Op::move, 4, 10).add(Op::add, 4, 0, 0, static_cast<std::uint32_t>(words_at)).add(Op::set, 5, 0, 0, 5 * 8);
  code.add(Op::call, 0, 0, 0, seq_printf);
  for (const std::size_t jump : to_end) code.land_here(jump);
  code.add(Op::set, 0).add(Op::exit);
  return code;
}

/// Copies memory of the kernel: a program reads it into the value of a map, which is mapped here.
class KernelMemory {
 public:
  KernelMemory() {
    sys::MapCreate of;
    of.value_size = kPiece;
    of.map_flags = sys::kBpfFMmapable;
    const sys::UniqueFd map(sys::syscalls().bpf(sys::kBpfMapCreateCmd, &of, sizeof(of)));
    void* mapped = map ? ::mmap(nullptr, kPiece, PROT_READ, MAP_SHARED, map.get(), 0) : MAP_FAILED;
    if (mapped == MAP_FAILED) return;
    piece_.reset(static_cast<const std::byte*>(mapped));
    constexpr std::uint32_t probe_read_kernel = 113;
    SmallProgram code;
    code.add(Op::load_64, 3, 1, offsetof(Request, address)).add(Op::load_64, 2, 1, offsetof(Request, size));
    code.add(Op::set, 0, 0, 0, 1);
    const std::size_t too_much = code.size();
    code.add(Op::jump_if_above, 2, 0, 0, kPiece);
    code.map_value(1, map).add(Op::call, 0, 0, 0, probe_read_kernel);
    code.land_here(too_much);
    code.add(Op::exit);
    sys::ProgLoad as;
    as.prog_type = sys::kBpfProgTypeSyscall;
    as.prog_flags = sys::kBpfFSleepable;
    program_ = code.load(as);
  }

  /// Returns false where not all bytes can be read.
  [[nodiscard]] bool read(std::uint64_t address, std::span<std::byte> out) {
    while (!out.empty()) {
      Request request{address, std::min<std::size_t>(out.size(), kPiece)};
      if (!program_ || !run_program(program_, std::as_writable_bytes(std::span(&request, 1)))) return false;
      std::memcpy(out.data(), piece_.get(), request.size);
      out = out.subspan(request.size);
      address += request.size;
    }
    return true;
  }
  template <class Value>
  [[nodiscard]] std::optional<Value> read(std::uint64_t address) {
    Value value{};
    return read(address, std::as_writable_bytes(std::span(&value, 1))) ? std::optional(value) : std::nullopt;
  }

 private:
  static constexpr std::uint32_t kPiece = 32 * 1024;
  /// The context that the BPF program is called with.
  struct Request {
    std::uint64_t address;
    std::uint64_t size;
  };
  struct Unmap {
    void operator()(const std::byte* piece) const noexcept { ::munmap(const_cast<std::byte*>(piece), kPiece); }
  };
  std::unique_ptr<const std::byte, Unmap> piece_;
  sys::UniqueFd program_;
};

/// Offsets of the members of struct ftrace_page and struct dyn_ftrace that are read.
struct FtraceLayout {
  std::uint32_t next = 0;
  std::uint32_t records = 0;
  std::uint32_t count = 0;
  std::uint32_t address = 0;      ///< in a record
  std::uint32_t record_size = 0;  ///< bytes

  static std::optional<FtraceLayout> of(const btf::Types& types) {
    const auto next = types.member_offset("ftrace_page", "next");
    const auto records = types.member_offset("ftrace_page", "records");
    const auto count = types.member_offset("ftrace_page", "index");
    const auto address = types.member_offset("dyn_ftrace", "ip");
    const auto size = types.structure_size("dyn_ftrace");
    if (!next || !records || !count || !address || !size || *size < *address + sizeof(std::uint64_t))
      return std::nullopt;
    return FtraceLayout{*next, *records, *count, *address, *size};
  }
};

}  // namespace

std::optional<Text> ask_symbols(const btf::Types& types, std::span<const std::string_view> beginnings) {
  sys::ProgLoad as;
  as.prog_type = sys::kBpfProgTypeTracing;
  as.expected_attach_type = sys::kBpfAttachTraceIter;
  as.attach_btf_id = types.function_id("bpf_iter_ksym");
  if (as.attach_btf_id == 0) return std::nullopt;
  const auto code = symbol_writer(types, beginnings);
  if (!code) return std::nullopt;
  const sys::UniqueFd program = code->load(as);
  sys::LinkCreateIter link_of;
  link_of.prog_fd = static_cast<std::uint32_t>(program.get());
  const sys::UniqueFd link(program ? sys::syscalls().bpf(sys::kBpfLinkCreateCmd, &link_of, sizeof(link_of)) : -1);
  sys::IterCreate iterator_of;
  iterator_of.link_fd = static_cast<std::uint32_t>(link.get());
  const sys::UniqueFd iterator(link ? sys::syscalls().bpf(sys::kBpfIterCreateCmd, &iterator_of, sizeof(iterator_of))
                                    : -1);
  if (!iterator) return std::nullopt;
  auto text = Text::read(iterator.get(), "bpf_iter_ksym");
  return text ? std::optional(std::move(*text)) : std::nullopt;
}

std::optional<std::vector<std::uint64_t>> ask_ftrace_places(const btf::Types& types) {
  constexpr std::uint32_t most = 1u << 22;  // records: more than kernels have bytes for
  const auto layout = FtraceLayout::of(types);
  const std::uint64_t start = layout ? ask_address("ftrace_pages_start") : 0;
  if (start == 0) return std::nullopt;
  KernelMemory memory;
  std::vector<std::uint64_t> places;
  std::vector<std::byte> records;
  auto page = memory.read<std::uint64_t>(start);
  for (std::uint32_t pages = 0; page && *page != 0; ++pages) {
    const auto at = memory.read<std::uint64_t>(*page + layout->records);
    const auto count = memory.read<std::uint32_t>(*page + layout->count);
    if (!at || !count || *count > most - places.size() || pages == most) return std::nullopt;
    records.resize(std::size_t{*count} * layout->record_size);
    if (!memory.read(*at, records)) return std::nullopt;
    for (std::size_t record = 0; record < records.size(); record += layout->record_size)
      std::memcpy(&places.emplace_back(), records.data() + record + layout->address, sizeof(std::uint64_t));
    page = memory.read<std::uint64_t>(*page + layout->next);
  }
  if (!page || places.empty()) return std::nullopt;
  std::ranges::sort(places);
  return places;
}

}  // namespace usdt::kernel
