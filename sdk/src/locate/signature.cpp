// SPDX-License-Identifier: BSD-2-Clause
// Parameters and results: where they are at one instruction.
//
// Programs run before the first instruction of a function, where what DWARF says of a variable "in this function" is
// not true yet: the stack slot that GCC and Clang give each parameter at -O0, or one whose address is taken, is filled
// by the prologue. What is true there is a location list's entry for that address, what was on the stack before the
// call, and the calling convention.
#include "locate/signature.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/try.hpp"
#include "dwarf/compiler.hpp"
#include "dwarf/die.hpp"
#include "dwarf/types.hpp"
#include "locate/code_reads.hpp"
#include "locate/convention.hpp"
#include "locate/go_parts.hpp"
#include "locate/locator.hpp"
#include "locate/moment.hpp"
#include "locate/parameters.hpp"
#include "locate/place_checker.hpp"
#include "locate/results.hpp"
#include "locate/spilled.hpp"
#include "locate/stated_place.hpp"
#include "locate/typed_place.hpp"

namespace usdt::locate {
namespace {

constexpr std::string_view kLeftOut = "left out by some callers if this function does not use it";
constexpr std::string_view kPartlyGone = "optimised out here, as a part of what is passed";
constexpr std::string_view kNotFilled = "in memory that may be filled only behind this instruction";

/// Finds the signature of one instance of a function.
class Signer {
 public:
  Signer(State& state, const FunctionInfo& function, const Instance& instance, Dwarf_Die die, Dwarf_Die inside)
      : moment_(state, instance, die, inside),
        checker_(moment_),
        spilled_(moment_),
        types_(moment_.info.names, moment_.arch, [&info = moment_.info] { return info.code_names().has_quads(); }),
        locator_(moment_.arch),
        language_(language_of(die)),
        is_noreturn_(function.noreturn),
        convention_(moment_, checker_, spilled_, types_, user_shapes_, language_, function.external, stated_, shapes_) {
  }
  Signer(const Signer&) = delete;
  Signer& operator=(const Signer&) = delete;

  [[nodiscard]] Signature run() {
    Signature signature;
    std::vector<Parameter> parameters = parameters_of(moment_.die, ends_, signature.varargs);
    std::vector<Parameter> results;
    if (language_ == Language::go) {
      const auto is_result = [](const Parameter& each) { return is_go_result(each.declared); };
      for (const GoResult& each : go_results(declaration_of(moment_), types_)) {
        const auto same = [&each](const Parameter& one) { return one.declared.addr == each.die.addr; };
        std::ranges::copy_if(parameters, std::back_inserter(results), same);
      }
      std::erase_if(parameters, is_result);
    }
    read(parameters, signature);
    if (moment_.instance.inlined || is_noreturn_) return signature;
    const Results all(moment_, checker_, types_, user_shapes_);
    language_ == Language::go ? all.add_of_go(results, signature)
                              : all.add(language_, convention_.of_results(), signature);
    return signature;
  }

  /// Local variables hide parameters of their names.
  [[nodiscard]] Signature variables(std::uint32_t line) {
    moment_.wants_arguments = false;
    Signature signature;
    std::vector<Parameter> locals;
    if (!moment_.at_entry) locals = locals_of(moment_.die, moment_.instance.pc, line, ends_);
    std::vector<Parameter> all = parameters_of(moment_.die, ends_, signature.varargs);
    const auto name_of = [](const Parameter& each) { return text(attribute(each.declared, DW_AT_name)); };
    std::erase_if(all, [&](const Parameter& each) {
      return std::ranges::any_of(locals, [&](const Parameter& one) { return name_of(one) == name_of(each); });
    });
    all.insert(all.end(), locals.begin(), locals.end());
    read(all, signature);
    return signature;
  }

 private:
  void read(const std::vector<Parameter>& parameters, Signature& signature) {
    for (const Parameter& each : parameters) {
      stated_.push_back(stated_place(each, moment_));
      shapes_.push_back(user_shapes_.of(type_of(each.declared), language_));
    }
    if (!moment_.instance.inlined) convention_.decide(parameters, signature.varargs);
    if (language_ == Language::go && moment_.at_entry && !moment_.instance.inlined)
      go_places_ = arch::go_places(moment_.arch, shapes_);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      auto [arg, pieces] = argument(parameters[i], i);
      if (const auto length = length_among(parameters, i)) make_text(arg, i, *length);
      signature.args.push_back(std::move(arg));
      signature.pieces.push_back(std::move(pieces));
      signature.types.push_back(moment_.info.types.known.id_of(type_of(parameters[i].declared)));
    }
  }

  /// The parameter that has the length of a text of Fortran, which is passed by its address, if it is one.
  [[nodiscard]] static std::optional<std::size_t> length_among(const std::vector<Parameter>& parameters,
                                                               std::size_t n) {
    auto type = resolved(type_of(parameters[n].declared));
    if (!type || dwarf_tag(&*type) != DW_TAG_string_type) return std::nullopt;
    const auto length = reference(own_attribute(*type, DW_AT_string_length));
    if (!length) return std::nullopt;
    const auto is_it = [&length](const Parameter& each) {
      return each.declared.addr == length->addr || (each.here && each.here->addr == length->addr);
    };
    const auto found = std::ranges::find_if(parameters, is_it);
    return found == parameters.end() ? std::nullopt : std::optional<std::size_t>(found - parameters.begin());
  }

  void make_text(Arg& arg, std::size_t number, std::size_t length) {
    StatedPlace what = stated_[number];
    // Without optimisation the address is in a slot, which is filled by the first instructions.
    if (auto stored = spilled_.at_entry(what, moment_.arch.word_size, false)) what = {std::move(*stored), true};
    const auto* place = what.pieces.size() == 1 ? std::get_if<AtAddress>(&what.pieces.front().where) : nullptr;
    if (place == nullptr || place->address.width != 0 || place->address.loaded || length > UINT8_MAX) return;
    what.pieces = {{0, IsValue{place->address}}};
    if (!checker_.hold(what, TypeKind::text).empty()) return;
    const Type address{.size = moment_.arch.word_size, .is_signed = false, .kind = TypeKind::text};
    Located located = locator_.from_pieces(what.pieces, address);
    if (!std::holds_alternative<Unreadable>(located.location)) arg.length = static_cast<std::uint8_t>(length);
    arg.type = address;
    arg.location = std::move(located.location);
  }

  // --- from places to locations ---

  [[nodiscard]] std::pair<Arg, std::vector<Piece>> argument(const Parameter& parameter, std::size_t number) {
    const auto declared_type = type_of(parameter.declared);
    const Type type = types_.type(declared_type);
    Located located = may_be_spilled(stated_[number], declared_type, number)
                          ? arch::nowhere(type, "in a stack slot that may be filled only behind this instruction")
                          : locate(stated_[number], type, number);
    if (may_lack_referred(declared_type, located)) located = arch::nowhere(type, std::string(kLeftOut));
    if (convention_.passes_as_double(type) && arch::is_place(located.location))
      located = arch::nowhere(type, "passed as a double, since the function has no prototype");
    refuse_number(types_, parameter.declared, declared_type, located);
    const auto name = text(attribute(parameter.declared, DW_AT_name));
    Declaration declaration{.name = name.empty() ? fmt::format("arg{}", number) : std::string(name),
                            .type = types_.text(declared_type),
                            .enumerators = types_.enumerators(declared_type)};
    std::vector<Piece> pieces = std::move(located.pieces);
    return {argument_at(std::move(located), std::move(declaration)), std::move(pieces)};
  }

  /// Numbers, texts and lists are shown in the place of references that lead to them, and callers need not have written
  /// them either. (Of other objects the address is shown.)
  [[nodiscard]] bool may_lack_referred(const std::optional<Dwarf_Die>& declared, const Located& located) const {
    auto reference = resolved(declared);
    const int tag = reference ? dwarf_tag(&*reference) : 0;
    if (tag != DW_TAG_reference_type && tag != DW_TAG_rvalue_reference_type) return false;
    if (!moment_.at_entry || moment_.instance.inlined || !moment_.wants_arguments) return false;
    if (!arch::is_place(located.location) || !callers_may_leave_out()) return false;
    const auto referred = type_of(*reference);
    const Type type = types_.type(referred);
    if (type.kind == TypeKind::array || type.size == 0) return false;
    const auto addresses = addresses_in(user_shapes_.of(referred, language_));
    std::uint32_t needed = type.size;
    if (type.kind == TypeKind::structure) {
      if (addresses.empty() || addresses.front().object != 1) return false;  // not such an object itself
      needed = std::min(needed, 2U * moment_.arch.word_size);  // a pointer, and a second one or the length
    }
    const ReadBytes read = CodeReads(moment_).behind(address_from(located), type.size, addresses);
    if (read.size() < needed) return true;
    return std::find(read.begin(), read.begin() + needed, false) != read.begin() + needed;
  }

  [[nodiscard]] static std::vector<LibraryAddress> addresses_in(const arch::UserShape& shape) {
    std::vector<LibraryAddress> addresses;
    for (const arch::Scalar& each : shape.scalars)
      if (each.of_library != 0) addresses.push_back({each.offset, each.of_library});
    return addresses;
  }

  /// The place that has the address in a pointer or a reference.
  [[nodiscard]] AddressAt address_from(const Located& located) const {
    AddressAt address;
    if (const auto* reg = std::get_if<Register>(&located.location)) address.reg = dwarf_number(reg->id);
    const auto* memory = std::get_if<Memory>(&located.location);
    if (memory != nullptr && !memory->is_value && memory->base == moment_.arch.stack_pointer &&
        memory->index == RegisterId::none && memory->displacement >= moment_.arch.entry_frame)
      address.stack = memory->displacement - moment_.arch.entry_frame;
    return address;
  }

  /// Go's callers leave room for what they pass in registers beside what they pass on the stack: of what is told to be
  /// there, the convention says which it is.
  [[nodiscard]] bool may_be_spilled(const StatedPlace& what, const std::optional<Dwarf_Die>& type,
                                    std::size_t number) const {
    if (language_ != Language::go || !moment_.at_entry || moment_.instance.inlined || what.from_list) return false;
    if (arch::go_only_on_stack(moment_.arch, user_shapes_.of(type, language_))) return false;
    const auto bytes = is_on_stack(what);
    const bool is_passed_there = !go_places_.empty() && go_places_[number].where == arch::UserPlace::Where::stack &&
                                 bytes && go_places_[number].stack == moment_.arch.entry_frame + *bytes;
    return !is_passed_there;
  }

  /// Whether it is certain which part of a value each piece is that Go's compiler tells of; they are put there.
  [[nodiscard]] bool place_parts(StatedPlace& what, std::size_t number) const {
    if (language_ != Language::go) return true;
    const auto place = go_places_.empty() ? std::nullopt : std::optional(go_places_[number]);
    return place_parts_of_go(what, shapes_[number], place, moment_, checker_);
  }

  [[nodiscard]] Located locate(StatedPlace what, const Type& type, std::size_t number) {
    const auto bytes_on_stack = convention_.bytes_on_stack(number);
    // Clang and rustc tell where the address of such an object is, as if the object were there.
    if ((shapes_[number].kind == arch::UserShape::Kind::by_reference && (bytes_on_stack || is_on_stack(what))) ||
        may_be_address_of_rust(what, type))
      return arch::nowhere(type, "behind a pointer in memory");
    if (what.pieces.empty() && bytes_on_stack && type.kind == TypeKind::structure)
      return as_read(convention_.on_stack(number, type), in_room(*bytes_on_stack, type));
    if (what.pieces.empty() && bytes_on_stack) return convention_.on_stack(number, type);
    if (what.pieces.empty())
      return arch::nowhere(type,
                           moment_.instance.inlined ? "optimised out in this inlined copy" : "optimised out here");
    if (convention_.is_assigned(number)) return arch::nowhere(type, std::string(kAssigned));
    if (!place_parts(what, number))
      return arch::nowhere(type, "in parts of which debug information does not tell which ones they are");
    const StatedPlace before = what;
    const std::string reason = checker_.hold(what, type.kind);
    if (reason.empty() && !what.from_list && convention_.contradicts(before, number))
      return arch::nowhere(type, "on the stack by a calling convention that debug information does not tell");
    if (reason.empty() && type.kind == TypeKind::structure) {
      if (const auto first = in_callers_room(before))
        return as_read(locator_.from_pieces(what.pieces, type), in_room(*first, type));
      if (is_copy_behind_pointer(before) && callers_may_leave_out())
        return as_read(locator_.from_pieces(what.pieces, type), behind(address_register(before), type, number));
    }
    if (reason.empty() && moment_.instance.inlined && moment_.info.entry_of(moment_.die) == moment_.instance.pc)
      return as_filled(locator_.from_pieces(what.pieces, type), shapes_[number].bit_fields);
    if (reason.empty()) return locator_.from_pieces(what.pieces, type);
    if (moment_.instance.inlined || !moment_.at_entry) return arch::nowhere(type, reason);
    if (!convention_.why_not().empty() && language_ != Language::go)
      if (const auto stored = spilled_.at_entry(before, type.size, type.kind == TypeKind::structure))
        return locator_.from_pieces(*stored, type);
    if (!convention_.why_not().empty() && bytes_on_stack) {
      Located there = convention_.on_stack(number, type);
      return type.kind == TypeKind::structure ? as_read(std::move(there), in_room(*bytes_on_stack, type)) : there;
    }
    if (!convention_.why_not().empty())
      return arch::nowhere(type, fmt::format("{}; {}", reason, convention_.why_not()));
    using Place = arch::UserPlace::Where;
    const arch::UserPlace& place = convention_.place(number);
    Located located = arch::value_at(moment_.arch, place, type);
    if (type.kind == TypeKind::structure && leaves_out_members() && place.where == Place::stack)
      return as_read(std::move(located), in_room(place.stack - moment_.arch.entry_frame, type));
    if (place.where == Place::address_in_register && callers_may_leave_out())
      return as_read(std::move(located), behind(dwarf_number(place.parts.front().reg), type, number));
    return as_told(std::move(located), before.pieces);
  }

  /// Leaves out bytes that debug information gives no place: the function uses none, and callers need not pass them.
  [[nodiscard]] static Located as_told(Located located, const std::vector<WherePiece>& told) {
    ReadBytes has_place;
    for (const WherePiece& piece : told) {
      if (piece.size == 0) return located;
      const bool is_place =
          std::holds_alternative<InRegister>(piece.where) || std::holds_alternative<AtAddress>(piece.where);
      has_place.insert(has_place.end(), std::min<std::uint64_t>(piece.size, located.type.size), is_place);
    }
    has_place.resize(located.type.size, false);
    if (std::ranges::find(has_place, false) == has_place.end()) return located;
    if (located.pieces.empty()) return arch::nowhere(located.type, std::string(kPartlyGone));
    std::vector<Piece> pieces;
    for (const Piece& piece : located.pieces) {
      const auto first = has_place.begin() + std::min(piece.offset, located.type.size);
      add_parts(piece, ReadBytes(first, has_place.end()), true, kPartlyGone, pieces);
    }
    located.pieces = std::move(pieces);
    return located;
  }

  /// Whether callers may leave out members: callers that Clang knows need not pass what a function does not use. A slot
  /// shows that a register's value is used; nothing shows it of values on the stack, nor which members are used.
  [[nodiscard]] bool leaves_out_members() const {
    return is_clang(moment_.die) && is_optimised(moment_.die) && moment_.at_entry && !moment_.instance.inlined;
  }
  [[nodiscard]] std::optional<std::uint64_t> in_callers_room(const StatedPlace& what) const {
    return leaves_out_members() ? is_on_stack(what) : std::nullopt;
  }
  /// Rust's functions are passed the address of objects of more than two words, later ones of what has a number of 16
  /// bytes, unless they are `extern "C"`, which nothing tells (rustc 1.63 and 1.95; tests/locate/chance_rust.py finds
  /// it).
  [[nodiscard]] bool may_be_address_of_rust(const StatedPlace& what, const Type& type) const {
    return is_rust(moment_.die) && moment_.at_entry && !moment_.instance.inlined && type.kind == TypeKind::structure &&
           type.size > moment_.arch.word_size && is_on_stack(what);
  }
  /// As PlaceChecker::callers_bytes().
  [[nodiscard]] std::optional<std::uint64_t> is_on_stack(const StatedPlace& what) const {
    return checker_.callers_bytes(what.pieces, what.from_list ? std::optional(moment_.instance.pc) : std::nullopt);
  }

  /// The bytes of a struct on the stack that callers wrote: all or none of them, where compilers split no structs.
  [[nodiscard]] ReadBytes in_room(std::uint64_t first, const Type& type) const {
    ReadBytes read = CodeReads(moment_).in_callers_room(first, type.size);
    const bool some = std::ranges::find(read, true) != read.end();
    if (some && !moment_.arch.call_traits.splits_structs) read.assign(type.size, true);
    return read;
  }
  [[nodiscard]] ReadBytes behind(std::optional<unsigned> reg, const Type& type, std::size_t number) const {
    const auto addresses = addresses_in(shapes_[number]);
    return CodeReads(moment_).behind({.reg = reg}, type.size, addresses);
  }
  /// The register that the address of an object is in.
  [[nodiscard]] static std::optional<unsigned> address_register(const StatedPlace& what) {
    if (what.pieces.size() != 1) return std::nullopt;
    const auto* address = std::get_if<AtAddress>(&what.pieces.front().where);
    if (address == nullptr || address->address.loaded) return std::nullopt;
    const Sum& sum = address->address.sum;
    return sum.index || sum.displacement != 0 ? std::nullopt : sum.base;
  }
  [[nodiscard]] std::optional<unsigned> dwarf_number(RegisterId reg) const {
    const auto& all = moment_.arch.dwarf_registers;
    const auto found = std::ranges::find(all, reg);
    return found == all.end() ? std::nullopt : std::optional(static_cast<unsigned>(found - all.begin()));
  }

  /// Leaves out bytes that are not in memory yet when an inlined copy begins: compilers move stores behind the
  /// beginning, and lists give the memory from before on. Clang without optimisation stores what is passed to a copy
  /// within it.
  [[nodiscard]] Located as_filled(Located located, bool bit_fields) const {
    const auto filled_behind = [this, bit_fields](const Location& location, std::uint32_t size) {
      const auto* memory = std::get_if<Memory>(&location);
      const bool counts = memory != nullptr && !memory->is_value && memory->origin == Origin::zero;
      const auto base = counts ? dwarf_number(memory->base) : std::nullopt;
      if (!base) return ReadBytes(size, false);
      return CodeReads(moment_).filled_behind({.base = *base,
                                               .displacement = static_cast<std::int64_t>(memory->displacement),
                                               .size = size,
                                               .reads_count = !bit_fields,
                                               .calls = structs_copied_within()});
    };
    const ReadBytes whole = filled_behind(located.location, located.type.size);
    if (std::ranges::find(whole, true) != whole.end()) located.location = Unreadable{.reason = std::string(kNotFilled)};
    std::vector<Piece> pieces;
    for (const Piece& piece : located.pieces)
      add_parts(piece, filled_behind(piece.location, piece.size), false, kNotFilled, pieces);
    located.pieces = std::move(pieces);
    return located;
  }

  /// Clang without optimisation copies objects that are passed to an inlined copy by memcpy() within it, and stores
  /// other arguments behind that.
  [[nodiscard]] std::size_t structs_copied_within() const {
    if (!is_clang(moment_.die) || !is_unoptimised(moment_.inside)) return 0;
    return static_cast<std::size_t>(
        std::ranges::count(shapes_, arch::UserShape::Kind::structure, &arch::UserShape::kind));
  }

  /// Adds a piece; where it is in memory, that of its bytes which are `wanted`, and of the others the reason.
  static void add_parts(const Piece& piece, const ReadBytes& bytes, bool wanted, std::string_view reason,
                        std::vector<Piece>& pieces) {
    const auto is_wanted = [&](std::uint32_t at) { return (at < bytes.size() && bytes[at]) == wanted; };
    for (std::uint32_t at = 0, end = 0; at < piece.size; at = end) {
      while (end < piece.size && is_wanted(end) == is_wanted(at)) ++end;
      Piece part{piece.offset + at, end - at, piece.location, piece.dropped};
      auto* memory = std::get_if<Memory>(&part.location);
      if (memory != nullptr && !memory->is_value)
        memory->displacement += at;
      else
        part.dropped = static_cast<std::uint8_t>(part.dropped + at);
      if (!is_wanted(at)) part.location = Unreadable{.reason = std::string(reason)};
      pieces.push_back(std::move(part));
    }
  }

  /// An object in memory, as far as callers wrote it.
  [[nodiscard]] static Located as_read(Located located, const ReadBytes& read) {
    const Memory* memory = located.pieces.size() == 1 ? std::get_if<Memory>(&located.pieces[0].location) : nullptr;
    if (memory == nullptr || std::ranges::find(read, true) == read.end())
      return arch::nowhere(located.type, std::string(kLeftOut));
    std::vector<Piece> pieces;
    add_parts({0, located.pieces[0].size, *memory}, read, true, kLeftOut, pieces);
    located.pieces = std::move(pieces);
    return located;
  }

  /// Whether an object is passed by the address of a copy. The address is passed in any case. Callers write the bytes
  /// that the function reads, and of the rest what the optimiser left: GCC by ipa-modref and ipa-pure-const, LLVM by
  /// what it knows of the argument (both delete stores that nobody reads; tests/locate/truth_test.py finds this of
  /// GCC).
  [[nodiscard]] bool is_copy_behind_pointer(const StatedPlace& what) const {
    if (!moment_.at_entry || moment_.instance.inlined) return false;
    if (language_ != Language::c && language_ != Language::cpp) return false;
    return std::ranges::any_of(what.pieces, [this](const WherePiece& piece) {
      const auto* address = std::get_if<AtAddress>(&piece.where);
      if (address == nullptr || address->address.sum.anchor != Anchor::none) return false;
      const auto base = address->address.sum.base;
      return address->address.loaded || (base && locator_.id_of(*base) != moment_.arch.stack_pointer);
    });
  }

  /// Whoever calls a function that another file may replace knows nothing of what it uses.
  [[nodiscard]] bool callers_may_leave_out() const {
    if (is_unoptimised(moment_.die)) return false;
    const VirtAddr entry = moment_.info.entry_of(moment_.die).value_or(moment_.instance.pc);
    return !(is_replaceable(moment_.die) && moment_.info.code_names().is_replaceable(entry));
  }

  Moment moment_;
  ReadingEnds ends_{moment_.info.stop, moment_.info.shared_reads};
  PlaceChecker checker_;
  SpilledPlaces spilled_;
  Types types_;
  UserShapes user_shapes_{types_, moment_.info.names, moment_.arch};
  Locator locator_;
  Language language_;
  bool is_noreturn_;
  std::vector<StatedPlace> stated_;
  std::vector<arch::UserShape> shapes_;     ///< by parameter
  std::vector<arch::UserPlace> go_places_;  ///< by parameter, of Go at a function's first instruction
  Convention convention_;
};

/// The signature that `read(signer)` makes of an instance.
template <class Read>
Result<Signature> read_instance(State& state, const FunctionInfo& function, const Instance& instance, Read&& read) {
  DebugState& info = *state.shared;
  const std::scoped_lock lock(info.mutex);
  const auto known = info.dies.find(instance.die);
  if (!known)
    return fail(ErrorKind::invalid_argument, fmt::format("'{}': an instance of another file", function.qualified));
  Dwarf_Die unit;
  Dwarf_Die die = known->die;
  // Assemblers describe a function without its parameters.
  if (dwarf_diecu(&die, &unit, nullptr, nullptr) != nullptr && dwarf_srclang(&unit) == DW_LANG_Mips_Assembler)
    return fail(ErrorKind::not_found, fmt::format("'{}' is written in assembler", function.qualified));
  if (!state.traits.tells_signature(known->die))
    return fail(ErrorKind::not_found,
                fmt::format("debug information tells only the lines of '{}'", function.qualified));
  Signer signer(state, function, instance, known->die, known->function);
  Signature signature = read(signer);
  // An incomplete reading may lack parameters, or have others in their places.
  TRY(info.may_read_on());
  return signature;
}

}  // namespace

Signatures::Signatures(const DebugInfo& info) : state_(std::make_unique<State>(info.state())) {}
Signatures::Signatures(Signatures&&) noexcept = default;
Signatures& Signatures::operator=(Signatures&&) noexcept = default;
Signatures::~Signatures() = default;

Result<Signature> Signatures::of(const FunctionInfo& function, const Instance& instance) const {
  return read_instance(*state_, function, instance, [](Signer& signer) { return signer.run(); });
}

Result<Signature> Signatures::with_variables(const FunctionInfo& function, const Instance& instance,
                                             std::uint32_t line) const {
  return read_instance(*state_, function, instance, [line](Signer& signer) { return signer.variables(line); });
}

}  // namespace usdt::locate
