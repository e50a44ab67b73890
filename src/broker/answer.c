/* SPDX-License-Identifier: Apache-2.0 */
/* See answer.h. */
#include "broker/answer.h"

#include "broker/limits.h"

#include "lib/base/num.h"
#include "lib/base/utf8.h"
#include "lib/canon/read.h"
#include "lib/canon/write.h"
#include "lib/json/parse.h"

#include <errno.h>
#include <inttypes.h>

enum { FIELDS_MAX = 64, NAME_ROOM = 128 };

int
answer_parse(struct view body, json_t **ret, struct err *err)
{
	const struct json_limits limits = {
		.max_bytes = body.n, .max_depth = (unsigned)LIMIT_JSON_DEPTH};

	return json_parse(body, &limits, ret, err);
}

const json_t *
answer_at(const json_t *root, struct view path)
{
	const json_t *j = root;

	while (j != NULL && path.n != 0) {
		const uint8_t *dot = memchr(path.p, '.', path.n);
		struct view step = view_of(path.p, dot == NULL ? path.n : (size_t)(dot - path.p));
		uint64_t index;

		path = view_skip(path, step.n + 1);
		if (json_is_object(j)) {
			char name[NAME_ROOM];

			if (step.n >= sizeof(name))
				return NULL;
			memcpy(name, step.p, step.n);
			name[step.n] = '\0';
			j = json_object_get(j, name);
		} else if (json_is_array(j) && num_u64(step, 1000000, &index) == 0) {
			j = json_array_get(j, (size_t)index);
		} else {
			return NULL;
		}
	}
	return j;
}

/* Looked at where it stands: it may be a credential, of which no copy is made. */
static bool
string_ok(struct view s)
{
	if (s.n > LIMIT_STRING_BYTES)
		return false;
	while (s.n != 0) {
		uint32_t point = 0;
		int n = utf8_next(s, &point);

		if (n < 0 || point < 0x20 || utf8_noncharacter(point))
			return false;
		s = view_skip(s, (size_t)n);
	}
	return true;
}

static bool
keeps(const json_t *v)
{
	if (json_is_string(v))
		return string_ok(view_of(json_string_value(v), json_string_length(v)));
	if (json_is_integer(v))
		return json_integer_value(v) <= CANON_INT_MAX &&
		       json_integer_value(v) >= -CANON_INT_MAX;
	return json_is_boolean(v);
}

struct kept {
	char name[NAME_ROOM];
	const json_t *value;
};

static int
kept_compare(const void *a, const void *b)
{
	return strcmp(((const struct kept *)a)->name, ((const struct kept *)b)->name);
}

/* Dots are no part of a canonical key. */
static bool
name_put(struct view name, char ret[static NAME_ROOM])
{
	size_t n = 0;

	for (size_t i = 0; i < name.n; i++) {
		if (n + 3 > NAME_ROOM)
			return false;
		if (name.p[i] == '.') {
			ret[n++] = '_';
			ret[n++] = '_';
		} else {
			ret[n++] = (char)name.p[i];
		}
	}
	ret[n] = '\0';
	return canon_key_ok(view_of(ret, n));
}

static void
value_put(struct canon_writer *w, const json_t *v, const struct answer_judge *judge, bool *redacted)
{
	char digits[24];
	struct view text;

	if (json_is_boolean(v)) {
		canon_bool(w, json_is_true(v));
		return;
	}
	if (json_is_string(v)) {
		text = view_of(json_string_value(v), json_string_length(v));
	} else {
		(void)snprintf(digits, sizeof(digits), "%" PRId64, (int64_t)json_integer_value(v));
		text = view_str(digits);
	}
	if (judge->leaks(judge->owner, text)) {
		canon_str(w, view_str(ANSWER_REDACTED));
		*redacted = true;
	} else if (json_is_string(v)) {
		canon_str(w, text);
	} else {
		canon_int(w, (int64_t)json_integer_value(v));
	}
}

int
answer_keep(const json_t *root, const struct answer_field *fields, size_t n,
	const struct answer_judge *judge, size_t max, struct buf *out, bool *ret_redacted,
	struct err *err)
{
	auto_free struct kept *kept = calloc(FIELDS_MAX, sizeof(*kept));
	auto_buf struct buf one = {.max = max};
	struct canon_writer w;
	size_t nkept = 0;
	bool redacted = false;

	if (kept == NULL)
		return err_set(err, -ENOMEM, "no memory for an answer");
	for (size_t i = 0; i < n && nkept < FIELDS_MAX; i++) {
		const json_t *v = answer_at(root, fields[i].field);

		if (v == NULL || !keeps(v) || !name_put(fields[i].name, kept[nkept].name))
			continue;
		kept[nkept++].value = v;
	}
	qsort(kept, nkept, sizeof(*kept), kept_compare);
	canon_begin(&w, &one);
	canon_object_begin(&w);
	for (size_t i = 0; i < nkept; i++) {
		if (i > 0 && strcmp(kept[i].name, kept[i - 1].name) == 0)
			continue;
		canon_key(&w, view_str(kept[i].name));
		value_put(&w, kept[i].value, judge, &redacted);
	}
	canon_object_end(&w);
	if (canon_end(&w, err) < 0)
		return err_set(err, -E2BIG,
			"what would be kept of the answer is larger than %zu bytes", max);
	buf_add_view(out, buf_view(&one));
	if (buf_check(out) < 0)
		return err_set(err, -ENOMEM, "no memory for an answer");
	*ret_redacted = redacted;
	return 0;
}

bool
answer_same(const json_t *value, struct view canonical)
{
	auto_buf struct buf text = {.max = 262144};
	struct canon_reader r;
	struct canon_token t;
	struct err err;

	canon_reader_init(&r, canonical, true);
	if (canon_next(&r, &t, &err) < 0)
		return false;
	if (json_is_boolean(value))
		return t.type == CANON_BOOL && t.b == json_is_true(value);
	if (json_is_integer(value))
		return t.type == CANON_INT && t.i == json_integer_value(value);
	if (!json_is_string(value) || t.type != CANON_STR)
		return false;
	canon_token_text(&t, &text);
	return buf_check(&text) == 0 &&
	       view_eq(buf_view(&text),
		       view_of(json_string_value(value), json_string_length(value)));
}
