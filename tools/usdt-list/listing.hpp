// SPDX-License-Identifier: BSD-2-Clause
// One scanned file as it will be shown: its sites decoded, and grouped into probes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "usdt/usdt.hpp"

namespace usdt_list {

/// Decodes the sites of one file one by one: arguments are larger than their text by far, and a file can have millions.
class SiteDecoder {
 public:
  /// `file` must outlive the decoder.
  explicit SiteDecoder(const usdt::ProbeFile& file);
  [[nodiscard]] std::vector<usdt::Arg> args(const usdt::Site& site) const { return decoder_.decode(site); }
  /// What a hit costs on the running kernel; nothing if that does not run such files.
  [[nodiscard]] std::optional<usdt::SiteCost> cost(const usdt::Site& site) const;

 private:
  const usdt::ProbeFile& file_;
  usdt::ArgDecoder decoder_;
  bool runs_;
  usdt::KernelFacts kernel_;
};

/// A site with what its probe's lines say of it.
struct ListedSite {
  const usdt::Site* site = nullptr;
  std::string signature;       ///< "(i32, u64)"
  std::size_t unreadable = 0;  ///< arguments
  std::optional<usdt::SiteCost> cost;
};

/// All sites of one provider:name of one file.
struct ListedProbe {
  std::string name;  ///< "usdt:PATH:PROVIDER:NAME": pastes into usdt-trace
  std::vector<ListedSite> sites;
};

/// The sites of `file` grouped, sorted by provider and name. `file` must outlive the result.
[[nodiscard]] std::vector<ListedProbe> group_probes(const usdt::ProbeFile& file, const SiteDecoder& decoder);

}  // namespace usdt_list
