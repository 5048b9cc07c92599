// SPDX-License-Identifier: BSD-2-Clause
#include <stdint.h>
#include <usdt/provider.h>

int64_t microseconds(void);
void make_probe(const char* sql, uint32_t rows) { /* BLOCK */
}
