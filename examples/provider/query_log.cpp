// SPDX-License-Identifier: BSD-2-Clause
// A program with probes: a pretended database. `usdt-trace db:query --print 'sql, took, status' -- ./query-log 3`
#include <usdt/probe.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

// What tools shall call the arguments, and what their numbers mean.
USDT_PROBE_DECLARE(db, query, "sql, rows, took:duration[us], status:errno");

namespace {

enum class Cache : std::uint8_t { miss, hit };

struct Query {
  std::string sql;
  int rows;
  std::int64_t microseconds;
  int error;
};

// A string is two arguments, its address and its length; the names of these are those of the expressions.
void look_up(std::string_view key, Cache found) { USDT_PROBE(db, lookup, key, found); }

void run(const Query& query) {
  look_up(query.sql, query.rows % 2 == 0 ? Cache::hit : Cache::miss);
  // Nothing of this is evaluated while nobody traces it.
  USDT_PROBE_STUB(db, query, query.sql, query.rows, query.microseconds, query.error);
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 3;
  for (int n = 1; n <= count; ++n) run({"SELECT " + std::to_string(n), 10 * n, 1250 * n, n % 3 == 0 ? ENOENT : 0});
  std::cout << count << " queries\n";
}
