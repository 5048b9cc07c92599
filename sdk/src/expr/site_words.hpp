// SPDX-License-Identifier: BSD-2-Clause
// Words for what all hits of a site agree on: "provider", "name", "ip". Private to expr/.
#pragma once

#include <string>

#include "usdt/expression.hpp"

namespace usdt::expr {

/// Whether a node is such a word.
[[nodiscard]] bool is_site_word(const TypedExpression::Node& node) noexcept;
[[nodiscard]] bool is_site_word(HitField field) noexcept;
/// Its text; of HitField::ip none.
[[nodiscard]] std::string site_text(HitField field, const SiteWords& site);

/// Puts into an expression what they are at a site.
class SiteFolder {
 public:
  explicit SiteFolder(const SiteWords& site) : site_(site) {}

  /// Whether there was any.
  bool fold(TypedExpression::Node& node) const;

 private:
  bool fold_word(TypedExpression::Node& node) const;

  const SiteWords& site_;
};

}  // namespace usdt::expr
