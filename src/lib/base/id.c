/* SPDX-License-Identifier: Apache-2.0 */
/* Identifiers; see id.h. */
#include "lib/base/id.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

void
id_new(struct id *ret)
{
	/* At most 256 bytes are never interrupted and never short once the pool is ready. */
	must(getrandom(ret->b, sizeof(ret->b), 0) == (ssize_t)sizeof(ret->b));
}

bool
id_eq(const struct id *a, const struct id *b)
{
	return memcmp(a->b, b->b, ID_BYTES) == 0;
}

bool
id_is_zero(const struct id *a)
{
	static const struct id zero;

	return id_eq(a, &zero);
}

void
id_text(const struct id *id, const char *prefix, char *ret)
{
	size_t n = strlen(prefix);

	must(n + ID_DIGITS < ID_TEXT);
	memcpy(ret, prefix, n);
	/* 5 bytes are 8 digits. */
	for (size_t half = 0; half < 2; half++) {
		uint64_t v = 0;

		for (size_t i = 0; i < 5; i++)
			v = v << 8 | id->b[half * 5 + i];
		for (size_t i = 0; i < 8; i++)
			ret[n + half * 8 + i] = alphabet[(v >> (35 - 5 * i)) & 31];
	}
	ret[n + ID_DIGITS] = '\0';
}

int
id_parse(struct view text, const char *prefix, struct id *ret)
{
	size_t n = strlen(prefix);
	struct id id;

	if (text.n != n + ID_DIGITS || memcmp(text.p, prefix, n) != 0)
		return -EINVAL;
	for (size_t half = 0; half < 2; half++) {
		uint64_t v = 0;

		for (size_t i = 0; i < 8; i++) {
			uint8_t c = text.p[n + half * 8 + i];
			const char *at = c == '\0' ? NULL : strchr(alphabet, c);

			if (at == NULL)
				return -EINVAL;
			v = v << 5 | (uint64_t)(at - alphabet);
		}
		for (size_t i = 0; i < 5; i++)
			id.b[half * 5 + i] = (uint8_t)(v >> (32 - 8 * i));
	}
	*ret = id;
	return 0;
}
