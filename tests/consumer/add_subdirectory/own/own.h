/* SPDX-License-Identifier: BSD-2-Clause */
#define OWN 3
