// SPDX-License-Identifier: BSD-2-Clause
// Copies of events, in one block of memory with what they point into. Private to event/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "usdt/event.hpp"

namespace usdt {
inline namespace v1 {

class EventCopies {
 public:
  /// All events are of one tracer, and so of one plan.
  void add(const Event& event);
  [[nodiscard]] std::vector<OwnedEvent> take() &&;
  [[nodiscard]] static OwnedEvent of(const Event& event);

 private:
  void append(const void* bytes, std::size_t size);
  void append_texts(const Event& event);

  struct Block {
    std::vector<std::byte> bytes;  ///< records, which are aligned to 8 bytes
    std::shared_ptr<const AttachPlan> plan;
    std::vector<std::shared_ptr<const AttributeKeys>> keys;  ///< of each event with attributes
  };

  std::vector<std::byte> bytes_;
  std::vector<std::shared_ptr<const AttributeKeys>> keys_;
  std::vector<Event> events_;  ///< with the layouts of their copies, each still in the record it came in
};

}  // namespace v1
}  // namespace usdt
