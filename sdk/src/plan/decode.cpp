// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/decode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "parsers/args.hpp"
#include "plan/decoder.hpp"

namespace usdt {
namespace {

/// Object files and archive members are not linked: what their symbols will be is not known.
std::optional<elf::SymbolIndex> symbols_of(const ElfFile& file) {
  if (file.kind() == ElfKind::relocatable || file.kind() == ElfKind::archive) return std::nullopt;
  return elf::SymbolIndex(file);
}

std::vector<Arg> args_of(std::vector<plan::ResolvedArg> resolved) {
  std::vector<Arg> args;
  args.reserve(resolved.size());
  for (plan::ResolvedArg& each : resolved) args.push_back(std::move(each.arg));
  return args;
}

}  // namespace

std::string_view enumerator_name(const Arg& arg, std::uint64_t bits) noexcept {
  const unsigned spare = arg.size == 0 || arg.size > 8 ? 0 : 64 - 8 * arg.size;
  const auto found = std::find_if(arg.enumerators.begin(), arg.enumerators.end(),
                                  [&](const Enumerator& each) { return each.bits << spare == bits << spare; });
  return found == arg.enumerators.end() ? std::string_view() : std::string_view(found->name);
}

std::string type_name(const Arg& arg) {
  const std::uint64_t bits = 8 * static_cast<std::uint64_t>(arg.size);
  const bool integer = arg.size == 1 || arg.size == 2 || arg.size == 4 || arg.size == 8;
  if (arg.spec.is_float && (arg.size == 4 || arg.size == 8)) return fmt::format("f{}", bits);
  if (arg.spec.is_float || !integer) return fmt::format("?{}", bits);
  return fmt::format("{}{}", arg.spec.is_signed ? 'i' : 'u', bits);
}

std::vector<plan::ResolvedArg> ArgDecoder::Impl::resolve(std::string_view args_text, VirtAddr pc) const {
  std::vector<ArgSpec> specs = parsers::parse_args(args_text, arch.machine);
  std::vector<plan::ResolvedArg> resolved;
  resolved.reserve(specs.size());
  for (ArgSpec& spec : specs) {
    resolved.push_back(plan::resolve_arg(std::move(spec), arch, symbols ? &*symbols : nullptr, pc));
  }
  return resolved;
}

ArgDecoder::ArgDecoder(const ElfFile& file)
    : impl_(new Impl{.arch = arch::for_machine(file.machine()), .symbols = symbols_of(file)}) {}
ArgDecoder::ArgDecoder(Machine machine)
    : impl_(new Impl{.arch = arch::for_machine(machine), .symbols = std::nullopt}) {}
ArgDecoder::ArgDecoder(ArgDecoder&&) noexcept = default;
ArgDecoder& ArgDecoder::operator=(ArgDecoder&&) noexcept = default;
ArgDecoder::~ArgDecoder() = default;

std::vector<Arg> ArgDecoder::decode(const Site& site) const {
  return args_of(impl_->resolve(site.args_text, site.pc_adjusted));
}

std::vector<Arg> ArgDecoder::decode(std::string_view args_text) const {
  return args_of(impl_->resolve(args_text, VirtAddr{}));
}

}  // namespace usdt
