// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <memory>
#include <string>

#include "flags.hpp"
#include "usdt/broker.hpp"

namespace usdt_trace {

/// Connects to usdt-broker where it is asked for, or where this process may not trace and there is one. Null: this
/// process attaches itself, as far as it may. Errors: those of Broker::connect().
[[nodiscard]] usdt::Result<std::shared_ptr<usdt::Broker>> find_broker(const Flags& flags);

/// Whether usdt-broker is asked for what is missing by this sentence.
[[nodiscard]] bool is_for_broker(const std::string& lack, const Flags& flags);
/// Says who attaches, or could attach, where this process lacks the privilege that a text names, in the middle of a
/// sentence: "; usdt-broker, which is at ...". Empty: nobody.
[[nodiscard]] std::string help_by_broker(const std::string& lack, const Flags& flags);

/// Says of an error for lack of privilege who could help, where nobody was asked.
[[nodiscard]] usdt::Error with_hint_at_broker(usdt::Error error, const Flags& flags);

}  // namespace usdt_trace
