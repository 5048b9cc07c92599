// SPDX-License-Identifier: BSD-2-Clause
// A small "order service" with USDT probes, to have something to list and trace:
//
//   orders:received(id, customer, items)      u64, char*, i32
//   orders:priced(id, total, discount)        u64, double, float
//   orders:stock(product, left)               char*, i16: negative when there is not enough
//   orders:rejected(id, reason, error)        u64, char*, i32: a negative errno
//   orders:shipped(id, label, micros)         u64, char*, u32: only while someone listens (shipping.cpp)
//   orders:done(orders, revenue)              u64, double
//
// Usage: order-service [SECONDS [ORDERS_PER_SECOND]]      default 5 and 4
#include <sys/sdt.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "shipping.hpp"

namespace demo {
namespace {

struct Customer {
  const char* name;
  const char* city;
};
struct Product {
  const char* name;
  double price;
  std::int16_t left;
};

constexpr std::array<Customer, 4> customers = {
    {{"Ada", "London"}, {"Grace", "New York"}, {"Edsger", "Rotterdam"}, {"Barbara", "Los Angeles"}}};
std::array<Product, 3> products = {{{"lamp", 49.90, 12}, {"desk", 319.00, 3}, {"chair", 129.50, 7}}};

using Clock = std::chrono::steady_clock;

class OrderService {
 public:
  void take(std::uint64_t id) {
    const auto start = Clock::now();
    const Customer& customer = customers[id % customers.size()];
    Product& product = products[id % products.size()];
    const auto items = static_cast<std::int32_t>(1 + id % 3);
    STAP_PROBE3(orders, received, id, customer.name, items);

    const auto left = static_cast<std::int16_t>(product.left - items);
    STAP_PROBE2(orders, stock, product.name, left);
    if (left < 0) return reject(id, product);
    product.left = left;

    const float discount = items > 2 ? 0.125F : 0.0F;
    const double total = product.price * items * (1.0 - static_cast<double>(discount));
    STAP_PROBE3(orders, priced, id, total, discount);
    revenue_ += total;
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
    ship(id, customer.city, static_cast<std::uint32_t>(took.count()));
    ++shipped_;
  }

  void close() {
    STAP_PROBE2(orders, done, shipped_, revenue_);
    std::printf("%llu orders shipped, revenue %.2f\n", static_cast<unsigned long long>(shipped_), revenue_);
  }

 private:
  /// The warehouse is filled up again, so that the next order of the product succeeds.
  void reject(std::uint64_t id, Product& product) {
    const char* reason = "out of stock";
    const std::int32_t error = -EAGAIN;
    STAP_PROBE3(orders, rejected, id, reason, error);
    product.left = 9;
  }

  std::uint64_t shipped_ = 0;
  double revenue_ = 0;
};

}  // namespace
}  // namespace demo

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::strtod(argv[1], nullptr) : 5;
  const double per_second = argc > 2 ? std::strtod(argv[2], nullptr) : 4;
  if (!(seconds > 0 && seconds <= 3600 && per_second > 0 && per_second <= 1e6)) {
    std::fprintf(stderr, "usage: %s [SECONDS [ORDERS_PER_SECOND]]\n", argv[0]);
    return 2;
  }
  const auto pause = std::chrono::duration<double>(1 / per_second);
  const auto end = demo::Clock::now() + std::chrono::duration<double>(seconds);
  demo::OrderService service;
  for (std::uint64_t id = 1001; demo::Clock::now() < end; ++id) {
    service.take(id);
    std::this_thread::sleep_for(pause);
  }
  service.close();
}
