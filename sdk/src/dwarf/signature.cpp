// SPDX-License-Identifier: BSD-2-Clause
// Parameters and results: where they are at one instruction.
//
// Programs run before the first instruction of a function, where what DWARF says of a variable "in this function" is
// not true yet: the stack slot that GCC and Clang give each parameter at -O0, or one whose address is taken, is filled
// by the prologue. What is true there is a location list's entry for that address, what was on the stack before the
// call, and the calling convention.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>

#include "dwarf/compiler.hpp"
#include "dwarf/die.hpp"
#include "dwarf/frame.hpp"
#include "dwarf/impl.hpp"
#include "dwarf/locator.hpp"
#include "dwarf/types.hpp"

namespace usdt::dwarf {
namespace {

/// Parameters of one function that are listed; a spec has 255 (USDT_MAX_ARGS).
constexpr std::size_t most_parameters = 255;
/// Entries of a location list that are looked at.
constexpr unsigned most_entries = 65536;
/// DIEs among which a function's parameters are looked for.
constexpr std::uint64_t most_children = 1U << 20;

/// Why a value is not taken for the one that was passed.
constexpr std::string_view assigned = "told by a value that may have been assigned to it at this very instruction";

/// A parameter as declared, and its DIE in the instance, which may lack one.
struct Parameter {
  Dwarf_Die declared;
  std::optional<Dwarf_Die> here;
};

/// Variables of `scope` and of the blocks in it that have `pc`, declared before `line`; the innermost of a name stays.
void collect_locals(Dwarf_Die scope, VirtAddr pc, std::uint32_t line, std::vector<Parameter>& found,
                    unsigned depth = 0) {
  std::uint64_t steps = most_children;
  for_each_child(scope, steps, [&](Dwarf_Die child) {
    if (dwarf_tag(&child) == DW_TAG_lexical_block && depth < deepest_tree && has_pc(child, pc))
      collect_locals(child, pc, line, found, depth + 1);
    return true;
  });
  for_each_child(scope, steps, [&](Dwarf_Die child) {
    const int tag = dwarf_tag(&child);
    const auto name = tag == DW_TAG_variable ? text(attribute(child, DW_AT_name)) : std::string_view();
    const bool is_there = !flag(attribute(child, DW_AT_artificial)) && !flag(own_attribute(child, DW_AT_declaration));
    if (name.empty() || !is_there || declared_at(child).line >= line) return true;
    const auto known = std::ranges::find_if(
        found, [name](const Parameter& each) { return text(attribute(each.declared, DW_AT_name)) == name; });
    if (known == found.end()) found.push_back({child, child});
    return found.size() < most_parameters;
  });
}

bool is_pack(int tag) { return tag == DW_TAG_GNU_formal_parameter_pack; }

void collect_parameters(Dwarf_Die function, std::vector<Dwarf_Die>& found, bool& varargs, unsigned depth = 0) {
  std::uint64_t steps = most_children;
  for_each_child(function, steps, [&](Dwarf_Die child) {
    const int tag = dwarf_tag(&child);
    if (tag == DW_TAG_formal_parameter) found.push_back(child);
    if (tag == DW_TAG_unspecified_parameters) varargs = true;
    if (is_pack(tag) && depth == 0) collect_parameters(child, found, varargs, depth + 1);
    return found.size() < most_parameters;
  });
}

/// An instance lists what its declaration does, but for parameters of which nothing is left.
std::vector<Parameter> parameters_of(Dwarf_Die instance, bool& varargs) {
  std::vector<Dwarf_Die> here;
  collect_parameters(instance, here, varargs);
  std::vector<Parameter> all;
  const auto origin = reference(own_attribute(instance, DW_AT_abstract_origin));
  if (!origin) {
    for (const Dwarf_Die& each : here) all.push_back({each, each});
    return all;
  }
  std::vector<Dwarf_Die> declared;
  collect_parameters(*origin, declared, varargs);
  for (const Dwarf_Die& each : declared) {
    const auto copy = std::ranges::find_if(here, [&each](const Dwarf_Die& one) {
      const auto of = reference(own_attribute(one, DW_AT_abstract_origin));
      return of && of->addr == each.addr;
    });
    all.push_back({each, copy == here.end() ? std::nullopt : std::optional(*copy)});
  }
  if (declared.empty())
    for (const Dwarf_Die& each : here) all.push_back({each, each});
  return all;
}

/// What debug information says of one parameter.
struct Told {
  std::vector<WherePiece> pieces;  ///< empty: nothing
  bool from_list = false;          ///< of this very address, not of the whole function
};

/// What is asked of one instance.
class Signer {
 public:
  Signer(const DebugInfo::Impl& impl, const FunctionInfo& function, const Instance& instance, Dwarf_Die die,
         Dwarf_Die inside)
      : impl_(impl),
        arch_(impl.arch),
        types_(impl.names, impl.arch),
        locator_(impl.arch),
        function_(function),
        instance_(instance),
        die_(die),
        inside_(inside),
        language_(language_of(die)),
        at_entry_(entry_of(inside) == instance.pc) {}

  [[nodiscard]] Signature run() {
    Signature signature;
    std::vector<Parameter> parameters = parameters_of(die_, signature.varargs);
    std::vector<Parameter> results;
    if (language_ == Language::go) {
      const auto is_result = [](const Parameter& each) { return is_go_result(each.declared); };
      for (const GoResult& each : go_results(declaration(), types_)) {
        const auto same = [&each](const Parameter& one) { return one.declared.addr == each.die.addr; };
        std::ranges::copy_if(parameters, std::back_inserter(results), same);
      }
      std::erase_if(parameters, is_result);
    }
    read(parameters, signature);
    if (instance_.inlined || function_.noreturn) return signature;
    language_ == Language::go ? add_go_results(results, signature) : add_result(signature);
    return signature;
  }

  /// Local variables hide parameters of their names.
  [[nodiscard]] Signature variables(std::uint32_t line) {
    Signature signature;
    std::vector<Parameter> locals;
    if (!at_entry_) collect_locals(die_, instance_.pc, line, locals);
    std::vector<Parameter> all = parameters_of(die_, signature.varargs);
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
    for (const Parameter& each : parameters) told_.push_back(told(each));
    if (!instance_.inlined) decide_convention(parameters);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      auto [arg, pieces] = argument(parameters[i], i);
      signature.args.push_back(std::move(arg));
      signature.pieces.push_back(std::move(pieces));
      signature.types.push_back(impl_.type_id(type_of(parameters[i].declared)));
    }
  }

  // --- what debug information says ---

  [[nodiscard]] Told told(const Parameter& parameter) {
    if (!parameter.here) return {};
    if (const auto constant = attribute(*parameter.here, DW_AT_const_value)) {
      const bool certain = (!at_entry_ && !instance_.inlined) || tells_each_value(die_);
      return {{certain ? constant_piece(*constant) : WherePiece{0, Nowhere{std::string(assigned)}}}, true};
    }
    auto at = own_expression(*parameter.here, DW_AT_location);
    if (!at) return {};
    const bool single = dwarf_whatform(&*at) == DW_FORM_exprloc || dwarf_whatform(&*at) == DW_FORM_block1 ||
                        dwarf_whatform(&*at) == DW_FORM_block2 || dwarf_whatform(&*at) == DW_FORM_block4 ||
                        dwarf_whatform(&*at) == DW_FORM_block;
    Dwarf_Op* expression = nullptr;
    std::size_t count = 0;
    if (!find_expression(*at, single, expression, count)) return {};
    const ExpressionContext context{
        .arch = arch_, .attribute = &*at, .at_entry = at_entry_, .frame_base = [this] { return frame_base(); }};
    Told found{evaluate({expression, count}, context), !single};
    if (!single && may_be_assigned(*at, {expression, count})) found.pieces = {{0, Nowhere{std::string(assigned)}}};
    return found;
  }

  /// Without an instruction between them, a parameter and what is assigned to it at once are at one address of a list.
  /// Where GCC writes views, an empty entry says so; at a function's first instruction it is what was passed. Others
  /// write the last value alone, and nothing tells that it is another one if it is a constant: what was passed is not
  /// in a register or in memory then.
  [[nodiscard]] bool may_be_assigned(Dwarf_Attribute at, std::span<Dwarf_Op> expression) const {
    if (!at_entry_ && !instance_.inlined) return false;
    if (tells_each_value(die_)) return instance_.inlined && has_other_value(at, expression);
    return std::ranges::all_of(expression, [](const Dwarf_Op& op) {
      const bool number = op.atom >= DW_OP_const1u && op.atom <= DW_OP_consts;
      return number || (op.atom >= DW_OP_lit0 && op.atom <= DW_OP_lit31) || op.atom == DW_OP_stack_value ||
             op.atom == DW_OP_implicit_value || op.atom == DW_OP_piece;
    });
  }

  /// Whether an empty entry of the list has something else for the instance's address.
  [[nodiscard]] bool has_other_value(Dwarf_Attribute at, std::span<Dwarf_Op> expression) const {
    const auto same = [](const Dwarf_Op& a, const Dwarf_Op& b) {
      return a.atom == b.atom && a.number == b.number && a.number2 == b.number2;
    };
    Dwarf_Addr base = 0;
    Dwarf_Addr begin = 0;
    Dwarf_Addr end = 0;
    Dwarf_Op* each = nullptr;
    std::size_t length = 0;
    std::ptrdiff_t offset = 0;
    for (unsigned i = 0; i < most_entries; ++i) {
      offset = dwarf_getlocations(&at, offset, &base, &begin, &end, &each, &length);
      if (offset <= 0) return false;
      if (begin == end && begin == instance_.pc.value && !std::ranges::equal(std::span(each, length), expression, same))
        return true;
    }
    return true;
  }

  [[nodiscard]] static WherePiece constant_piece(Dwarf_Attribute at) {
    Dwarf_Block block;
    if (dwarf_formblock(&at, &block) == 0)
      return {0, IsBytes{std::vector<std::uint8_t>(block.data, block.data + std::min<std::size_t>(block.length, 16))}};
    const auto bits = constant(at);
    if (!bits) return {0, Nowhere{"a constant of a form that is not known"}};
    Value value;
    value.sum.displacement = *bits;
    return {0, IsValue{value}};
  }

  /// The one for this very address. Where a list has several entries that begin here, without an instruction between
  /// them (location views, which make all but the last one empty), the first is what the value is on arrival at a
  /// function. Inlined copies have no such moment: what is before them may have its instructions in the midst of them.
  [[nodiscard]] bool find_expression(Dwarf_Attribute& at, bool single, Dwarf_Op*& expression,
                                     std::size_t& count) const {
    if (single) return dwarf_getlocation(&at, &expression, &count) == 0;
    Dwarf_Addr base = 0;
    Dwarf_Addr begin = 0;
    Dwarf_Addr end = 0;
    Dwarf_Op* each = nullptr;
    std::size_t length = 0;
    bool found = false;
    std::ptrdiff_t offset = 0;
    const std::uint64_t pc = instance_.pc.value;
    for (unsigned i = 0; i < most_entries && !found; ++i) {
      offset = dwarf_getlocations(&at, offset, &base, &begin, &end, &each, &length);
      if (offset <= 0) break;
      found = (begin <= pc && pc < end) || (begin == pc && !instance_.inlined && at_entry_);
    }
    expression = each;
    count = length;
    return found;
  }

  [[nodiscard]] std::variant<Sum, std::string> frame_base() {
    auto at = own_expression(inside_, DW_AT_frame_base);
    Dwarf_Op* expression = nullptr;
    std::size_t count = 0;
    if (!at || dwarf_getlocation_addr(&*at, instance_.pc.value, &expression, &count, 1) != 1)
      return "in a frame whose base is not told";
    const auto pieces =
        evaluate({expression, count}, {.arch = arch_, .attribute = &*at, .at_entry = at_entry_, .frame_base = {}});
    const Where& where = pieces.front().where;
    Sum sum;
    if (const auto* reg = std::get_if<InRegister>(&where)) {
      sum.anchor = Anchor::frame;
      sum.base = reg->number;
      return sum;
    }
    const auto* value = std::get_if<IsValue>(&where);
    const auto* address = std::get_if<AtAddress>(&where);
    if (value == nullptr && address == nullptr) return "in a frame whose base is not told";
    const Value& base = value != nullptr ? value->value : address->address;
    if (base.loaded || base.width != 0) return "in a frame whose base is in memory";
    return base.sum;
  }

  // --- whether it holds here ---

  /// Turns what counts from the frame into what counts from registers as they are at the instance; false with a reason
  /// where the frame is not there yet, or its rule is not known.
  [[nodiscard]] bool settle(Sum& sum, std::string& reason) {
    if (sum.anchor == Anchor::frame) to_cfa(sum);
    if (at_entry_ && sum.anchor == Anchor::none && sum.base && locator_.id_of(*sum.base) == arch_.stack_pointer &&
        !sum.index) {
      sum.anchor = Anchor::cfa;
      sum.base.reset();
      sum.displacement -= arch_.entry_frame;
    }
    if (sum.anchor == Anchor::none) return true;
    if (sum.anchor == Anchor::frame) {
      reason = "in a stack slot of a frame that is not there yet";
      return false;
    }
    sum.anchor = Anchor::none;
    if (at_entry_) {
      if (static_cast<std::int64_t>(sum.displacement) < 0) {
        reason = "in a stack slot that is filled only behind this instruction";
        return false;
      }
      return add_base(sum, stack_pointer_number(), arch_.entry_frame, reason);
    }
    const auto cfa = impl_.frames().cfa_at(instance_.pc);
    if (!cfa) {
      reason = "in a stack slot, whose frame no call frame information describes";
      return false;
    }
    return add_base(sum, *cfa->base, cfa->displacement, reason);
  }

  static bool add_base(Sum& sum, unsigned reg, std::uint64_t displacement, std::string& reason) {
    sum.displacement += displacement;
    if (!sum.base) {
      sum.base = reg;
    } else if (!sum.index) {
      sum.index = reg;
      sum.shift = 0;
    } else {
      reason = "computed: a sum of more than two registers";
      return false;
    }
    return true;
  }

  /// The distance of a frame pointer from the call frame address is the same in the whole body of the function. That of
  /// a stack pointer (Clang without frame pointers) is not: arguments are pushed and popped.
  void to_cfa(Sum& sum) {
    Dwarf_Addr low = 0;
    Dwarf_Addr high = 0;
    auto function = inside_;
    if (sum.base && !sum.index && locator_.id_of(*sum.base) == arch_.stack_pointer && !at_entry_ &&
        is_unoptimised(inside_))
      return stack_frame_to_cfa(sum);
    if (!sum.base || sum.index || locator_.id_of(*sum.base) == arch_.stack_pointer ||
        dwarf_lowpc(&function, &low) != 0 || dwarf_highpc(&function, &high) != 0)
      return;
    const auto distance = impl_.frames().settled_distance(*sum.base, VirtAddr(low), VirtAddr(high));
    if (!distance) return;
    sum.anchor = Anchor::cfa;
    sum.base.reset();
    sum.displacement -= *distance;
  }

  /// Without optimisation the prologue is one piece and ends where the line table says.
  void stack_frame_to_cfa(Sum& sum) {
    const auto body = function_lines(inside_).prologue_end;
    const auto cfa = body ? impl_.frames().cfa_at(*body) : std::nullopt;
    if (!cfa || cfa->base != sum.base) return;
    sum.anchor = Anchor::cfa;
    sum.base.reset();
    sum.displacement -= cfa->displacement;
  }

  /// At a function's first instruction a place said of the whole function is believed if it is one that callers fill.
  [[nodiscard]] bool may_hold_argument(unsigned reg) const {
    const RegisterId id = locator_.id_of(reg);
    const auto& user = arch_.user_calls;
    const auto& kernel = arch_.kernel_calls.arguments;  // i386: those of regparm and fastcall
    return std::ranges::find(user.arguments, id) != user.arguments.end() ||
           std::ranges::find(user.vectors, id) != user.vectors.end() ||
           (arch_.machine == Machine::i386 && std::ranges::find(kernel, id) != kernel.end());
  }

  [[nodiscard]] bool registers_hold(const Sum& sum, bool from_list) const {
    if (!at_entry_ || instance_.inlined || from_list) return true;
    const auto holds = [this](std::optional<unsigned> reg) {
      return !reg || locator_.id_of(*reg) == arch_.stack_pointer || may_hold_argument(*reg);
    };
    return holds(sum.base) && holds(sum.index);
  }

  /// Whether a variable of an inlined copy is in its slot when the copy begins. Of one that lives there for the whole
  /// copy that is so without optimisation, where slots are filled with the call's arguments; but Clang copies structs
  /// within the copy. GCC's lists say it from the place on where its variable tracking saw the slot filled, behind
  /// which its scheduler has moved that instruction (12.2, -O2: tests/dwarf/truth_test.py finds it, and that GDB shows
  /// what was there before).
  [[nodiscard]] bool slot_is_filled(const Told& what, bool is_structure) const {
    if (!instance_.inlined) return at_entry_ || what.from_list || is_behind_prologue();
    if (what.from_list) return is_clang(die_);
    return is_unoptimised(inside_) && !(is_structure && is_clang(die_));
  }

  /// Where debuggers stop in an unoptimised function, its parameters are in their slots.
  [[nodiscard]] bool is_behind_prologue() const {
    const auto body = function_lines(inside_).body();
    return is_unoptimised(inside_) && body && *body <= instance_.pc;
  }

  /// Makes each piece hold here; the reason why one does not.
  [[nodiscard]] std::string hold(Told& what, bool is_structure) {
    std::string reason;
    for (WherePiece& piece : what.pieces) {
      if (auto* reg = std::get_if<InRegister>(&piece.where)) {
        if (at_entry_ && !instance_.inlined && !what.from_list && !may_hold_argument(reg->number))
          return "in a register that is set only behind this instruction";
        continue;
      }
      Value* value = nullptr;
      bool memory = false;
      if (auto* address = std::get_if<AtAddress>(&piece.where)) {
        value = &address->address;
        memory = true;
      } else if (auto* computed = std::get_if<IsValue>(&piece.where)) {
        value = &computed->value;
        memory = value->loaded;
      }
      if (value == nullptr) continue;
      if (memory && value->sum.anchor != Anchor::none && !slot_is_filled(what, is_structure))
        return "in a stack slot that may be filled only behind this instruction";
      // The address of a slot is known before it is filled; what is in it is not.
      if (!memory && value->sum.anchor != Anchor::none && at_entry_)
        return "computed from a frame that is not there yet";
      if (!settle(value->sum, reason)) return reason;
      if (!registers_hold(value->sum, what.from_list))
        return "in memory whose address is set only behind this instruction";
    }
    return {};
  }

  // --- the calling convention ---

  void decide_convention(const std::vector<Parameter>& parameters) {
    no_convention_ = why_no_convention(parameters);
    if (no_convention_.empty()) {
      arch::UserPlaces places(arch_, types_.shape(type_of(die_), language_), convention_);
      for (const Parameter& each : parameters)
        places_.push_back(places.next(types_.shape(type_of(each.declared), language_)));
      if (arch_.machine == Machine::i386) no_convention_ = why_not_i386(parameters);
    }
    result_known_ = no_convention_.empty() || only_arguments_differ_;
  }

  [[nodiscard]] std::string why_no_convention(const std::vector<Parameter>& parameters) {
    if (language_ == Language::go) return "debug information of Go does not tell all parameters, nor so where they are";
    if (language_ == Language::other) return "its language has a calling convention of its own";
    const auto told_convention = number(attribute(die_, DW_AT_calling_convention));
    if (told_convention && !take_convention(*told_convention)) return "it has a calling convention of its own";
    const VirtAddr entry = entry_of(die_).value_or(instance_.pc);
    const CodeName name = impl_.code_names().at(entry);
    only_arguments_differ_ = name == CodeName::other_args;
    if (name == CodeName::other_args || name == CodeName::other_result)
      return "this copy of the function has other parameters";
    if (name == CodeName::unknown) return "no symbol tells whether this copy of the function has its parameters";
    const bool complete = std::ranges::none_of(told_, [](const Told& each) { return each.pieces.empty(); });
    const bool external = function_.external && impl_.code_names().is_external(entry);
    if (!external && is_clang(die_) && (is_optimised(die_) || !complete))
      return "its compiler may have changed how it is called";
    if (!external && !complete) return "its compiler may have changed how it is called";
    if (language_ == Language::c && !flag(attribute(die_, DW_AT_prototyped)) && has_floats(parameters))
      return "it has no prototype, by which callers would pass floats";
    return {};
  }

  /// Clang's names for what attributes say; GCC does not say it.
  bool take_convention(std::uint64_t convention) {
    constexpr std::uint64_t stdcall = 0xb1;   // DW_CC_BORLAND_stdcall
    constexpr std::uint64_t fastcall = 0xb3;  // DW_CC_BORLAND_msfastcall
    constexpr std::uint64_t thiscall = 0xb5;  // DW_CC_BORLAND_thiscall
    if (convention == DW_CC_normal) return true;
    if (arch_.machine != Machine::i386) return false;
    if (convention == fastcall) convention_ = arch::UserConvention::fastcall;
    if (convention == thiscall) convention_ = arch::UserConvention::thiscall;
    return convention == stdcall || convention_ != arch::UserConvention::standard;
  }

  /// Attributes like regparm leave no trace in debug information but where variables live that are not in registers:
  /// a word that came on the stack stays where it is, one that came in a register has a slot of its own. Structs and
  /// other numbers may be copied either way, and tell nothing.
  [[nodiscard]] std::string why_not_i386(const std::vector<Parameter>& parameters) {
    if (convention_ != arch::UserConvention::standard) return {};
    bool confirmed = false;
    bool copied = false;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (told_[i].from_list || told_[i].pieces.size() != 1) continue;
      const auto* address = std::get_if<AtAddress>(&told_[i].pieces.front().where);
      if (address == nullptr || address->address.loaded || address->address.sum.anchor == Anchor::none) continue;
      if (is_on_stack_at(address->address.sum, places_[i])) {
        confirmed = true;
        continue;
      }
      const Type type = types_.type(type_of(parameters[i].declared));
      if (type.size == 4 && type.kind != TypeKind::structure)
        return "it has a calling convention that debug information does not tell";
      copied = true;
    }
    return copied && !confirmed ? "debug information does not tell whether its arguments are on the stack" : "";
  }

  [[nodiscard]] bool is_on_stack_at(Sum sum, const arch::UserPlace& place) {
    if (place.where != arch::UserPlace::Where::stack) return false;
    const std::uint64_t expected = place.stack - arch_.entry_frame;
    if (sum.anchor == Anchor::frame) to_cfa(sum);
    if (sum.anchor == Anchor::cfa) return !sum.base && !sum.index && sum.displacement == expected;
    // Counted from the stack pointer as it is behind the prologue. Where the line table's end of the prologue is too
    // late, the frame seems larger than it is, and nothing is confirmed that is not so.
    const auto body = function_lines(inside_).prologue_end;
    const auto cfa = body ? impl_.frames().cfa_at(*body) : std::nullopt;
    return cfa && sum.base && !sum.index && cfa->base == sum.base && sum.displacement - cfa->displacement == expected;
  }

  [[nodiscard]] bool has_floats(const std::vector<Parameter>& parameters) const {
    return std::ranges::any_of(
        parameters, [this](const Parameter& each) { return types_.type(type_of(each.declared)).is_float(); });
  }

  // --- from places to locations ---

  [[nodiscard]] std::pair<Arg, std::vector<Piece>> argument(const Parameter& parameter, std::size_t number) {
    const auto declared_type = type_of(parameter.declared);
    const Type type = types_.type(declared_type);
    Located located = may_be_spilled(told_[number], declared_type)
                          ? arch::nowhere(type, "in a stack slot that may be filled only behind this instruction")
                          : locate(told_[number], type, number);
    const auto name = text(attribute(parameter.declared, DW_AT_name));
    Declaration declaration{.name = name.empty() ? fmt::format("arg{}", number) : std::string(name),
                            .type = types_.text(declared_type),
                            .enumerators = types_.enumerators(declared_type)};
    std::vector<Piece> pieces = std::move(located.pieces);
    return {make(std::move(located), std::move(declaration)), std::move(pieces)};
  }

  /// Go's callers leave room for what they pass in registers beside what they pass on the stack.
  [[nodiscard]] bool may_be_spilled(const Told& what, const std::optional<Dwarf_Die>& type) const {
    return language_ == Language::go && at_entry_ && !instance_.inlined && !what.from_list &&
           !arch::go_only_on_stack(arch_, types_.shape(type, language_));
  }

  [[nodiscard]] static Arg make(Located&& located, Declaration&& declaration) {
    return {.type = located.type,
            .location = std::move(located.location),
            .source = {},
            .declaration = std::make_shared<const Declaration>(std::move(declaration))};
  }

  [[nodiscard]] Located locate(Told what, const Type& type, std::size_t number) {
    if (what.pieces.empty())
      return arch::nowhere(type, instance_.inlined ? "optimised out in this inlined copy" : "optimised out here");
    const Told before = what;
    const std::string reason = hold(what, type.kind == TypeKind::structure);
    const bool contradicts = reason.empty() && at_entry_ && !what.from_list && contradicts_convention(before, number);
    if (contradicts)
      return arch::nowhere(type, "on the stack by a calling convention that debug information does not tell");
    if (reason.empty()) return locator_.from_pieces(what.pieces, type);
    if (instance_.inlined || !at_entry_) return arch::nowhere(type, reason);
    if (!no_convention_.empty()) return arch::nowhere(type, fmt::format("{}; {}", reason, no_convention_));
    // What a function does not use Clang need not be passed by callers it knows; that it uses a register's value is
    // shown
    // by its having a slot, of what is on the stack anyway nothing is.
    const bool unused = is_clang(die_) && is_optimised(die_) && type.kind == TypeKind::structure &&
                        places_[number].where == arch::UserPlace::Where::stack;
    if (unused) return arch::nowhere(type, "left out by some callers if this function does not use it");
    return arch::value_at(arch_, places_[number], type);
  }

  /// Said to be where only callers write, while the convention has it in a register: the room that Microsoft's
  /// convention leaves for arguments above the return address.
  [[nodiscard]] bool contradicts_convention(const Told& what, std::size_t number) {
    if (instance_.inlined || !no_convention_.empty() || arch_.machine == Machine::i386) return false;
    if (what.pieces.size() != 1 || !std::holds_alternative<AtAddress>(what.pieces.front().where)) return false;
    const Sum& sum = std::get<AtAddress>(what.pieces.front().where).address.sum;
    return sum.anchor != Anchor::none && places_[number].where == arch::UserPlace::Where::registers;
  }

  [[nodiscard]] unsigned stack_pointer_number() const {
    const auto& all = arch_.dwarf_registers;
    return static_cast<unsigned>(std::ranges::find(all, arch_.stack_pointer) - all.begin());
  }

  void add_result(Signature& signature) {
    const auto declared_type = type_of(die_);
    const auto shape = types_.shape(declared_type, language_);
    if (shape.kind == arch::UserShape::Kind::nothing) return;
    const Type type = types_.type(declared_type);
    Located located = result_known_ ? arch::value_at(arch_, arch::user_result(arch_, shape), type)
                                    : arch::nowhere(type, fmt::format("not known where: {}", no_convention_));
    signature.result_pieces = std::move(located.pieces);
    signature.result =
        make(std::move(located),
             {.name = {}, .type = types_.text(declared_type), .enumerators = types_.enumerators(declared_type)});
    signature.result->result = true;
    signature.result_type = impl_.type_id(declared_type);
  }

  /// What has the parameters' names and types.
  [[nodiscard]] Dwarf_Die declaration() const {
    const auto origin = reference(own_attribute(die_, DW_AT_abstract_origin));
    return origin ? *origin : die_;
  }

  /// One is the value itself, several are a struct with them as members.
  void add_go_results(const std::vector<Parameter>& results, Signature& signature) {
    if (results.empty()) return;
    std::vector<arch::UserShape> shapes;
    for (const Parameter& each : results) shapes.push_back(types_.shape(type_of(each.declared), language_));
    const std::vector<arch::UserPlace> places = arch::go_results(arch_, shapes);
    const auto declared_type = type_of(results.front().declared);
    Located whole = go_result(results.front(), places.front());
    std::string text = types_.text(declared_type);
    signature.result_type = impl_.type_id(declared_type);
    if (results.size() > 1) {
      const std::vector<GoResult> members = go_results(declaration(), types_);
      if (members.size() != results.size()) return;
      whole = arch::nowhere({.size = 0, .kind = TypeKind::structure}, fmt::format("{} results", results.size()));
      for (std::size_t i = 0; i < results.size(); ++i) add_member(go_result(results[i], places[i]), members[i], whole);
      text = go_results_text(members, types_);
      signature.result_type = impl_.type_id(declaration());
    }
    const auto names = results.size() == 1 ? types_.enumerators(declared_type) : std::vector<Enumerator>();
    signature.result_pieces = std::move(whole.pieces);
    signature.result = make(std::move(whole), {.name = {}, .type = std::move(text), .enumerators = names});
    signature.result->result = true;
  }

  [[nodiscard]] Located go_result(const Parameter& result, const arch::UserPlace& place) {
    const Type type = types_.type(type_of(result.declared));
    if (place.where != arch::UserPlace::Where::stack) return arch::value_at(arch_, place, type);
    Told what = told(result);
    if (what.pieces.empty() || what.from_list || !hold(what, type.kind == TypeKind::structure).empty())
      return arch::nowhere(type, "on the stack, and not told where");
    return locator_.from_pieces(what.pieces, type);
  }

  static void add_member(Located&& member, const GoResult& result, Located& whole) {
    const auto offset = static_cast<std::uint32_t>(result.offset);
    whole.type.size = offset + member.type.size;
    if (member.type.size == 0) return;
    if (member.pieces.empty()) whole.pieces.push_back({offset, member.type.size, std::move(member.location)});
    for (Piece& piece : member.pieces) {
      piece.offset += offset;
      whole.pieces.push_back(std::move(piece));
    }
  }

  const DebugInfo::Impl& impl_;
  const arch::Arch& arch_;
  Types types_;
  Locator locator_;
  const FunctionInfo& function_;
  const Instance& instance_;
  Dwarf_Die die_;
  Dwarf_Die inside_;  ///< the function whose frame it has
  Language language_;
  bool at_entry_;
  std::vector<Told> told_;
  arch::UserConvention convention_ = arch::UserConvention::standard;
  std::string no_convention_ = "it is inlined";
  bool only_arguments_differ_ = false;
  bool result_known_ = false;
  std::vector<arch::UserPlace> places_;
};

}  // namespace

namespace {

/// What `read(signer)` has of an instance; the lock is held.
template <class Read>
Result<Signature> read_instance(const DebugInfo::Impl& impl, const FunctionInfo& function, const Instance& instance,
                                Read&& read) {
  const auto known = impl.known(instance.die);
  if (!known)
    return fail(ErrorKind::invalid_argument, fmt::format("'{}': an instance of another file", function.qualified));
  Dwarf_Die unit;
  Dwarf_Die die = known->die;
  // Assemblers describe a function without its parameters.
  if (dwarf_diecu(&die, &unit, nullptr, nullptr) != nullptr && dwarf_srclang(&unit) == DW_LANG_Mips_Assembler)
    return fail(ErrorKind::not_found, fmt::format("'{}' is written in assembler", function.qualified));
  Signer signer(impl, function, instance, known->die, known->function);
  return read(signer);
}

}  // namespace

Result<Signature> DebugInfo::signature(const FunctionInfo& function, const Instance& instance) const {
  const std::scoped_lock lock(impl_->mutex);
  return read_instance(*impl_, function, instance, [](Signer& signer) { return signer.run(); });
}

Result<Signature> DebugInfo::variables(const FunctionInfo& function, const Instance& instance,
                                       std::uint32_t line) const {
  const std::scoped_lock lock(impl_->mutex);
  return read_instance(*impl_, function, instance, [line](Signer& signer) { return signer.variables(line); });
}

}  // namespace usdt::dwarf
