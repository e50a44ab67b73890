/* SPDX-License-Identifier: Apache-2.0 */
/* See hop.h. */
#include "hop.h"

#include "lib/base/attr.h"

static const struct {
	const char *name;
	size_t n;
	bool of[2]; /* enum http_side */
} rows[] = {
#define DROP(name, request, answer, why) {name, sizeof(name) - 1, {request, answer}},
#include "hop.def"
#undef DROP
};

bool
hop_drops(struct view name, enum http_side side)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].n == name.n && rows[i].of[side] &&
			view_eq_nocase(name, view_of(rows[i].name, rows[i].n)))
			return true;
	return false;
}
