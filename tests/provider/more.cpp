// SPDX-License-Identifier: BSD-2-Clause
// The second object file that has the probes of shapes.hpp.
#include "shapes.hpp"

namespace {
struct Square : Shape {
  Square() { sides = 4; }
};
}  // namespace

extern "C" void run_more(int round) {
  in_header(-round);
  in_template(-round);
  in_template(static_cast<uint8_t>(round % 100));
  Square().draw(-round);
}
