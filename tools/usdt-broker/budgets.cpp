// SPDX-License-Identifier: BSD-2-Clause
#include "budgets.hpp"

#include <sys/mman.h>

#include <ctime>
#include <new>

namespace usdt_broker {

bool Allowance::take(std::uint64_t amount, std::uint64_t most) noexcept {
  constexpr std::int64_t hour = 3600;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  std::int64_t began = began_.load();
  if (now.tv_sec - began >= hour && began_.compare_exchange_strong(began, now.tv_sec)) used_.store(0);
  if (amount > most) return false;
  if (used_.fetch_add(amount) + amount <= most) return true;
  used_.fetch_sub(amount);
  return false;
}

Budgets::Budgets() {
  void* const shared =
      ::mmap(nullptr, kMostUsers * sizeof(Budget), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::bad_alloc();
  all_ = new (shared) Budget[kMostUsers];
}

Budgets::~Budgets() { ::munmap(all_, kMostUsers * sizeof(Budget)); }

Budget* Budgets::of(uid_t user) {
  const auto [known, is_new] = number_of_.try_emplace(user, number_of_.size());
  if (known->second < kMostUsers) return &all_[known->second];
  if (is_new) number_of_.erase(known);
  return nullptr;
}

}  // namespace usdt_broker
