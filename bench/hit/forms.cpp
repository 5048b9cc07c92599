// SPDX-License-Identifier: BSD-2-Clause
// Nanoseconds a hit costs the traced program by its own clock, with an empty BPF program on the site.
#include <fmt/format.h>

#include <array>

#include "kernel.hpp"
#include "parts.hpp"

extern "C" {
void form_nop();
void form_nop5();
void form_nop10();
void form_entry();
void form_step();
}

namespace usdt::bench {
namespace {

struct Form {
  const char* probe;
  const char* what;
  void (*pass)();
  const std::uint8_t* site;
};

std::array<Form, 5> forms() {
  const auto at = [](void (*function)(), std::size_t offset) {
    return reinterpret_cast<const std::uint8_t*>(function) + offset;
  };
  constexpr std::size_t kGuard = 5;  // lea -128(%rsp), %rsp
  return {Form{"nop", "nop", form_nop, at(form_nop, 0)},
          Form{"nop5", "nop5, red zone guarded", form_nop5, at(form_nop5, kGuard)},
          Form{"nop10", "nop10, red zone guarded", form_nop10, at(form_nop10, kGuard)},
          Form{"entry", "function entry, push %rbp", form_entry, at(form_entry, 0)},
          Form{"step", "single-stepped xor", form_step, at(form_step, 0)}};
}

double ns_per_pass(const Form& form, std::uint64_t hits) {
  Stopwatch watch;
  for (std::uint64_t i = 0; i < hits; ++i) form.pass();
  return watch.lap_ns() / static_cast<double>(hits);
}

/// What the kernel has put at the site, after the hits that make it optimise.
std::string_view what_traps(const Form& form) {
  const volatile std::uint8_t& first_byte = *form.site;
  return first_byte == 0xcc ? "int3" : "call";
}

struct TracedForm {
  Form form;
  std::vector<std::uint64_t> offsets;
  std::string_view traps;
  std::string refused = {};  ///< the kernel's error, if it takes no breakpoint here
};

Result<double> traced_ns(TracedForm& traced, int program, std::uint64_t hits) {
  auto link = create_link(program, own_file(), traced.offsets);
  if (!link) return fail(link.error());
  ns_per_pass(traced.form, hits / 20 + 2);
  const double ns = ns_per_pass(traced.form, hits);
  traced.traps = what_traps(traced.form);
  return ns;
}

Result<std::vector<TracedForm>> locate(int program) {
  std::vector<TracedForm> located;
  for (const Form& form : forms()) {
    auto file = find_sites(own_file(), form.probe);
    if (!file) return fail(file.error());
    if (file->sites.size() != 1 || !file->sites.front().offset) return fail(ErrorKind::not_found, form.probe);
    located.push_back({form, {file->sites.front().offset->value}, ""});
    const auto tried = create_link(program, own_file(), located.back().offsets);
    if (!tried) located.back().refused = tried.error().message;
  }
  return located;
}

void print_form(const TracedForm& traced, const Series& untraced, const Series& added, const Series& nop) {
  if (!traced.refused.empty()) {
    fmt::print("  {:<26} {}\n", traced.form.what, traced.refused);
    return;
  }
  fmt::print("  {:<26} {:<6} {:>18} {:>28} {:>24}\n", traced.form.what, traced.traps, text(spread(untraced), 1),
             text(spread(added), 0), text(spread(ratio(added, nop))));
}

}  // namespace

Result<void> measure_forms(const Settings& settings) {
  auto program = load_empty_program();
  if (!program) return fail(program.error());
  auto located = locate(program->get());
  if (!located) return fail(located.error());
  std::vector<Candidate> candidates;
  for (TracedForm& traced : *located) {
    candidates.emplace_back([&] { return Result<double>(ns_per_pass(traced.form, settings.hits)); });
    candidates.emplace_back(
        [&] { return traced.refused.empty() ? traced_ns(traced, program->get(), settings.hits) : Result<double>(0); });
  }
  auto results = measure(settings.rounds, candidates);
  if (!results) return fail(results.error());

  fmt::print("\nA hit as the traced program feels it, empty BPF program, ns: median (lowest..highest) of {} rounds\n\n",
             settings.rounds);
  fmt::print("  {:<26} {:<6} {:>18} {:>28} {:>24}\n", "instruction at the site", "traps", "untraced",
             "added by tracing", "of a nop's");
  const Series nop = difference((*results)[1], (*results)[0]);
  for (std::size_t i = 0; i < located->size(); ++i)
    print_form((*located)[i], (*results)[2 * i], difference((*results)[2 * i + 1], (*results)[2 * i]), nop);
  return {};
}

}  // namespace usdt::bench
