// SPDX-License-Identifier: BSD-2-Clause
// One scanned file as it will be shown: its sites decoded, and grouped into probes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "usdt/usdt.hpp"

namespace usdt_list {

/// Whether costs are wanted: they depend on the kernel, and asking it takes longer than listing a file.
enum class Costs : std::uint8_t { no, yes };

/// A description of an argument text, which many sites have in common.
struct DescribedArgs {
  std::string signature;       ///< "(i32, u64)"
  std::size_t unreadable = 0;  ///< arguments
};

/// The key of sites with equal arguments: the text, a view of the site's own, and the description by the provider.
struct ArgsKey {
  std::string_view text;
  const usdt::SiteDescription* description = nullptr;
  explicit ArgsKey(const usdt::Site& site) noexcept : text(site.args_text), description(site.description.get()) {}
  friend bool operator==(const ArgsKey&, const ArgsKey&) = default;
};
struct ArgsKeyHash {
  std::size_t operator()(const ArgsKey& key) const noexcept {
    return std::hash<std::string_view>{}(key.text) * 31 + std::hash<const void*>{}(key.description);
  }
};

/// The arguments of a site, as its note writes them and as they are read. Views the site's text.
struct WrittenArgs {
  std::vector<usdt::ParsedArg> parsed;
  std::vector<usdt::Arg> decoded;
};

/// Decodes the sites of one file one by one: arguments are larger than their text by far, and a file can have millions.
class SiteDecoder {
 public:
  /// `file` must outlive the decoder.
  SiteDecoder(const usdt::ProbeFile& file, Costs costs);
  [[nodiscard]] WrittenArgs args(const usdt::Site& site) const;
  [[nodiscard]] usdt::Machine machine() const noexcept { return decoder_.machine(); }
  /// Describes the arguments of a site. Valid as long as the decoder.
  [[nodiscard]] const DescribedArgs& describe(const usdt::Site& site) const;
  /// Returns the cost of a hit on the running kernel; nothing if that does not run such files, or if nobody asked.
  [[nodiscard]] std::optional<usdt::SiteCost> cost(const usdt::Site& site) const;

 private:
  const usdt::ProbeFile& file_;
  usdt::ArgDecoder decoder_;
  bool costs_;
  usdt::KernelFacts kernel_;
  mutable std::unordered_map<ArgsKey, DescribedArgs, ArgsKeyHash> by_text_;
};

/// A site with what its probe's lines say of it.
struct ListedSite {
  const usdt::Site* site = nullptr;
  const DescribedArgs* described = nullptr;
  std::optional<usdt::SiteCost> cost;
};

/// All sites of one provider:name of one file.
struct ListedProbe {
  std::string name;  ///< "usdt:PATH:PROVIDER:NAME": pastes into usdt-trace
  std::vector<ListedSite> sites;
};

/// The sites of `file` grouped, sorted by provider and name. `file` and `decoder` must outlive the result.
[[nodiscard]] std::vector<ListedProbe> group_probes(const usdt::ProbeFile& file, const SiteDecoder& decoder);

}  // namespace usdt_list
