// SPDX-License-Identifier: BSD-2-Clause
#include "locate/location.hpp"

#include <dwarf.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "locate/entries.hpp"
#include "locate/operation.hpp"

namespace usdt::locate {
namespace {

/// Operations of one expression; real ones have a tenth of it.
constexpr std::size_t kLongestExpression = 256;
constexpr std::size_t kDeepestStack = 32;
constexpr std::uint64_t kLargestScale = 3;  ///< log2
constexpr std::uint64_t kLargestConstant = 16;

/// Why an expression comes to nothing.
struct Refusal {
  std::string reason;
};

std::string operation_name(unsigned atom) {
  switch (atom) {
    case DW_OP_mul:
      return "a product";
    case DW_OP_div:
    case DW_OP_mod:
      return "a quotient";
    case DW_OP_xor:
    case DW_OP_or:
    case DW_OP_and:
    case DW_OP_not:
      return "bits combined";
    case DW_OP_shr:
    case DW_OP_shra:
    case DW_OP_shl:
      return "shifted bits";
    case DW_OP_neg:
    case DW_OP_abs:
    case DW_OP_minus:
      return "a difference";
    case DW_OP_eq:
    case DW_OP_ne:
    case DW_OP_lt:
    case DW_OP_le:
    case DW_OP_gt:
    case DW_OP_ge:
    case DW_OP_bra:
    case DW_OP_skip:
      return "a comparison";
    default:
      return fmt::format("DWARF operation {:#x}", atom);
  }
}

class Machine {
 public:
  explicit Machine(const ExpressionContext& context) : context_(context) {}

  [[nodiscard]] std::vector<WherePiece> run(std::span<const Dwarf_Op> expression) && {
    if (expression.size() > kLongestExpression) return nowhere("computed by an expression too long to be one");
    for (const Dwarf_Op& op : expression) {
      step(op);
      if (refused_) return nowhere(std::move(refused_->reason));
    }
    if (pieces_.empty()) {
      finish_piece(0);
      if (refused_) return nowhere(std::move(refused_->reason));
    } else if (what_ || !stack_.empty()) {
      return nowhere("in pieces that do not add up");
    }
    return std::move(pieces_);
  }

 private:
  static std::vector<WherePiece> nowhere(std::string reason) {
    std::vector<WherePiece> all(1);
    all[0].where = Nowhere{std::move(reason)};
    return all;
  }

  void refuse(std::string reason) {
    if (!refused_) refused_ = Refusal{std::move(reason)};
  }
  void refuse_operation(unsigned atom) { refuse(fmt::format("computed: {}", operation_name(atom))); }

  void push(Value value) {
    if (stack_.size() == kDeepestStack) return refuse("computed by an expression too deep to be one");
    stack_.push_back(std::move(value));
  }
  void push_constant(std::uint64_t number) {
    Value value;
    value.sum.displacement = number;
    push(std::move(value));
  }
  void push_register(std::uint64_t number, std::uint64_t offset) {
    Value value;
    value.sum.base = static_cast<unsigned>(number);
    value.sum.displacement = offset;
    push(std::move(value));
  }
  Value pop() {
    if (stack_.empty()) {
      refuse("computed by an expression that lacks operands");
      return {};
    }
    Value value = std::move(stack_.back());
    stack_.pop_back();
    return value;
  }

  /// A value that arithmetic can go on with.
  [[nodiscard]] static bool is_sum(const Value& value) {
    return !value.loaded && value.width == 0 && value.dropped == 0;
  }

  void step(const Dwarf_Op& op) {
    const Operation what = operation_of(op, context_.arch.word_size);
    switch (what.kind) {
      case Operation::Kind::constant:
        return push_constant(what.number);
      case Operation::Kind::sum:
        return push_register(what.reg, what.number);
      case Operation::Kind::reg:
        return become(InRegister{static_cast<unsigned>(what.reg)});
      case Operation::Kind::load:
        return what_ ? compose(op) : load(what.number);
      case Operation::Kind::other:
        return push_place(op);
    }
  }

  void push_place(const Dwarf_Op& op) {
    switch (op.atom) {
      case DW_OP_addr:
        return push_address(op.number);
      case DW_OP_addrx:
      case DW_OP_GNU_addr_index:
      case DW_OP_constx:
      case DW_OP_GNU_const_index:
        return push_indexed(op);
      case DW_OP_fbreg:
        return push_frame_base(op.number);
      case DW_OP_call_frame_cfa: {
        Value value;
        value.sum.anchor = Anchor::cfa;
        return push(std::move(value));
      }
      case DW_OP_nop:
        return;
      default:
        return op.atom == DW_OP_piece || what_ ? compose(op) : compute(op);
    }
  }

  /// Arithmetic.
  void compute(const Dwarf_Op& op) {
    switch (op.atom) {
      case DW_OP_plus_uconst:
        return add_constant(op.number);
      case DW_OP_plus:
        return add();
      case DW_OP_minus:
        return subtract();
      case DW_OP_shl:
        return shift();
      case DW_OP_shr:
      case DW_OP_shra:
        return drop_bytes(op.atom);
      case DW_OP_mul:
        return multiply();
      case DW_OP_and:
        return mask();
      case DW_OP_dup: {
        const Value top = pop();
        push(top);
        return push(top);
      }
      case DW_OP_drop:
        static_cast<void>(pop());
        return;
      case DW_OP_swap: {
        Value top = pop();
        Value next = pop();
        push(std::move(top));
        return push(std::move(next));
      }
      case DW_OP_convert:
      case DW_OP_GNU_convert:
      case DW_OP_reinterpret:
      case DW_OP_GNU_reinterpret:
        return convert(op);
      case DW_OP_regval_type:
      case DW_OP_GNU_regval_type:
        push_register(op.number, 0);
        return cut_to_type(op);
      default:
        return compose(op);
    }
  }

  /// Evaluates the operations that say where something is, not those that compute it.
  void compose(const Dwarf_Op& op) {
    switch (op.atom) {
      case DW_OP_piece:
        return finish_piece(op.number);
      case DW_OP_stack_value:
        return become(IsValue{pop()});
      case DW_OP_implicit_value:
        return implicit_value(op);
      case DW_OP_entry_value:
      case DW_OP_GNU_entry_value:
        return entry_value(op);
      case DW_OP_implicit_pointer:
      case DW_OP_GNU_implicit_pointer:
        return refuse("optimised out: a pointer to what is no longer in memory");
      case DW_OP_bit_piece:
        return refuse("in pieces of single bits");
      case DW_OP_form_tls_address:
      case DW_OP_GNU_push_tls_address:
        return refuse("in a thread-local variable");
      case DW_OP_GNU_parameter_ref:
        return refuse("optimised out: only the caller's own parameter would tell");
      case DW_OP_GNU_variable_value:
        return refuse("optimised out: told by another variable");
      default:
        return refuse_operation(op.atom);
    }
  }

  void become(Where where) {
    if (what_) return refuse("in a place that contradicts itself");
    what_ = std::move(where);
  }

  void finish_piece(std::uint64_t size) {
    WherePiece piece{.size = size, .where = Nowhere{"optimised out"}};
    if (what_) {
      piece.where = *std::move(what_);
    } else if (!stack_.empty()) {
      piece.where = AtAddress{pop()};
    }
    what_.reset();
    stack_.clear();  // only the top counts
    pieces_.push_back(std::move(piece));
  }

  void push_address(std::uint64_t address) {
    Value value;
    value.sum.file = true;
    value.sum.displacement = address;
    push(std::move(value));
  }

  void push_indexed(const Dwarf_Op& op) {
    Dwarf_Attribute at;
    Dwarf_Addr address = 0;
    if (context_.attribute == nullptr || dwarf_getlocation_attr(context_.attribute, &op, &at) != 0 ||
        dwarf_formaddr(&at, &address) != 0)
      return refuse("at an address that is in no table");
    if (op.atom == DW_OP_constx || op.atom == DW_OP_GNU_const_index) return push_constant(address);
    push_address(address);
  }

  void push_frame_base(std::uint64_t offset) {
    if (!context_.frame_base) return refuse("in a frame without a base");
    auto base = context_.frame_base();
    if (auto* reason = std::get_if<std::string>(&base)) return refuse(std::move(*reason));
    Value value{.sum = std::get<Sum>(base), .loaded = false, .width = 0, .is_signed = false, .bit = false};
    value.sum.displacement += offset;
    push(std::move(value));
  }

  void add_constant(std::uint64_t number) {
    Value value = pop();
    if (!is_sum(value)) return refuse("computed: a sum with what is in memory");
    value.sum.displacement += number;
    push(std::move(value));
  }

  void add() {
    Value right = pop();
    Value left = pop();
    if (!is_sum(left) || !is_sum(right)) return refuse("computed: a sum with what is in memory");
    Sum& one = left.sum;
    const Sum& other = right.sum;
    if ((one.anchor != Anchor::none && other.anchor != Anchor::none) || (one.file && other.file))
      return refuse("computed: a sum of two addresses");
    if (one.anchor == Anchor::none) one.anchor = other.anchor;
    one.file = one.file || other.file;
    one.displacement += other.displacement;
    for (const auto& [reg, scale] : {std::pair(other.base, std::uint8_t{0}), std::pair(other.index, other.shift)})
      if (reg && !add_register(one, *reg, scale)) return refuse("computed: a sum of more than two registers");
    push(std::move(left));
  }

  static bool add_register(Sum& sum, unsigned reg, std::uint8_t scale) {
    if (!sum.base && scale == 0) {
      sum.base = reg;
    } else if (!sum.index) {
      sum.index = reg;
      sum.shift = scale;
    } else {
      return false;
    }
    return true;
  }

  void subtract() {
    const Value right = pop();
    Value left = pop();
    if (!is_sum(left) || !is_sum(right) || !right.sum.is_constant()) return refuse_operation(DW_OP_minus);
    left.sum.displacement -= right.sum.displacement;
    push(std::move(left));
  }

  void scale(Value value, std::uint64_t bits) {
    Sum& sum = value.sum;
    const bool one_register = is_sum(value) && sum.anchor == Anchor::none && !sum.file && !(sum.base && sum.index);
    if (!one_register || bits > 63) return refuse_operation(DW_OP_shl);
    if (sum.base) {
      sum.index = std::exchange(sum.base, std::nullopt);
      sum.shift = 0;
    }
    if (sum.index && sum.shift + bits > kLargestScale) return refuse_operation(DW_OP_shl);
    if (sum.index) sum.shift = static_cast<std::uint8_t>(sum.shift + bits);
    sum.displacement <<= bits;
    push(std::move(value));
  }

  void shift() {
    const Value right = pop();
    Value left = pop();
    if (!is_sum(right) || !right.sum.is_constant()) return refuse_operation(DW_OP_shl);
    scale(std::move(left), right.sum.displacement);
  }

  /// Clang tells by a shift where in a register the members of a struct are.
  void drop_bytes(unsigned atom) {
    const Value right = pop();
    Value left = pop();
    const std::uint64_t bits = right.sum.displacement;
    const std::uint64_t word = 8ULL * context_.arch.word_size;
    if (!is_sum(right) || !right.sum.is_constant() || bits % 8 != 0 || bits >= word || !left.sum.is_register() ||
        left.loaded || left.bit || left.is_signed || left.dropped != 0 ||
        (left.width != 0 && 8ULL * left.width <= bits))
      return refuse_operation(atom);
    if (bits == 0) return push(std::move(left));
    left.dropped = static_cast<std::uint8_t>(bits / 8);
    const std::uint64_t all = left.width == 0 ? context_.arch.word_size : left.width;
    left.is_signed = atom == DW_OP_shra;
    left.width = static_cast<std::uint8_t>(all - left.dropped);
    push(std::move(left));
  }

  void multiply() {
    Value right = pop();
    Value left = pop();
    if (is_sum(left) && left.sum.is_constant()) std::swap(left, right);
    const std::uint64_t factor = right.sum.displacement;
    if (!is_sum(right) || !right.sum.is_constant() || !std::has_single_bit(factor)) return refuse_operation(DW_OP_mul);
    scale(std::move(left), static_cast<std::uint64_t>(std::countr_zero(factor)));
  }

  /// An `and` with ones at the low bytes is a cut.
  void mask() {
    Value right = pop();
    Value left = pop();
    if (is_sum(left) && left.sum.is_constant()) std::swap(left, right);
    if (!is_sum(right) || !right.sum.is_constant()) return refuse_operation(DW_OP_and);
    switch (right.sum.displacement) {
      case 1:
        left.bit = true;
        return push_cut(std::move(left), 1, false);
      case 0xff:
        return push_cut(std::move(left), 1, false);
      case 0xffff:
        return push_cut(std::move(left), 2, false);
      case 0xffffffff:
        return context_.arch.word_size == 4 ? push(std::move(left)) : push_cut(std::move(left), 4, false);
      case UINT64_MAX:
        return push(std::move(left));
      default:
        return refuse_operation(DW_OP_and);
    }
  }

  void push_cut(Value value, std::uint8_t width, bool is_signed) {
    if (value.width == 0 || width <= value.width) {
      value.width = width;
      value.is_signed = is_signed;
    } else if (value.is_signed && !is_signed) {
      return refuse("computed: extended twice");
    }
    push(std::move(value));
  }

  void load(std::uint64_t size) {
    Value value = pop();
    if (value.loaded) return refuse("behind a pointer in memory");
    if (!is_sum(value)) return refuse("behind a pointer that is computed");
    if (!std::has_single_bit(size) || size > context_.arch.word_size) return refuse("of a size that is none");
    value.loaded = true;
    value.width = static_cast<std::uint8_t>(size);
    push(std::move(value));
  }

  /// To the integer type that the operation refers to; none: the machine's word.
  void convert(const Dwarf_Op& op) {
    if (op.number == 0) return;
    cut_to_type(op);
  }

  void cut_to_type(const Dwarf_Op& op) {
    Dwarf_Die type;
    if (context_.attribute == nullptr || dwarf_getlocation_die(context_.attribute, &op, &type) != 0)
      return refuse("computed in a type that is not known");
    const auto size = own_number(type, DW_AT_byte_size).value_or(0);
    const auto encoding = own_number(type, DW_AT_encoding).value_or(0);
    const bool is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
    const bool integer = is_signed || encoding == DW_ATE_unsigned || encoding == DW_ATE_unsigned_char ||
                         encoding == DW_ATE_boolean || encoding == DW_ATE_address || encoding == DW_ATE_UTF;
    if (!integer) return refuse("computed with floating-point numbers");
    constexpr std::uint64_t widest = 8;
    if (size == 0 || size > widest) return refuse("computed in numbers of more than 8 bytes");
    Value value = pop();
    if (size == widest && value.width == 0) return push(std::move(value));
    if (value.width != 0 && size >= value.width && (size == widest || value.is_signed == is_signed))
      return push(std::move(value));
    push_cut(std::move(value), static_cast<std::uint8_t>(size), is_signed);
  }

  void implicit_value(const Dwarf_Op& op) {
    Dwarf_Block block;
    if (context_.attribute == nullptr || dwarf_getlocation_implicit_value(context_.attribute, &op, &block) != 0 ||
        block.length > kLargestConstant)
      return refuse("a constant of more bytes than a value has");
    become(IsBytes{std::vector<std::uint8_t>(block.data, block.data + block.length)});
  }

  /// The content a register had when the function began.
  void entry_value(const Dwarf_Op& op) {
    if (!context_.at_entry)
      return refuse("optimised out: it was in a register when the function began, and is kept nowhere");
    Dwarf_Attribute at;
    Dwarf_Op* inner = nullptr;
    std::size_t count = 0;
    if (context_.attribute == nullptr || dwarf_getlocation_attr(context_.attribute, &op, &at) != 0 ||
        dwarf_getlocation(&at, &inner, &count) != 0 || count != 1)
      return refuse("computed from more than a register's content at the function's beginning");
    const Operation what = operation_of(*inner, context_.arch.word_size);
    if (what.kind == Operation::Kind::reg) return push_register(what.reg, 0);
    refuse("computed from more than a register's content at the function's beginning");
  }

  const ExpressionContext& context_;
  std::vector<Value> stack_;
  std::optional<Where> what_;  ///< of the piece so far, where it is said
  std::vector<WherePiece> pieces_;
  std::optional<Refusal> refused_;
};

}  // namespace

std::vector<WherePiece> evaluate(std::span<const Dwarf_Op> expression, const ExpressionContext& context) {
  return Machine(context).run(expression);
}

}  // namespace usdt::locate
