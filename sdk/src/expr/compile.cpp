// SPDX-License-Identifier: BSD-2-Clause
#include "expr/compile.hpp"

#include <fmt/format.h>

#include "expr/attributes.hpp"
#include "expr/row_compiler.hpp"

namespace usdt::expr {
namespace {

/// The distance of a jump has 16 bits.
constexpr std::size_t kMostInstructions = 16384;

/// Makes a whole answer of what its layers make of nodes. Each layer uses those below it: RowCompiler, ValueCompiler,
/// TextComparer, TextReader, HitReader, Arithmetic, Assembler.
class Compiler : private RowCompiler {
 public:
  Compiler(const TypedExpression& expression, const Surroundings& surroundings)
      : RowCompiler(expression, surroundings) {}

  Result<Code> run() {
    const Label yes = label();
    const Label no = label();
    const Label end = label();
    const Node& root = expression().root();
    if (root.op == Op::row) {
      const Label counts = label();
      branch(root.of[0].of[0], counts, no);
      place(counts);
      row(root);
      jump(yes);
    } else {
      branch(root, yes, no);
    }
    place(no);
    set(0, USDT_NO);
    jump(end);
    place(yes);
    set(0, USDT_YES);
    jump(end);
    place(undecided());
    set(0, USDT_UNDECIDED);
    place(end);
    if (scratch_.exceeded())
      return fail(ErrorKind::limit, "an expression that is nested too deep for programs in the kernel");
    if (size() > kMostInstructions)
      return fail(ErrorKind::limit,
                  fmt::format("an expression of {} instructions: at most {} fit", size(), kMostInstructions));
    return Code{finished(), table()};
  }
};

}  // namespace

Result<Code> compile(const TypedExpression& expression, const Surroundings& surroundings) {
  if (asks_attribute(expression.root())) return fail(ErrorKind::not_supported, kAttributeIsOfEvents);
  return Compiler(expression, surroundings).run();
}

}  // namespace usdt::expr
