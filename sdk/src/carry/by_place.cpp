// SPDX-License-Identifier: BSD-2-Clause
#include "carry/by_place.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <vector>

namespace usdt::carry {
namespace {

/// Values of the low 12 bits of an address. Segments are mapped by pages of 4096 bytes or a multiple, so that these
/// bits of an offset in the file are those of the address in each process.
constexpr std::size_t kPlaces = 4096;

std::size_t place_of(std::uint64_t offset) { return offset % kPlaces; }

/// Groups of sites, in each of which a place says which cookie it is.
class Groups {
 public:
  /// The number of the first group that has room for the cookie at that place.
  std::size_t add(std::uint64_t offset, std::uint64_t cookie) {
    for (std::size_t number = 0;; ++number) {
      if (number == all_.size()) all_.emplace_back();
      std::optional<std::uint64_t>& taken = all_[number][place_of(offset)];
      if (taken && *taken != cookie) continue;
      taken = cookie;
      return number;
    }
  }
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }
  void append_to(std::vector<std::uint64_t>& ips) const {
    for (const auto& group : all_)
      for (const std::optional<std::uint64_t>& cookie : group) ips.push_back(cookie.value_or(0));
  }

 private:
  std::vector<std::array<std::optional<std::uint64_t>, kPlaces>> all_;
};

bool has_several_cookies(const PlannedLink& link) {
  return std::ranges::adjacent_find(link.cookies, std::ranges::not_equal_to()) != link.cookies.end();
}

void share_cookies_of(PlannedLink& link, CarrierPlan& made) {
  const std::uint64_t first = made.ips.size() / kPlaces;
  Groups groups;
  for (std::size_t i = 0; i < link.sites.size(); ++i)
    link.cookies[i] = first + groups.add(link.offsets[i], link.cookies[i]);
  groups.append_to(made.ips);
}

/// The most sites that share a place, of those that `offsets_of` gives of each.
template <class OffsetsOf>
std::size_t most_alike(const AttachPlan& plan, const AttachGroup& group, const OffsetsOf& offsets_of) {
  std::array<std::size_t, kPlaces> alike{};
  for (const Index<PlannedSite> site : group.sites)
    for (const FileOffset offset : offsets_of(std::get<FilePlace>(plan.sites[site].point)))
      ++alike[place_of(offset.value)];
  return std::ranges::max(alike);
}

}  // namespace

void share_cookies(CarrierPlan& made) {
  std::set<Index<PlannedProgram>> sharing;
  for (const PlannedLink& link : made.links)
    if (!link.ref_ctr_offsets.empty() && has_several_cookies(link)) sharing.insert(link.program);
  for (PlannedLink& link : made.links)
    if (sharing.contains(link.program)) share_cookies_of(link, made);
  for (const Index<PlannedProgram> program : sharing) made.programs[program].ip_by_cookie = true;
}

std::size_t shared_cookies(const AttachPlan& plan) {
  const auto entry = [](const FilePlace& place) { return std::vector{place.offset}; };
  const auto rets = [](const FilePlace& place) { return place.rets; };
  std::size_t cookies = 0;
  for (const AttachGroup& group : plan.groups) {
    if (!std::holds_alternative<Index<PlannedFile>>(group.of)) continue;
    const bool by_rets = group.returns != ReturnBy::probe;
    if (group.moment != Moment::exit || !by_rets) cookies += most_alike(plan, group, entry);
    if (group.moment == Moment::both && !by_rets) cookies += most_alike(plan, group, entry);
    if (group.moment != Moment::entry && by_rets) cookies += most_alike(plan, group, rets);
  }
  return cookies;
}

}  // namespace usdt::carry
