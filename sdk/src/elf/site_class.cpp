// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/probe.hpp"

namespace usdt {
inline namespace v1 {

std::string_view to_string(SiteClass site_class) noexcept {
  switch (site_class) {
    case SiteClass::unknown:
      return "unknown";
    case SiteClass::nop:
      return "nop";
    case SiteClass::nop_nop5:
      return "nop,nop5";
    case SiteClass::nop_nop10:
      return "nop,nop10";
    case SiteClass::nop5:
      return "nop5";
    case SiteClass::nop10:
      return "nop10";
    case SiteClass::emulated:
      return "emulated";
    case SiteClass::single_step:
      return "single-step";
  }
  return "unknown";
}

}  // namespace v1
}  // namespace usdt
