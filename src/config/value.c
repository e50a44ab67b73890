/* SPDX-License-Identifier: Apache-2.0 */
/* Values of scalars in files of operations; see section.h. */
#include "config/section.h"
#include "config/unit.h"
#include "lib/base/name.h"
#include "lib/base/num.h"

#include <stdio.h>

static bool
digits_only(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] < '0' || v.p[i] > '9')
			return false;
	return v.n > 0;
}

/* 1.5, .5, 1e3, 1.5e-3, .inf, .nan, with a sign. */
static bool
float_like(struct view v)
{
	bool digit = false, mark = false;
	unsigned points = 0;

	if (v.n > 0 && (v.p[0] == '-' || v.p[0] == '+'))
		v = view_skip(v, 1);
	if (view_eq_nocase(v, view_str(".inf")) || view_eq_nocase(v, view_str(".nan")))
		return true;
	for (size_t i = 0; i < v.n; i++) {
		uint8_t c = v.p[i], lower = c | 0x20;
		bool exponent = lower == 'e' && digit;

		points += c == '.' ? 1U : 0U;
		if (c >= '0' && c <= '9')
			digit = true;
		else if ((c == '.' && points == 1) || exponent)
			mark = true;
		else if ((c != '-' && c != '+') || i == 0 || (v.p[i - 1] | 0x20) != 'e')
			return false;
	}
	return digit && mark;
}

static bool
doubtful(struct view v)
{
	static const char *const words[] = {
		"yes", "no", "on", "off", "y", "n", "null", "~", "true", "false"};
	struct view unsigned_v = v.n > 0 && (v.p[0] == '-' || v.p[0] == '+') ? view_skip(v, 1) : v;

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (view_eq_nocase(v, view_str(words[i])))
			return true;
	if (digits_only(unsigned_v))
		return true; /* 007, +5, or more than 64 bits */
	return view_starts(unsigned_v, "0x") || view_starts(unsigned_v, "0o") ||
	       view_starts(unsigned_v, "0b");
}

enum literal
literal_of(const struct node *n, int64_t *ret)
{
	int64_t i;

	if (!n->plain)
		return LITERAL_TEXT;
	if (n->text.n == 0)
		return LITERAL_EMPTY;
	if (view_is(n->text, "true"))
		return LITERAL_TRUE;
	if (view_is(n->text, "false"))
		return LITERAL_FALSE;
	if (num_i64(n->text, &i) == 0 && i >= -CANON_INT_MAX && i <= CANON_INT_MAX) {
		*ret = i;
		return LITERAL_INTEGER;
	}
	if (float_like(n->text))
		return LITERAL_FLOAT;
	return doubtful(n->text) ? LITERAL_DOUBTFUL : LITERAL_TEXT;
}

bool
value_int(struct builder *b, const struct node *n, const char *key, int64_t min, int64_t max,
	int64_t *ret)
{
	int64_t i = 0;
	enum literal literal = n->kind == NODE_SCALAR ? literal_of(n, &i) : LITERAL_TEXT;

	if (literal == LITERAL_INTEGER && i >= min && i <= max) {
		*ret = i;
		return true;
	}
	if (literal == LITERAL_FLOAT)
		fault(b, n->at,
			"%s must be a whole number; write amounts in the smallest unit, 42.50 as "
			"4250",
			key);
	else
		fault(b, n->at, "%s must be a whole number from %lld to %lld, without quotes", key,
			(long long)min, (long long)max);
	return false;
}

void
value_name(struct builder *b, const struct node *n, const char *key)
{
	if (n != NULL && (n->kind != NODE_SCALAR || !name_ok(n->text)))
		fault(b, n->at,
			"%s must be a name: 1 to 63 of a-z, 0-9, '.', '_' and '-', a letter or "
			"digit first",
			key);
}

static void
bytes_text(uint64_t bytes, char *ret, size_t n)
{
	static const char *const units[] = {"KiB", "MiB", "GiB"};
	size_t i = 0;

	bytes >>= 10;
	for (; i + 1 < ARRAY_LEN(units) && bytes >= 1024 && bytes % 1024 == 0; i++)
		bytes >>= 10;
	(void)snprintf(ret, n, "%llu%s", (unsigned long long)bytes, units[i]);
}

bool
value_bytes(struct builder *b, const struct node *n, const char *key, uint64_t min, uint64_t max,
	uint64_t *ret)
{
	char from[32], to[32];
	uint64_t bytes;

	if (unit_bytes(n->text, &bytes) == 0 && bytes >= min && bytes <= max) {
		*ret = bytes;
		return true;
	}
	bytes_text(min, from, sizeof(from));
	bytes_text(max, to, sizeof(to));
	fault(b, n->at, "%s must be a whole number with KiB, MiB or GiB, from %s to %s", key, from,
		to);
	return false;
}

static void
duration_text(uint64_t ms, char *ret, size_t n)
{
	static const struct {
		uint64_t ms;
		char unit;
	} units[] = {{86400000, 'd'}, {3600000, 'h'}, {60000, 'm'}, {1000, 's'}};
	size_t i = 0;

	while (i + 1 < ARRAY_LEN(units) && (ms < units[i].ms || ms % units[i].ms != 0))
		i++;
	(void)snprintf(ret, n, "%llu%c", (unsigned long long)(ms / units[i].ms), units[i].unit);
}

bool
value_duration(struct builder *b, const struct node *n, const char *key, uint64_t min_ms,
	uint64_t max_ms, uint64_t *ret)
{
	char min[24], max[24];
	uint64_t ms;

	if (unit_duration(n->text, &ms) == 0 && ms >= min_ms && ms <= max_ms) {
		*ret = ms;
		return true;
	}
	duration_text(min_ms, min, sizeof(min));
	duration_text(max_ms, max, sizeof(max));
	fault(b, n->at, "%s must be a whole number with s, m, h or d, from %s to %s", key, min,
		max);
	return false;
}

struct words {
	const char *const *word;
};

static const char *
word_at(const void *ctx, size_t i)
{
	return ((const struct words *)ctx)->word[i];
}

bool
value_word(struct builder *b, const struct node *n, const char *key, const char *const *words,
	unsigned *ret_i)
{
	const struct words ctx = {words};
	const char *near;
	char list[120] = "";
	size_t used = 0;
	unsigned count = 0;

	for (; words[count] != NULL; count++)
		if (view_is(n->text, words[count])) {
			*ret_i = count;
			return true;
		}
	near = nearest(n->text, word_at, &ctx, count);
	for (unsigned i = 0; i < count; i++)
		if (view_eq_nocase(n->text, view_str(words[i])))
			near = words[i];
	for (unsigned i = 0; i < count && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
			i == 0                         ? ""
			: i + 1 == count && count == 2 ? " or "
			: i + 1 == count               ? " or "
						       : ", ",
			words[i]);
	if (near != NULL)
		fault(b, n->at, "%s must be %s; write %s", key, list, near);
	else
		fault(b, n->at, "%s must be %s", key, list);
	return false;
}

bool
value_bool(struct builder *b, const struct node *n, const char *key, bool *ret)
{
	int64_t unused;
	enum literal literal = literal_of(n, &unused);

	if (literal != LITERAL_TRUE && literal != LITERAL_FALSE) {
		fault(b, n->at, "%s must be true or false, without quotes", key);
		return false;
	}
	*ret = literal == LITERAL_TRUE;
	return true;
}

bool
value_text(struct builder *b, const struct node *n, const char *key, size_t max)
{
	bool ok = n->kind == NODE_SCALAR && n->text.n > 0 && n->text.n <= max && view_utf8(n->text);

	for (size_t i = 0; ok && i < n->text.n; i++)
		ok = n->text.p[i] >= 0x20 && n->text.p[i] != 0x7f;
	if (!ok)
		fault(b, n->at, "%s must be one line of 1 to %zu bytes", key, max);
	return ok;
}

bool
name_is(struct view v, bool dash)
{
	if (v.n == 0 || v.n > 63 || v.p[0] < 'a' || v.p[0] > 'z')
		return false;
	for (size_t i = 1; i < v.n; i++) {
		uint8_t c = v.p[i];
		bool alnum = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

		if (!alnum && c != '_' && !(dash && c == '-'))
			return false;
	}
	return true;
}

/* ---- statuses ---- */

void
statuses_read(struct builder *b, const struct node *list, const char *key, unsigned min,
	unsigned max, struct statuses *ret)
{
	*ret = (struct statuses){.n = 0};
	if (list == NULL)
		return;
	if (list->first == NULL)
		fault(b, list->at, "%s is empty; leave it out or name a status", key);
	node_each(n, list)
	{
		int64_t code = 0;
		size_t at = ret->n;

		if (!value_int(b, n, key, min, max, &code))
			continue;
		while (at > 0 && ret->code[at - 1] > code)
			at--;
		if (at > 0 && ret->code[at - 1] == code) {
			fault(b, n->at, "%s names %lld twice", key, (long long)code);
			continue;
		}
		if (ret->n == STATUSES_MAX) {
			fault(b, n->at, "%s names more than %d statuses", key, STATUSES_MAX);
			return;
		}
		memmove(&ret->code[at + 1], &ret->code[at], (ret->n - at) * sizeof(ret->code[0]));
		memmove(&ret->node[at + 1], &ret->node[at], (ret->n - at) * sizeof(ret->node[0]));
		ret->code[at] = (uint16_t)code;
		ret->node[at] = n;
		ret->n++;
	}
}

void
statuses_write(struct canon_writer *w, const char *key, const struct statuses *s)
{
	if (s->n == 0)
		return;
	put_key(w, key);
	canon_array_begin(w);
	for (size_t i = 0; i < s->n; i++)
		canon_int(w, s->code[i]);
	canon_array_end(w);
}

void
statuses_apart(struct builder *b, const struct statuses *ours, const char *our_name,
	const struct statuses *theirs, const char *their_name)
{
	for (size_t i = 0; i < ours->n; i++)
		for (size_t j = 0; j < theirs->n; j++)
			if (ours->code[i] == theirs->code[j])
				fault(b, ours->node[i]->at,
					"status %u stands in %s and in %s; it can mean one of them",
					ours->code[i], our_name, their_name);
}
