/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From jansson's values to the canonical writer; see canonical.h. Called by relay and api with bytes of strangers. The writer holds
 * the form; what it could only refuse without a place (numbers, keys, characters) is looked at here first, so that a refusal
 * names the field and a model can correct itself. Recursion is bounded by the profile's depth.
 */
#include "lib/json/canonical.h"

#include "lib/base/utf8.h"
#include "lib/canon/write.h"
#include "lib/json/fields.h"
#include "lib/json/parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { PLACE_BYTES = 96 };

/* Where in the value we are, as a person would write it: arguments.items[2].cents. A long place loses its end. */
struct place {
	char text[PLACE_BYTES];
	size_t n;
};

static int put_value(struct canon_writer *w, const json_t *value, struct place *at, unsigned depth,
	struct err *err);

static void
place_grew(struct place *at, int n)
{
	size_t room = sizeof(at->text) - at->n;

	at->n += n >= 0 && (size_t)n < room ? (size_t)n : room - 1;
}

static void
place_key(struct place *at, struct view key)
{
	place_grew(
		at, snprintf(at->text + at->n, sizeof(at->text) - at->n, ".%.*s", VIEW_ARGS(key)));
}

static void
place_index(struct place *at, size_t i)
{
	place_grew(at, snprintf(at->text + at->n, sizeof(at->text) - at->n, "[%zu]", i));
}

static void
place_cut(struct place *at, size_t n)
{
	at->n = n;
	at->text[n] = '\0';
}

static int
put_string(struct canon_writer *w, struct view all, const struct place *at, struct err *err)
{
	for (struct view v = all; v.n > 0;) {
		uint32_t point = 0;
		int n = utf8_next(v, &point);

		if (n < 0)
			return err_set(err, -EINVAL, "%s: the text is not UTF-8", at->text);
		if (utf8_noncharacter(point))
			return err_set(err, -EINVAL, "%s: U+%04X is not a character; leave it out",
				at->text, (unsigned)point);
		if (point < 0x20 && point != '\n' && point != '\t')
			return err_set(err, -EINVAL,
				"%s: the control character U+%04X is not allowed; of these only "
				"newline "
				"and tab are",
				at->text, (unsigned)point);
		v = view_skip(v, (size_t)n);
	}
	canon_text(w, all);
	return 0;
}

static int
put_integer(struct canon_writer *w, int64_t i, const struct place *at, struct err *err)
{
	if (i > CANON_INT_MAX || i < -CANON_INT_MAX)
		return err_set(err, -EINVAL,
			"%s: the number is beyond 2^53 - 1, which not every reader can hold; send "
			"a string",
			at->text);
	canon_int(w, i);
	return 0;
}

static int
put_array(struct canon_writer *w, const json_t *value, struct place *at, unsigned depth,
	struct err *err)
{
	size_t n = at->n;

	canon_array_begin(w);
	for (size_t i = 0; i < json_array_size(value); i++) {
		place_index(at, i);
		if (put_value(w, json_array_get(value, i), at, depth + 1, err) < 0)
			return err->code;
		place_cut(at, n);
	}
	canon_array_end(w);
	return 0;
}

/* An entry of an object; borrowed from it. */
struct entry {
	struct view key;
	const json_t *value;
};

static int
entry_order(const void *a, const void *b)
{
	return canon_key_compare(((const struct entry *)a)->key, ((const struct entry *)b)->key);
}

static int
entries_take(const json_t *object, const struct place *at, struct entry *ret, struct err *err)
{
	json_t *o = (json_t *)(uintptr_t)object; /* its iterator is not const; nothing is written */
	size_t i = 0;

	for (void *it = json_object_iter(o); it != NULL; it = json_object_iter_next(o, it)) {
		struct view key = view_of(json_object_iter_key(it), json_object_iter_key_len(it));

		if (!canon_key_ok(key))
			return err_set(err, -EINVAL,
				"%s: a key is not of A-Z, a-z, 0-9 and _ starting with a letter; "
				"fields "
				"have the names of the operation's parameters",
				at->text);
		ret[i++] = (struct entry){.key = key, .value = json_object_iter_value(it)};
	}
	qsort(ret, i, sizeof(*ret), entry_order);
	return 0;
}

static int
put_object(struct canon_writer *w, const json_t *value, struct place *at, unsigned depth,
	struct err *err)
{
	size_t count = json_object_size(value), n = at->n;
	auto_free struct entry *entries = calloc(count + 1, sizeof(*entries));

	if (entries == NULL)
		return err_set(err, -ENOMEM, "no memory for %zu fields", count);
	if (entries_take(value, at, entries, err) < 0)
		return err->code;
	canon_object_begin(w);
	for (size_t i = 0; i < count; i++) {
		place_key(at, entries[i].key);
		canon_key(w, entries[i].key);
		if (put_value(w, entries[i].value, at, depth + 1, err) < 0)
			return err->code;
		place_cut(at, n);
	}
	canon_object_end(w);
	return 0;
}

static int
put_value(struct canon_writer *w, const json_t *value, struct place *at, unsigned depth,
	struct err *err)
{
	bool deeper = json_is_object(value) || json_is_array(value);

	if (deeper && depth > CANON_DEPTH_MAX)
		return err_set(err, -E2BIG, "%s: more than %d objects and arrays inside each other",
			at->text, CANON_DEPTH_MAX);
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return put_object(w, value, at, depth, err);
	case JSON_ARRAY:
		return put_array(w, value, at, depth, err);
	case JSON_STRING:
		return put_string(w, field_view(value), at, err);
	case JSON_INTEGER:
		return put_integer(w, json_integer_value(value), at, err);
	case JSON_REAL:
		return err_set(err, -EINVAL,
			"%s: a number with a fraction or an exponent is not allowed; send an "
			"integer "
			"(money in its smallest unit)",
			at->text);
	case JSON_TRUE:
	case JSON_FALSE:
		canon_bool(w, json_is_true(value));
		return 0;
	case JSON_NULL:
		canon_null(w);
		return 0;
	}
	must(false);
	return -EINVAL;
}

/* A document that was given up: canon_end would insist on a whole one. */
static int
given_up(struct buf *out, size_t start, const struct err *err)
{
	out->n = start;
	return err->code;
}

int
canonical_json(const json_t *value, const char *name, struct buf *out, struct err *err)
{
	struct place at = {.n = 0};
	struct canon_writer w;
	size_t start = out->n;

	place_grew(&at, snprintf(at.text, sizeof(at.text), "%s", name));
	canon_begin(&w, out);
	if (put_value(&w, value, &at, 1, err) < 0)
		return given_up(out, start, err);
	return canon_end(&w, err);
}

int
canonical_proposal(struct view operation, const json_t *arguments, struct view note,
	struct buf *out, struct err *err)
{
	struct place at = {.text = "arguments", .n = strlen("arguments")};
	struct place beside = {.text = "note", .n = strlen("note")};
	struct canon_writer w;
	size_t start = out->n;

	canon_begin(&w, out);
	canon_object_begin(&w);
	canon_key(&w, view_str("arguments"));
	if (put_value(&w, arguments, &at, 2, err) < 0)
		return given_up(out, start, err);
	canon_key(&w, view_str("note"));
	if (put_string(&w, note, &beside, err) < 0)
		return given_up(out, start, err);
	canon_key(&w, view_str("operation"));
	canon_str(&w, operation);
	canon_object_end(&w);
	return canon_end(&w, err);
}

bool
operation_name_ok(struct view v)
{
	if (v.n == 0 || v.n > 63 || v.p[0] < 'a' || v.p[0] > 'z')
		return false;
	for (size_t i = 0; i < v.n; i++) {
		uint8_t c = v.p[i];

		if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_')
			return false;
	}
	return true;
}

struct proposal_text {
	struct field_str operation, note;
	struct field_json arguments;
};

static const struct field proposal_fields[] = {
	FIELD_STR("operation", struct proposal_text, operation, .required = true, .min = 1,
		.max = 63, .check = operation_name_ok, .check_says = OPERATION_NAME_SAYS),
	FIELD_OBJECT("arguments", struct proposal_text, arguments, .required = true),
	FIELD_STR("note", struct proposal_text, note, .max = PROPOSAL_NOTE_MAX),
};

int
canonical_proposal_parse(struct view text, struct buf *out, struct err *err)
{
	static const struct json_limits limits = {
		.max_bytes = PROPOSAL_TEXT_MAX, .max_depth = CANON_DEPTH_MAX};
	struct proposal_text t = {0};
	auto_json json_t *j = NULL;

	if (json_parse(text, &limits, &j, err) < 0 ||
		fields_read(j, "", proposal_fields, ARRAY_LEN(proposal_fields), 0, &t, err) < 0)
		return err->code;
	return canonical_proposal(t.operation.v, t.arguments.v, t.note.v, out, err);
}
