// SPDX-License-Identifier: BSD-2-Clause
// readelf -n as an outside judge: what it sees and what we see, in one notation.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "toolchain.hpp"

namespace usdt::test {

/// "member prov:name pc base semaphore args" of each stapsdt note of `path`, in order, as readelf -nW prints them.
[[nodiscard]] std::vector<std::string> notes_by_readelf(const TempDir& dir, const std::filesystem::path& path);
/// The same of our scan.
[[nodiscard]] std::vector<std::string> notes_by_scan(const ScanResult& result);

}  // namespace usdt::test
