/* SPDX-License-Identifier: BSD-2-Clause */
#include "one.bpf.c"
