// SPDX-License-Identifier: BSD-2-Clause
#include "find/function_values.hpp"

#include <filesystem>
#include <utility>

#include "arch/arch.hpp"
#include "resolve/untyped.hpp"

namespace usdt::find {

SharedSignature FunctionValues::of(const dwarf::FunctionInfo& info, const dwarf::Instance& instance) {
  if (code_.go() && !code_.go()->by_registers) return nothing();
  auto found = debug_->signatures.of(info, instance);
  if (!found) note_refusal(found.error());
  if (found) return shared(*std::move(found));
  return instance.inlined ? nothing() : untyped();  // a copy in another function is not called
}

SharedSignature FunctionValues::at_line(const dwarf::FunctionInfo& info, const dwarf::Instance& instance,
                                        std::uint32_t line) {
  auto variables = debug_->signatures.with_variables(info, instance, line);
  return variables && !code_.go() ? shared(*std::move(variables)) : nullptr;
}

void FunctionValues::note_refusal(const Error& error) {
  if (error.kind == ErrorKind::limit) file_.refused = error.message;
}

SharedSignature FunctionValues::shared(locate::Signature&& found) {
  return std::make_shared<const FunctionSignature>(FunctionSignature{.args = std::move(found.args),
                                                                     .result = std::move(found.result),
                                                                     .varargs = found.varargs,
                                                                     .typed = true,
                                                                     .pieces = std::move(found.pieces),
                                                                     .result_pieces = std::move(found.result_pieces),
                                                                     .types = types(),
                                                                     .arg_types = std::move(found.types),
                                                                     .result_type = found.result_type});
}

/// The file's types, with those of libraries if it is in this machine's root: a container's libraries are elsewhere.
const std::shared_ptr<const TypeGraph>& FunctionValues::types() {
  if (types_) return types_;
  std::error_code error;
  const TargetFile& target = file_.target;
  const bool own_root = target.access.empty() || target.access == target.path ||
                        std::filesystem::equivalent(target.access, target.path, error);
  types_ = debug_->info.types();
  if (own_root && !target.deleted) types_ = with_types_of_libraries(std::move(types_), target.path, beside_, stop_);
  return types_;
}

SharedSignature FunctionValues::typed_by_hand(std::vector<Type> types) const {
  for (Type& type : types)
    if (type.size == 0) type.size = arch::for_machine(code_.machine()).word_size;
  resolve::UntypedValues values = resolve::hand_typed_function(code_.machine(), types);
  return std::make_shared<const FunctionSignature>(
      FunctionSignature{.args = std::move(values.args), .result = std::move(values.result), .typed = true});
}

const SharedSignature& FunctionValues::untyped() {
  if (code_.go()) return nothing();
  if (!untyped_) {
    resolve::UntypedValues values = resolve::untyped_function(code_.machine());
    untyped_ =
        std::make_shared<const FunctionSignature>(FunctionSignature{std::move(values.args), std::move(values.result)});
  }
  return untyped_;
}

const SharedSignature& FunctionValues::nothing() {
  if (!nothing_) nothing_ = std::make_shared<const FunctionSignature>();
  return nothing_;
}

}  // namespace usdt::find
