/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table-driven reading; see fields.h. Everything is checked before the first member of
 * the struct is written. Names and keys of a stranger are quoted in sentences cut short;
 * err_set makes them printable.
 */
#include "lib/json/fields.h"

#include "lib/base/buf.h"

#include <errno.h>
#include <stdio.h>

enum { NAME_SHOWN = 40, WHERE_BYTES = 120, NAMES_MAX = 64, KNOWN_BYTES = 96 };

/* One thing to check, and what it is called in a sentence. */
struct subject {
	const struct field *row;
	char where[WHERE_BYTES];
};

static void
subject_name(struct subject *s, const char *path, const struct field *row)
{
	s->row = row;
	(void)snprintf(s->where, sizeof(s->where), "%.60s%.50s", path, row->name);
}

/* A row that cannot be meant so is a bug of ours. */
static void
row_is_sound(const struct field *f)
{
	bool many = f->type == FIELD_TYPE_STR_MAP || f->type == FIELD_TYPE_STR_LIST;
	bool strings = f->type == FIELD_TYPE_STR || many;

	must(f->min <= f->max && (!strings || (f->min >= 0 && f->max > 0)));
	must(f->type != FIELD_TYPE_INT || f->min != 0 || f->max != 0);
	must(f->min_entries <= f->max_entries && many == (f->max_entries > 0));
	must((f->type == FIELD_TYPE_STR_MAP) == (f->max_key_bytes > 0));
	must((f->check == NULL) == (f->check_says == NULL));
	must((f->key_check == NULL) == (f->key_says == NULL));
}

/* What the field must be, as the end of a sentence. */
static void
expectation(const struct field *f, char *ret, size_t n)
{
	long long min = f->min, max = f->max;

	switch (f->type) {
	case FIELD_TYPE_STR:
		(void)snprintf(ret, n, "a string of %lld to %lld bytes", min, max);
		break;
	case FIELD_TYPE_INT:
		(void)snprintf(ret, n, "a whole number from %lld to %lld%s%s", min, max,
			f->note == NULL ? "" : "; ", f->note == NULL ? "" : f->note);
		break;
	case FIELD_TYPE_BOOL:
		(void)snprintf(ret, n, "true or false");
		break;
	case FIELD_TYPE_STR_MAP:
		(void)snprintf(
			ret, n, "an object of %zu to %zu strings", f->min_entries, f->max_entries);
		break;
	case FIELD_TYPE_STR_LIST:
		(void)snprintf(
			ret, n, "an array of %zu to %zu strings", f->min_entries, f->max_entries);
		break;
	case FIELD_TYPE_OBJECT:
		(void)snprintf(ret, n, "an object");
		break;
	}
}

static int
must_be(const struct subject *s, struct err *err)
{
	char what[160];

	expectation(s->row, what, sizeof(what));
	return err_set(err, -EINVAL, "%s must be %s", s->where, what);
}

static int
check_string(const struct subject *s, const json_t *j, struct err *err)
{
	const struct field *f = s->row;
	struct view v;

	if (!json_is_string(j))
		return err_set(err, -EINVAL, "%s must be a string of %lld to %lld bytes", s->where,
			(long long)f->min, (long long)f->max);
	v = field_view(j);
	if ((uint64_t)v.n < (uint64_t)f->min || (uint64_t)v.n > (uint64_t)f->max)
		return err_set(err, -EINVAL, "%s must be a string of %lld to %lld bytes, not %zu",
			s->where, (long long)f->min, (long long)f->max, v.n);
	if (!f->nul_ok && view_has(v, 0))
		return err_set(err, -EINVAL, "%s must not contain NUL", s->where);
	if (f->check != NULL && !f->check(v))
		return err_set(err, -EINVAL, "%s must be %s", s->where, f->check_says);
	return 0;
}

static int
check_integer(const struct subject *s, const json_t *j, struct err *err)
{
	if (json_is_integer(j) && json_integer_value(j) >= s->row->min &&
		json_integer_value(j) <= s->row->max)
		return 0;
	(void)must_be(s, err);
	if (json_is_real(j))
		return err_set(err, -EINVAL,
			"%s must be a whole number from %lld to %lld, "
			"written without a point or exponent",
			s->where, (long long)s->row->min, (long long)s->row->max);
	return err->code;
}

static int
check_key(const struct subject *s, struct view key, struct err *err)
{
	const struct field *f = s->row;

	if (key.n == 0 || key.n > f->max_key_bytes)
		return err_set(err, -EINVAL, "%s must have keys of 1 to %zu bytes, not %zu",
			s->where, f->max_key_bytes, key.n);
	if (f->key_check != NULL && !f->key_check(key))
		return err_set(err, -EINVAL, "%s has the key \"%.*s\", which must be %s", s->where,
			key.n > NAME_SHOWN ? NAME_SHOWN : (int)key.n, (const char *)key.p,
			f->key_says);
	return 0;
}

static int
check_map(const struct subject *s, json_t *j, struct err *err)
{
	if (!json_is_object(j) || json_object_size(j) < s->row->min_entries ||
		json_object_size(j) > s->row->max_entries)
		return must_be(s, err);
	for (void *i = json_object_iter(j); i != NULL; i = json_object_iter_next(j, i)) {
		struct subject inner = {.row = s->row};
		struct view key = view_of(json_object_iter_key(i), json_object_iter_key_len(i));

		(void)snprintf(inner.where, sizeof(inner.where), "%.70s.%.*s", s->where,
			key.n > NAME_SHOWN ? NAME_SHOWN : (int)key.n, (const char *)key.p);
		if (check_key(s, key, err) < 0 ||
			check_string(&inner, json_object_iter_value(i), err) < 0)
			return err->code;
	}
	return 0;
}

static int
check_list(const struct subject *s, const json_t *j, struct err *err)
{
	if (!json_is_array(j) || json_array_size(j) < s->row->min_entries ||
		json_array_size(j) > s->row->max_entries)
		return must_be(s, err);
	for (size_t i = 0; i < json_array_size(j); i++) {
		struct subject inner = {.row = s->row};

		(void)snprintf(inner.where, sizeof(inner.where), "%.90s[%zu]", s->where, i);
		if (check_string(&inner, json_array_get(j, i), err) < 0)
			return err->code;
	}
	return 0;
}

static int
check_value(const struct subject *s, json_t *j, struct err *err)
{
	switch (s->row->type) {
	case FIELD_TYPE_STR:
		return check_string(s, j, err);
	case FIELD_TYPE_INT:
		return check_integer(s, j, err);
	case FIELD_TYPE_BOOL:
		return json_is_boolean(j) ? 0 : must_be(s, err);
	case FIELD_TYPE_STR_MAP:
		return check_map(s, j, err);
	case FIELD_TYPE_STR_LIST:
		return check_list(s, j, err);
	case FIELD_TYPE_OBJECT:
		return json_is_object(j) ? 0 : must_be(s, err);
	}
	must(false);
}

static int
check_row(const json_t *json, const char *path, const struct field *row, struct err *err)
{
	json_t *j = json_object_get(json, row->name);
	struct subject s;
	char what[160];

	row_is_sound(row);
	subject_name(&s, path, row);
	expectation(row, what, sizeof(what));
	if (j == NULL && row->required)
		return err_set(err, -EINVAL, "%s is missing; give %s", s.where, what);
	if (j == NULL || (json_is_null(j) && row->nullable))
		return 0;
	if (json_is_null(j))
		return err_set(err, -EINVAL, "%s must not be null; give %s%s", s.where, what,
			row->required ? "" : " or leave it out");
	return check_value(&s, j, err);
}

/* The names that may be in an object: a list of them, or those of rows. */
struct names {
	const char *const *list; /* NULL: those of rows */
	const struct field *rows;
	size_t n;
};

static const char *
name_at(const struct names *names, size_t i)
{
	must(names->list != NULL || names->rows != NULL);
	return names->list != NULL ? names->list[i] : names->rows[i].name;
}

/* How many bytes must be put in, taken out or changed to make b of a; both are cut at NAME_SHOWN. */
static size_t
edits(struct view a, struct view b)
{
	size_t row[NAME_SHOWN + 1];

	a.n = a.n > NAME_SHOWN ? NAME_SHOWN : a.n;
	b.n = b.n > NAME_SHOWN ? NAME_SHOWN : b.n;
	for (size_t j = 0; j <= b.n; j++)
		row[j] = j;
	for (size_t i = 0; i < a.n; i++) {
		size_t corner = row[0];

		row[0] = i + 1;
		for (size_t j = 0; j < b.n; j++) {
			size_t changed = corner + (a.p[i] != b.p[j]);
			size_t shorter = row[j] < row[j + 1] ? row[j] : row[j + 1];

			corner = row[j + 1];
			row[j + 1] = changed < shorter + 1 ? changed : shorter + 1;
		}
	}
	return row[b.n];
}

/* The names, the closest to key first, as far as a sentence has room. */
static void
known_text(const struct names *names, struct view key, char ret[static KNOWN_BYTES])
{
	bool told[NAMES_MAX] = {false};
	size_t at = 0;

	must(names->n <= NAMES_MAX);
	ret[0] = '\0';
	for (size_t left = names->n; left > 0; left--) {
		size_t best = names->n, least = SIZE_MAX;
		const char *name;

		for (size_t i = 0; i < names->n; i++) {
			size_t far = edits(key, view_str(name_at(names, i)));

			if (!told[i] && far < least) {
				best = i;
				least = far;
			}
		}
		told[best] = true;
		name = name_at(names, best);
		/* Room for this one and, if it is not the last, for ", ...". */
		if (at + 2 + strlen(name) + (left > 1 ? 5 : 0) >= KNOWN_BYTES) {
			(void)snprintf(ret + at, KNOWN_BYTES - at, "%s...", at == 0 ? "" : ", ");
			return;
		}
		at += (size_t)snprintf(
			ret + at, KNOWN_BYTES - at, "%s%s", at == 0 ? "" : ", ", name);
	}
}

static int
unknown_refused(struct view key, const char *path, const struct names *names, struct err *err)
{
	char known[KNOWN_BYTES];

	known_text(names, key, known);
	return err_set(err, -EINVAL, "%.60s%.*s is not known here; leave it out (known: %s)", path,
		key.n > NAME_SHOWN ? NAME_SHOWN : (int)key.n, (const char *)key.p, known);
}

static int
check_unknown(json_t *json, const char *path, const struct names *names, struct err *err)
{
	for (void *i = json_object_iter(json); i != NULL; i = json_object_iter_next(json, i)) {
		struct view key = view_of(json_object_iter_key(i), json_object_iter_key_len(i));
		bool known = false;

		for (size_t r = 0; r < names->n && !known; r++)
			known = view_is(key, name_at(names, r));
		if (!known)
			return unknown_refused(key, path, names, err);
	}
	return 0;
}

/* Every struct field_* begins with its state. */
_Static_assert(offsetof(struct field_str, state) == 0, "state comes first");
_Static_assert(offsetof(struct field_int, state) == 0, "state comes first");
_Static_assert(offsetof(struct field_bool, state) == 0, "state comes first");
_Static_assert(offsetof(struct field_json, state) == 0, "state comes first");

static void
store(const json_t *j, const struct field *row, void *object)
{
	void *at = (char *)object + row->at;

	*(enum field_state *)at = j == NULL         ? FIELD_ABSENT
				  : json_is_null(j) ? FIELD_NULL
						    : FIELD_SET;
	if (j == NULL || json_is_null(j))
		return;
	switch (row->type) {
	case FIELD_TYPE_STR:
		((struct field_str *)at)->v = field_view(j);
		break;
	case FIELD_TYPE_INT:
		((struct field_int *)at)->v = json_integer_value(j);
		break;
	case FIELD_TYPE_BOOL:
		((struct field_bool *)at)->v = json_is_true(j);
		break;
	case FIELD_TYPE_STR_MAP:
	case FIELD_TYPE_STR_LIST:
	case FIELD_TYPE_OBJECT:
		((struct field_json *)at)->v = j;
		break;
	}
}

int
fields_known(
	const json_t *json, const char *path, const char *const *names, size_t n, struct err *err)
{
	const struct names list = {.list = names, .n = n};

	/* jansson iterates over non-const objects only; nothing is changed. */
	return check_unknown((json_t *)(uintptr_t)json, path, &list, err);
}

int
fields_read(const json_t *json, const char *path, const struct field *rows, size_t n,
	unsigned flags, void *object, struct err *err)
{
	const struct names names = {.rows = rows, .n = n};
	int shown = (int)strnlen(path, 60); /* without the dot of "files[2]." */

	if (!json_is_object(json))
		return err_set(err, -EINVAL, "%.*s must be a JSON object",
			shown == 0 ? 8 : shown - (path[shown - 1] == '.'),
			shown == 0 ? "the body" : path);
	/* jansson iterates over non-const objects only; nothing is changed. */
	if ((flags & FIELDS_IGNORE_UNKNOWN) == 0 &&
		check_unknown((json_t *)(uintptr_t)json, path, &names, err) < 0)
		return err->code;
	for (size_t i = 0; i < n; i++)
		if (check_row(json, path, &rows[i], err) < 0)
			return err->code;
	for (size_t i = 0; i < n; i++)
		store(json_object_get(json, rows[i].name), &rows[i], object);
	return 0;
}
