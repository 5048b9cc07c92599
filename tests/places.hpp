// SPDX-License-Identifier: BSD-2-Clause
// Where tests find what is not made by them.
#pragma once

#include <filesystem>

namespace usdt::test {

/// The root of these sources.
std::filesystem::path source_dir();

/// Real notes and their reference decode: $USDT_CORPUS, else beside the sources. It need not be there.
std::filesystem::path corpus_dir();

}  // namespace usdt::test
