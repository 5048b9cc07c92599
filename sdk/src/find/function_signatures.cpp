// SPDX-License-Identifier: BSD-2-Clause
// What is known of the values of a function: by its debug information, by who names it, or by the calling convention.
#include <filesystem>
#include <utility>

#include "arch/arch.hpp"
#include "find/function_finder.hpp"
#include "find/joined_types.hpp"
#include "resolve/untyped.hpp"

namespace usdt::find {

FunctionFinder::Signature FunctionFinder::signature_of(const dwarf::FunctionInfo& info,
                                                       const dwarf::Instance& instance) {
  if (go_ && !go_->by_registers) return nothing();
  auto found = signatures_->of(info, instance);
  if (!found) note_refusal(found.error());
  if (found) return shared(*std::move(found));
  return instance.inlined ? nothing() : untyped();  // a copy in another function is not called
}

FunctionFinder::Signature FunctionFinder::shared(locate::Signature&& found) const {
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

/// Of a file of this machine's own root: those of a container need libraries that are elsewhere.
const std::shared_ptr<const TypeGraph>& FunctionFinder::types() const {
  if (types_) return types_;
  std::error_code error;
  const TargetFile& target = file_.target;
  const bool own_root = target.access.empty() || target.access == target.path ||
                        std::filesystem::equivalent(target.access, target.path, error);
  types_ = debug_->types();
  if (own_root && !target.deleted) types_ = with_types_of_libraries(std::move(types_), target.path, beside_, stop_);
  return types_;
}

FunctionFinder::Signature FunctionFinder::typed_by_hand(std::vector<Type> types) const {
  for (Type& type : types)
    if (type.size == 0) type.size = arch::for_machine(file_.elf->machine()).word_size;
  resolve::UntypedValues values = resolve::hand_typed_function(file_.elf->machine(), types);
  return std::make_shared<const FunctionSignature>(
      FunctionSignature{.args = std::move(values.args), .result = std::move(values.result), .typed = true});
}

const FunctionFinder::Signature& FunctionFinder::untyped() {
  if (go_) return nothing();
  if (!untyped_) {
    resolve::UntypedValues values = resolve::untyped_function(file_.elf->machine());
    untyped_ =
        std::make_shared<const FunctionSignature>(FunctionSignature{std::move(values.args), std::move(values.result)});
  }
  return untyped_;
}

const FunctionFinder::Signature& FunctionFinder::nothing() {
  if (!nothing_) nothing_ = std::make_shared<const FunctionSignature>();
  return nothing_;
}

}  // namespace usdt::find
