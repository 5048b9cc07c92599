// SPDX-License-Identifier: BSD-2-Clause
// Is what a number may point to a text that a person wrote? Private to event/.
#pragma once

#include <string_view>

namespace usdt::event {

/// At least four characters, all of them valid UTF-8 and printable, or white space. `cut`: there is more behind, so
/// that the last character may be half of one.
[[nodiscard]] bool is_plainly_text(std::string_view bytes, bool cut) noexcept;

}  // namespace usdt::event
