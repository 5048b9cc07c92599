/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What the loader tells the programs of this directory. */
#ifndef USDT_STOCK_H
#define USDT_STOCK_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <usdt/bpf/constants.h>
#include <usdt/bpf/stock_constants.h>

USDT_CONSTANTS(usdt_stock)

/* What updating a map answers. Before Linux 6.4 (d7ba4cc900bf) maps return an int, of which the helper's long has the
 * lower half only: -EEXIST comes as 0xffffffef there, which is no negative number. */
static __always_inline long update_elem(void *map, const void *key, const void *value, __u64 flags)
{
	return (int)bpf_map_update_elem(map, key, value, flags);
}

#endif /* USDT_STOCK_H */
