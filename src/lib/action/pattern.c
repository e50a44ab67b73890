/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns; see pattern.h. A pattern becomes a row of places; each takes one character of its class and goes on to the next place (or stays,
 * when it repeats without end), and a place that may be left out is passed over at once. No backtracking, no recursion.
 */
#include "lib/action/pattern.h"

#include "lib/base/utf8.h"

#include <errno.h>

enum { CLASSES_MAX = 48, RANGES_MAX = 160, PLACES_MAX = 512, ENDLESS = UINT16_MAX };

struct range {
	uint32_t from, to;
};

struct place {
	uint8_t class;
	bool optional, stays;
};

struct pattern {
	struct range range[RANGES_MAX];
	uint16_t first[CLASSES_MAX + 1]; /* class i has ranges first[i] .. first[i + 1] - 1 */
	struct place place[PLACES_MAX];
	size_t nranges, nclasses, nplaces;
};

static bool
special(uint32_t c)
{
	return c < 0x80 && strchr("\\[](){}?*+.^$|-", (int)c) != NULL && c != 0;
}

/* One character at the front of *in, taken off. In a class fewer need a backslash. */
static int
char_take(struct view *in, bool in_class, uint32_t *ret, struct err *err)
{
	uint32_t c = 0;
	int n = in->n == 0 ? -1 : utf8_next(*in, &c);
	bool quoted = n == 1 && c == '\\';

	if (n < 0)
		return err_set(err, -EINVAL, "the pattern ends in the middle or is not UTF-8");
	*in = view_skip(*in, (size_t)n);
	if (quoted) {
		if (in->n == 0 || !special(in->p[0]))
			return err_set(err, -EINVAL,
				"\\ in a pattern stands before a character with a special meaning "
				"only; write classes out: [0-9]");
		*ret = in->p[0];
		*in = view_skip(*in, 1);
		return 0;
	}
	if (c < 0x20 || (c >= 0x7f && c < 0xa0) || utf8_noncharacter(c))
		return err_set(err, -EINVAL, "a pattern has no control characters");
	if (in_class ? c == '[' || c == '^' || c == '-' : special(c) && c != '-')
		return err_set(err, -EINVAL,
			"\"%c\" in a pattern stands for itself only as \\%c, the pattern in '...'; "
			"there "
			"are no groups, alternatives, anchors or negations",
			(int)c, (int)c);
	*ret = c;
	return 0;
}

static int
range_add(struct pattern *p, uint32_t from, uint32_t to, struct err *err)
{
	if (from > to || (from < 0x80) != (to < 0x80))
		return err_set(err, -EINVAL,
			"a range in a pattern goes upwards and is all ASCII or has no ASCII");
	if (p->nranges == RANGES_MAX)
		return err_set(err, -EINVAL, "the pattern has too many ranges");
	p->range[p->nranges++] = (struct range){from, to};
	return 0;
}

/* Behind "[", up to "]". */
static int
class_take(struct view *in, struct pattern *p, struct err *err)
{
	size_t before = p->nranges;

	while (in->n > 0 && in->p[0] != ']') {
		uint32_t from = 0, to = 0;
		int e = char_take(in, true, &from, err);

		to = from;
		if (e == 0 && in->n > 0 && in->p[0] == '-') {
			*in = view_skip(*in, 1);
			e = char_take(in, true, &to, err);
		}
		if (e == 0)
			e = range_add(p, from, to, err);
		if (e < 0)
			return e;
	}
	if (in->n == 0 || p->nranges == before)
		return err_set(err, -EINVAL, "a class of the pattern is empty or has no \"]\"");
	*in = view_skip(*in, 1);
	return 0;
}

static int
atom_take(struct view *in, struct pattern *p, struct err *err)
{
	uint32_t c = 0;
	int e;

	if (p->nclasses == CLASSES_MAX)
		return err_set(err, -EINVAL, "the pattern is too long");
	p->first[p->nclasses] = (uint16_t)p->nranges;
	if (in->p[0] == '[') {
		*in = view_skip(*in, 1);
		e = class_take(in, p, err);
	} else {
		e = char_take(in, false, &c, err);
		if (e == 0)
			e = range_add(p, c, c, err);
	}
	p->first[++p->nclasses] = (uint16_t)p->nranges;
	return e;
}

/* Digits: at least one, at most PATTERN_REPEAT_MAX. */
static int
count_take(struct view *in, unsigned *ret)
{
	unsigned n = 0;
	size_t i = 0;

	for (; i < in->n && in->p[i] >= '0' && in->p[i] <= '9' && i < 4; i++)
		n = n * 10 + (unsigned)(in->p[i] - '0');
	if (i == 0 || i == 4 || n > PATTERN_REPEAT_MAX || (i > 1 && in->p[0] == '0'))
		return -EINVAL;
	*in = view_skip(*in, i);
	*ret = n;
	return 0;
}

static int
braces_take(struct view *in, unsigned *ret_min, unsigned *ret_max, struct err *err)
{
	int e;

	*in = view_skip(*in, 1);
	e = count_take(in, ret_min);
	*ret_max = *ret_min;
	if (e == 0 && in->n > 0 && in->p[0] == ',') {
		*in = view_skip(*in, 1);
		*ret_max = ENDLESS;
		if (in->n > 0 && in->p[0] != '}')
			e = count_take(in, ret_max);
	}
	if (e < 0 || in->n == 0 || in->p[0] != '}' || *ret_min > *ret_max || *ret_max == 0)
		return err_set(err, -EINVAL,
			"a repetition is {m}, {m,n} or {m,} with m <= n <= %d and 0 < n",
			PATTERN_REPEAT_MAX);
	*in = view_skip(*in, 1);
	return 0;
}

static int
repeat_take(struct view *in, unsigned *ret_min, unsigned *ret_max, struct err *err)
{
	uint8_t c = in->n == 0 ? 0 : in->p[0];

	*ret_min = c == '?' || c == '*' ? 0 : 1;
	*ret_max = c == '*' || c == '+' ? ENDLESS : 1;
	if (c == '{')
		return braces_take(in, ret_min, ret_max, err);
	if (c == '?' || c == '*' || c == '+')
		*in = view_skip(*in, 1);
	return 0;
}

static int
places_add(struct pattern *p, unsigned min, unsigned max, struct err *err)
{
	size_t more = max == ENDLESS ? min + 1 : max;

	if (more > PLACES_MAX - p->nplaces)
		return err_set(err, -EINVAL, "the pattern repeats too much: %d characters at most",
			PLACES_MAX);
	for (size_t i = 0; i < more; i++)
		p->place[p->nplaces++] = (struct place){
			.class = (uint8_t)(p->nclasses - 1),
			.optional = i >= min,
			.stays = i >= min && max == ENDLESS,
		};
	return 0;
}

static int
compile(struct view in, struct pattern *p, struct err *err)
{
	if (in.n == 0 || in.n > PATTERN_BYTES_MAX)
		return err_set(err, -EINVAL, "a pattern has 1 to %d bytes", PATTERN_BYTES_MAX);
	*p = (struct pattern){0};
	while (in.n > 0) {
		unsigned min = 0, max = 0;
		int e = atom_take(&in, p, err);

		if (e == 0)
			e = repeat_take(&in, &min, &max, err);
		if (e == 0)
			e = places_add(p, min, max, err);
		if (e < 0)
			return e;
	}
	return 0;
}

static bool
class_has(const struct pattern *p, unsigned class, uint32_t c)
{
	for (size_t i = p->first[class]; i < p->first[class + 1]; i++) {
		if (c >= p->range[i].from && c <= p->range[i].to)
			return true;
	}
	return false;
}

/* What may be left out is passed over. */
static void
pass(const struct pattern *p, bool *at)
{
	for (size_t i = 0; i < p->nplaces; i++) {
		if (at[i] && p->place[i].optional)
			at[i + 1] = true;
	}
}

static void
step(const struct pattern *p, uint32_t c, const bool *at, bool *next)
{
	memset(next, 0, (p->nplaces + 1) * sizeof(*next));
	for (size_t i = 0; i < p->nplaces; i++) {
		if (at[i] && class_has(p, p->place[i].class, c))
			next[p->place[i].stays ? i : i + 1] = true;
	}
	pass(p, next);
}

int
pattern_check(struct view pattern, struct err *err)
{
	struct pattern p;

	return compile(pattern, &p, err);
}

int
pattern_match(struct view pattern, struct view text, struct err *err)
{
	bool at[2][PLACES_MAX + 1] = {{true}};
	unsigned now = 0;
	struct pattern p;
	int e = compile(pattern, &p, err);

	if (e < 0)
		return e;
	if (text.n > PATTERN_TEXT_MAX)
		return 0;
	pass(&p, at[now]);
	while (text.n > 0) {
		uint32_t c = 0;
		int n = utf8_next(text, &c);

		if (n < 0)
			return 0;
		step(&p, c, at[now], at[!now]);
		now = !now;
		text = view_skip(text, (size_t)n);
	}
	return at[now][p.nplaces];
}
