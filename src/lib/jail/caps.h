/* SPDX-License-Identifier: Apache-2.0 */
/* What kernel.c sets and prove.c reads back about capabilities; inside lib/jail only. */
#pragma once

#include <linux/securebits.h>

enum { CAPS_END = 64 };

/* Root is nobody special, and no bit of this can be changed back. */
#define SECUREBITS                                                              \
	(SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED | \
		SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |         \
		SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)
