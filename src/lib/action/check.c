/* SPDX-License-Identifier: Apache-2.0 */
/* check.def as a table; see check.h. */
#include "lib/action/check.h"

enum {
	ENGINE = CHECK_ENGINE,
	BROKER = CHECK_BROKER,
	PROPOSE = CHECK_PROPOSE,
	DECIDE = CHECK_DECIDE,
	DISPATCH = CHECK_DISPATCH,
};

static const struct check checks[] = {
#define CHECK(denial, rooms, stages, evidence, sentence) \
	{DENIAL_##denial, rooms, stages, evidence, sentence},
#include "lib/action/check.def"
#undef CHECK
};

const struct check *
check_at(size_t i)
{
	return i < ARRAY_LEN(checks) ? &checks[i] : NULL;
}

const struct check *
check_of(enum denial denial)
{
	for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
		if (checks[i].denial == denial)
			return &checks[i];
	}
	return NULL;
}

const char *
denial_sentence(enum denial denial)
{
	const struct check *c = check_of(denial);

	if (c != NULL)
		return c->sentence;
	return denial == DENIAL_NONE ? "nothing stands against it"
				     : "what the provider answered, or did not";
}
