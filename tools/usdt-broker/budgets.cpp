// SPDX-License-Identifier: BSD-2-Clause
#include "budgets.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <ctime>
#include <new>

namespace usdt_broker {

void Allowance::give_back(std::uint64_t most) noexcept {
  constexpr std::int64_t hour = 3600;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  std::int64_t since = given_back_.load();
  const auto seconds = static_cast<std::uint64_t>(std::clamp<std::int64_t>(now.tv_sec - since, 0, hour));
  const std::uint64_t back = most / hour * seconds + most % hour * seconds / hour;
  if (back == 0 || !given_back_.compare_exchange_strong(since, now.tv_sec)) return;
  std::uint64_t used = used_.load();
  while (!used_.compare_exchange_weak(used, used - std::min(used, back))) {
  }
}

bool Allowance::take(std::uint64_t amount, std::uint64_t most) noexcept {
  give_back(most);
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
