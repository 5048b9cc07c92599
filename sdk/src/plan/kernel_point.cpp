// SPDX-License-Identifier: BSD-2-Clause
// Kernel functions as people choose among them.
#include <fmt/format.h>

#include <algorithm>

#include "btf/names.hpp"
#include "kernel/attachable.hpp"
#include "kernel/catalogue.hpp"
#include "resolve/prototype.hpp"
#include "usdt/plan.hpp"

namespace usdt {
inline namespace v1 {
namespace {

resolve::Convention convention_of(KernelKind kind) {
  if (is_tracepoint(kind)) return resolve::Convention::tracepoint;
  return kind.family == KernelFamily::trampoline ? resolve::Convention::slots : resolve::Convention::registers;
}

/// "ssize_t (struct file *file, char *buf)"; of tracepoints the arguments alone.
std::string signature_text(const btf::Types& types, btf::Prototype prototype, KernelKind kind) {
  const bool tracepoint = is_tracepoint(kind);
  // Its first parameter is no argument.
  if (tracepoint && !prototype.parameters.empty()) prototype.parameters.erase(prototype.parameters.begin());
  std::string text = btf::prototype_text(types, "", prototype);
  return tracepoint ? text.substr(std::min(text.find('('), text.size())) : text;
}

/// Keeps the values that a program of this kind can ask for.
void keep_what_is_there(KernelPoint& point, resolve::KernelSignature&& found, KernelKind kind) {
  const bool returns = kind.moment == Moment::exit || kind.moment == Moment::both;
  const bool lost = kind.moment == Moment::exit && convention_of(kind) == resolve::Convention::registers;
  if (!lost) point.args = std::move(found.args);
  if (returns) point.result = std::move(found.result);
}

}  // namespace

std::string kernel_name(KernelKind kind, std::string_view module, std::string_view name) {
  if (module.empty()) return fmt::format("{}:{}", to_string(kind), name);
  return fmt::format("{}:{}:{}", to_string(kind), module, name);
}

KernelPoint describe_point(const KernelSelection& selection, const KernelSelection::Entry& entry, Machine machine) {
  const KernelFunction& function = *entry.function;
  KernelPoint point;
  point.name = kernel_name(entry.kind, function.module, function.name);
  const btf::Types* types =
      function.proto_id == 0 ? nullptr : kernel::CatalogueOf::selection(selection).btf(function.module);
  auto prototype = types ? types->prototype(function.proto_id) : Result<btf::Prototype>(btf::Prototype{});
  const bool typed = types && prototype;
  resolve::KernelSignature found =
      typed ? resolve::kernel_signature(*types, *prototype, convention_of(entry.kind), machine)
            : resolve::untyped_signature(convention_of(entry.kind), machine);
  if (typed) point.signature = signature_text(*types, *prototype, entry.kind);
  point.refused = kernel::why_not(kernel::CatalogueOf::selection(selection), function, entry.kind,
                                  typed ? found.no_trampoline : std::string());
  keep_what_is_there(point, std::move(found), entry.kind);
  return point;
}

}  // namespace v1
}  // namespace usdt
