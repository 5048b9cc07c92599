// SPDX-License-Identifier: BSD-2-Clause
// By which calling convention a function is called, as far as debug information and code tell. Private to locate/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arch/user_calls.hpp"
#include "dwarf/types.hpp"
#include "locate/arrival.hpp"
#include "locate/entries.hpp"
#include "locate/locator.hpp"
#include "locate/moment.hpp"
#include "locate/parameters.hpp"
#include "locate/place_checker.hpp"
#include "locate/results.hpp"
#include "locate/spilled.hpp"
#include "locate/stated_place.hpp"
#include "locate/user_shapes.hpp"

namespace usdt::locate {

class Convention {
 public:
  /// Its arguments must outlive it. `external`: debug information says so of the function. `stated` and `shapes` are by
  /// parameter, and may grow until decide().
  Convention(const Moment& moment, const PlaceChecker& checker, SpilledPlaces& spilled, const Types& types,
             const UserShapes& user_shapes, Language language, bool external, const std::vector<StatedPlace>& stated,
             const std::vector<arch::UserShape>& shapes)
      : moment_(moment),
        checker_(checker),
        spilled_(spilled),
        types_(types),
        user_shapes_(user_shapes),
        language_(language),
        external_(external),
        stated_(stated),
        shapes_(shapes) {}
  Convention(const Convention&) = delete;
  Convention& operator=(const Convention&) = delete;

  /// Once, of a function that is no inlined copy. `varargs`: it may be passed more than `parameters`.
  void decide(const std::vector<Parameter>& parameters, bool varargs);

  /// Why parameters may be elsewhere than by the convention; empty: they are in place().
  [[nodiscard]] const std::string& why_not() const noexcept { return why_not_; }
  [[nodiscard]] const arch::UserPlace& place(std::size_t number) const { return places_[number]; }
  /// The place where callers left a parameter, whatever the convention is: bytes from the call frame address on.
  [[nodiscard]] std::optional<std::uint64_t> bytes_on_stack(std::size_t number) const {
    return number < on_stack_.size() ? on_stack_[number] : std::nullopt;
  }
  /// A parameter that has bytes_on_stack().
  [[nodiscard]] Located on_stack(std::size_t number, const Type& type) const;
  /// Whether its stated value may be one that the function assigned to it.
  [[nodiscard]] bool is_assigned(std::size_t number) const {
    return (!found_.assigned.empty() && found_.assigned[number]) ||
           (number < is_another_on_stack_.size() && is_another_on_stack_[number]);
  }
  /// Said to be where only callers write, while the convention has it in a register: the room that Microsoft's
  /// convention leaves for arguments above the return address. What is on the stack is not behind a pointer there.
  [[nodiscard]] bool contradicts(const StatedPlace& what, std::size_t number) const;
  /// Callers pass a float as a double to a function without a prototype, which makes it a float behind its first
  /// instruction; debug information tells of it as a float all the time.
  [[nodiscard]] bool passes_as_double(const Type& type) const;
  [[nodiscard]] const ResultConvention& of_results() const noexcept { return of_results_; }

 private:
  /// The first place of a parameter among all that are stated.
  struct FirstPlace {
    std::optional<std::uint64_t> bytes;  ///< on the stack, as PlaceChecker::callers_bytes()
    bool in_register = false;
  };

  enum class OnStack : std::uint8_t {
    as_passed,
    by_another_convention,
    out_of_order,  ///< one has the place of another
  };

  [[nodiscard]] std::string why_unknown(const std::vector<Parameter>& parameters);
  [[nodiscard]] std::string why_not_usual(const std::vector<Parameter>& parameters);
  [[nodiscard]] bool take(std::uint64_t convention);
  [[nodiscard]] bool lacks_some(const std::vector<Parameter>& parameters) const;
  [[nodiscard]] bool has_prototype() const;
  [[nodiscard]] bool has_floats(const std::vector<Parameter>& parameters) const;
  void find_on_stack(const std::vector<Parameter>& parameters);
  [[nodiscard]] OnStack on_stack_as_passed(const std::vector<Parameter>& parameters,
                                           const std::vector<FirstPlace>& first) const;
  [[nodiscard]] bool may_be_of_lost(const std::vector<Parameter>& parameters, const std::vector<FirstPlace>& first,
                                    std::size_t number) const;
  [[nodiscard]] FirstPlace first_place(const Parameter& parameter, const StatedPlace& told) const;
  [[nodiscard]] bool is_on_stack_at(Sum sum, const arch::UserPlace& place) const;
  [[nodiscard]] bool some_are_above_the_frame(const std::vector<Parameter>& parameters) const;
  [[nodiscard]] bool code_contradicts(bool varargs) const;
  [[nodiscard]] bool uses_what_is_not_passed(bool varargs) const;
  [[nodiscard]] std::size_t registers_passed() const;
  [[nodiscard]] bool some_are_elsewhere_on_stack(const std::vector<Parameter>& parameters) const;

  const Moment& moment_;
  const PlaceChecker& checker_;
  SpilledPlaces& spilled_;
  const Types& types_;
  const UserShapes& user_shapes_;
  Language language_;
  bool external_;
  const std::vector<StatedPlace>& stated_;
  const std::vector<arch::UserShape>& shapes_;
  arch::UserConvention kind_ = arch::UserConvention::standard;
  std::string why_not_ = "it is inlined";
  bool only_arguments_differ_ = false;
  bool result_may_be_proven_ = false;
  ResultConvention of_results_;
  std::vector<arch::UserPlace> places_;  ///< by parameter; empty: not known
  std::vector<std::optional<std::uint64_t>> on_stack_;
  std::vector<bool> is_another_on_stack_;  ///< by parameter: what is told to be on the stack may be another one
  Contradictions found_;
};

}  // namespace usdt::locate
