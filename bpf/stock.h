/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Constants that the loader sets for the programs of this directory. */
#ifndef USDT_STOCK_H
#define USDT_STOCK_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <usdt/bpf/constants.h>
#include <usdt/bpf/stock_constants.h>

USDT_CONSTANTS(usdt_stock)

/* Updates a map; returns 0 or a negative errno. Before Linux 6.4 (d7ba4cc900bf) maps return an int, which is only the
 * lower half of the helper's long: -EEXIST comes as 0xffffffef there, which is no negative number. */
static __always_inline long update_elem(void *map, const void *key, const void *value, __u64 flags)
{
	return (int)bpf_map_update_elem(map, key, value, flags);
}

#endif /* USDT_STOCK_H */
