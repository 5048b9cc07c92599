/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What the loader tells the programs of this directory. */
#ifndef USDT_STOCK_H
#define USDT_STOCK_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <usdt/bpf/constants.h>

USDT_CONSTANTS(usdt_stock)

#endif /* USDT_STOCK_H */
