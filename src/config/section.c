/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings against keys.def and policy_keys.def; see section.h. */
#include "config/section.h"

#include <stdarg.h>
#include <stdio.h>

enum kind { ONE, MANY, LINES, MAP, ANY };
enum need { OPTIONAL, NEEDED };

static const struct key {
	enum section_id section;
	const char *name;
	enum kind kind;
	enum need need;
} keys[KEYS] = {
#define SECTION(id, what, where)
#define KEY(section, id, name, kind, need, prose) \
	[KEY_##section##_##id] = {SECTION_##section, name, kind, need},
#include "config/keys.def"
#include "config/policy_keys.def"
#undef SECTION
#undef KEY
};

static const struct {
	const char *what, *where;
} sections[SECTIONS] = {
#define SECTION(id, what, where) [SECTION_##id] = {what, where},
#define KEY(section, id, name, kind, need, prose)
#include "config/keys.def"
#include "config/policy_keys.def"
#undef SECTION
#undef KEY
};

const char *
section_what(enum section_id id)
{
	return sections[id].what;
}

void
fault(struct builder *b, struct place at, const char *fmt, ...)
{
	struct err err = {0};
	char text[sizeof(err.text)];
	va_list ap;

	b->faults++;
	if (b->faults > OPERATIONS_FAULTS_MAX)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)err_set(&err, -1, "%s", text); /* printable, whole characters */
	b->sink->on_fault(b->sink->ctx, b->file, at, err.text);
}

/* ---- the nearest name ---- */

/* Edits (one character put in, taken out, changed, or two exchanged) between short words; at most `DISTANCE_MAX`. */
enum { WORD_MAX = 63, DISTANCE_MAX = 3 };

static unsigned
least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static unsigned
distance(struct view a, struct view b)
{
	unsigned row[3][WORD_MAX + 1];

	if (a.n > WORD_MAX || b.n > WORD_MAX)
		return DISTANCE_MAX;
	for (size_t j = 0; j <= b.n; j++)
		row[0][j] = (unsigned)j;
	for (size_t i = 1; i <= a.n; i++) {
		unsigned *now = row[i % 3], *above = row[(i + 2) % 3], *before = row[(i + 1) % 3];

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= b.n; j++) {
			unsigned change = above[j - 1] + (a.p[i - 1] == b.p[j - 1] ? 0U : 1U);

			now[j] = least(change, least(above[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1])
				now[j] = least(now[j], before[j - 2] + 1);
		}
	}
	return row[a.n % 3][b.n];
}

const char *
nearest(struct view word, const char *(*name)(const void *ctx, size_t i), const void *ctx, size_t n)
{
	unsigned best = word.n < 4 ? 2 : DISTANCE_MAX;
	const char *found = NULL;

	for (size_t i = 0; i < n; i++) {
		const char *candidate = name(ctx, i);
		unsigned d = candidate == NULL ? DISTANCE_MAX : distance(word, view_str(candidate));

		if (d < best) {
			best = d;
			found = candidate;
		}
	}
	return found;
}

/* ---- mappings ---- */

static const char *
key_name(const void *ctx, size_t i)
{
	return keys[i].section == *(const enum section_id *)ctx ? keys[i].name : NULL;
}

/* Whether a key of the one could stand in a file with the other. */
static bool
same_file(enum section_id a, enum section_id b)
{
	return (a < SECTION_POLICY) == (b < SECTION_POLICY);
}

static void
unknown_key(struct builder *b, enum section_id id, const struct node *n)
{
	const char *near = nearest(n->key, key_name, &id, KEYS);
	char list[120] = "";
	size_t used = 0;

	if (near != NULL) {
		fault(b, n->key_at, "%s has no \"%.*s\"; write %s", sections[id].what,
			VIEW_ARGS(n->key), near);
		return;
	}
	for (size_t i = 0; i < KEYS; i++)
		if (keys[i].section != id && view_is(n->key, keys[i].name) && id != SECTION_FILE &&
			same_file(keys[i].section, id)) {
			fault(b, n->key_at, "%s has no \"%s\"; it stands %s", sections[id].what,
				keys[i].name, sections[keys[i].section].where);
			return;
		}
	for (size_t i = 0; i < KEYS && used < sizeof(list); i++)
		if (keys[i].section == id)
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
				used == 0 ? "" : ", ", keys[i].name);
	fault(b, n->key_at, "%s has no \"%.*s\"; it has %s", sections[id].what,
		n->key.n > 40 ? 40 : (int)n->key.n, (const char *)n->key.p, list);
}

static bool
kind_ok(enum kind kind, const struct node *n)
{
	switch (kind) {
	case ONE:
		return n->kind == NODE_SCALAR;
	case MANY:
	case LINES:
		return n->kind == NODE_SEQUENCE;
	case MAP:
		return n->kind == NODE_MAPPING;
	case ANY:
		return true;
	}
	must(false);
}

static const char *
kind_text(enum kind kind)
{
	switch (kind) {
	case ONE:
		return "one value";
	case MANY:
		return "a list, such as [a, b]";
	case LINES:
		return "a list: entries that begin with `- ` below it";
	case MAP:
		return "a mapping: lines of `name: value` below it";
	case ANY:
		return "anything";
	}
	must(false);
}

/* An empty value of a key is a mapping without lines, or a value that somebody forgot. */
static void
take_key(struct builder *b, size_t i, const struct node *n, struct section *ret)
{
	if (!kind_ok(keys[i].kind, n))
		fault(b, n->at, "%s must be %s", keys[i].name, kind_text(keys[i].kind));
	else
		ret->at[i] = n;
}

bool
section_read(struct builder *b, enum section_id id, const struct node *n, struct section *ret)
{
	bool seen[KEYS] = {false};

	*ret = (struct section){.id = id, .node = n};
	if (n->kind != NODE_MAPPING) {
		fault(b, n->at, "%s is a mapping: lines of `name: value` below it",
			sections[id].what);
		return false;
	}
	node_each(child, n)
	{
		size_t i = 0;

		while (i < KEYS && (keys[i].section != id || !view_is(child->key, keys[i].name)))
			i++;
		if (i == KEYS) {
			unknown_key(b, id, child);
		} else {
			seen[i] = true;
			take_key(b, i, child, ret);
		}
	}
	for (size_t i = 0; i < KEYS; i++)
		if (keys[i].section == id && keys[i].need == NEEDED && !seen[i])
			fault(b, n->key.n > 0 ? n->key_at : n->at, "%s needs %s", sections[id].what,
				keys[i].name);
	return true;
}
