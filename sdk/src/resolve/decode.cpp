// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/decode.hpp"

#include <optional>

#include "elf/symbols.hpp"
#include "parsers/args.hpp"
#include "resolve/resolver.hpp"

namespace usdt {
inline namespace v1 {

struct ArgDecoder::Impl {
  const arch::Arch& arch;
  std::optional<elf::SymbolIndex> symbols;  ///< absent where symbols have no addresses yet
};

namespace {

/// Object files and archive members are not linked: what their symbols will be is not known.
std::optional<elf::SymbolIndex> symbols_of(const ElfFile& file) {
  if (file.kind() == ElfKind::relocatable || file.kind() == ElfKind::archive) return std::nullopt;
  return elf::SymbolIndex(file);
}

}  // namespace

ArgDecoder::ArgDecoder(const ElfFile& file)
    : impl_(new Impl{.arch = arch::for_machine(file.machine()), .symbols = symbols_of(file)}) {}
ArgDecoder::ArgDecoder(Machine machine)
    : impl_(new Impl{.arch = arch::for_machine(machine), .symbols = std::nullopt}) {}
ArgDecoder::ArgDecoder(ArgDecoder&&) noexcept = default;
ArgDecoder& ArgDecoder::operator=(ArgDecoder&&) noexcept = default;
ArgDecoder::~ArgDecoder() = default;

Machine ArgDecoder::machine() const noexcept { return impl_->arch.machine; }

std::vector<ParsedArg> ArgDecoder::parse(std::string_view args_text) const {
  return parsers::parse_args(args_text, impl_->arch.machine);
}

std::vector<Arg> ArgDecoder::decode(std::span<const ParsedArg> parsed) const {
  std::vector<Arg> args;
  args.reserve(parsed.size());
  const elf::SymbolIndex* symbols = impl_->symbols ? &*impl_->symbols : nullptr;
  for (const ParsedArg& each : parsed) args.push_back(resolve::resolve_arg(each, impl_->arch, symbols));
  return args;
}

std::vector<Arg> ArgDecoder::decode(std::string_view args_text) const { return decode(parse(args_text)); }

std::vector<Arg> ArgDecoder::decode(const Site& site) const {
  std::vector<Arg> args = decode(site.args_text);
  if (site.description) describe(args, *site.description);
  return args;
}

}  // namespace v1
}  // namespace usdt
