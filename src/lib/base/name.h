/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule for names that people choose and that end up in file names, cgroups, URLs and
 * tables (tenants, templates, aliases): 1 to 63 of [a-z0-9._-], starting with a letter or digit.
 */
#pragma once

#include "lib/base/view.h"

enum { NAME_MAX_BYTES = 63 };

static inline bool
name_ok(struct view v)
{
	if (v.n == 0 || v.n > NAME_MAX_BYTES)
		return false;
	for (size_t i = 0; i < v.n; i++) {
		uint8_t c = v.p[i];
		bool alnum = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

		if (!alnum && (i == 0 || (c != '.' && c != '_' && c != '-')))
			return false;
	}
	return true;
}
