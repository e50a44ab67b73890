/* SPDX-License-Identifier: Apache-2.0 */
/* See classify.h. */
#include "broker/classify.h"

struct seen {
	const struct operation *op;
	unsigned status;
	bool whole;
};

static bool
is_CUT(const struct seen *s)
{
	return !s->whole;
}

static bool
is_REDIRECT(const struct seen *s)
{
	return s->status >= 300 && s->status < 400;
}

static bool
is_SUCCESS(const struct seen *s)
{
	return s->status >= 200 && s->status < 300 && codes_have(&s->op->success, s->status);
}

static bool
is_PENDING(const struct seen *s)
{
	return codes_have(&s->op->pending, s->status);
}

static bool
is_NOT_PROCESSED(const struct seen *s)
{
	return s->status >= 400 && codes_have(&s->op->provider.capability.not_processed, s->status);
}

static bool
is_CONCURRENT(const struct seen *s)
{
	return codes_have(&s->op->provider.capability.concurrent, s->status);
}

static bool
is_DEFINITE(const struct seen *s)
{
	return s->status >= 400 && codes_have(&s->op->provider.capability.definite, s->status);
}

static bool
is_MISMATCH(const struct seen *s)
{
	return s->status == 422 && s->op->provider.capability.key;
}

static bool
is_ACCEPTED(const struct seen *s)
{
	return s->status >= 200 && s->status < 300;
}

static bool
is_OTHER(const struct seen *s)
{
	(void)s;
	return true;
}

static const struct {
	bool (*test)(const struct seen *);
	struct answer_means means;
} rows[] = {
#define ROW(name, cls, bad, says) \
	{is_##name, {.class = CLASS_##cls, .incident = bad, .sentence = says}},
#include "broker/classify.def"
#undef ROW
};

struct answer_means
classify(const struct operation *op, unsigned status, bool whole)
{
	const struct seen s = {.op = op, .status = status, .whole = whole};
	size_t i = 0;

	while (!rows[i].test(&s))
		i++;
	return rows[i].means;
}
