/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of a fixed form in canonical bytes: a table of keys in ascending order, each there once or, when optional, not at all, no
 * other. Readers of operations, records and
 * policies are made of it. Values are borrowed from the bytes.
 */
#pragma once

#include "lib/canon/read.h"

enum form_type {
	FORM_STR,  /* a string without escapes: `text` is what it says */
	FORM_TEXT, /* any string: form_text() says what it says */
	FORM_INT,
	FORM_BOOL,
	FORM_OBJECT,
	FORM_ARRAY,
	FORM_NULL, /* only read, never wanted */
	FORM_ANY,
};

struct form_row {
	const char *key;
	enum form_type type;
	bool optional;
};

struct form_value {
	bool there;
	enum form_type type; /* FORM_TEXT for every string */
	bool escaped, controls;
	struct view raw;  /* the value's canonical bytes */
	struct view text; /* strings: between the quotes */
	int64_t i;
	bool b;
};

/* The whole of `object`; ret[i] belongs to rows[i]. -EINVAL with "what: ...". */
int form_read(struct view object, const char *what, const struct form_row *rows, size_t n,
	struct form_value *ret, struct err *err) MUST_CHECK;

/* The next value of a reader, in an array or behind a key. */
int form_value_read(struct canon_reader *r, struct form_value *ret, struct err *err) MUST_CHECK;

/* The value of a key: 1, 0 when it is not there, or negative. */
int form_find(
	struct view object, struct view key, struct form_value *ret, struct err *err) MUST_CHECK;

/* Entries of an array: 1 with the entry, 0 at the end (and of the document), or negative. */
struct form_list {
	struct canon_reader r;
};
int form_list_begin(struct form_list *l, struct view array, struct err *err) MUST_CHECK;
int form_list_next(struct form_list *l, struct form_value *ret, struct err *err) MUST_CHECK;

/* Appends a string's text without its escapes. */
void form_text(const struct form_value *v, struct buf *out);

/* An integer within bounds, else -EINVAL. */
int form_int(const struct form_value *v, const char *what, int64_t min, int64_t max, int64_t *ret,
	struct err *err) MUST_CHECK;

/* [a-z][a-z0-9_]{0,62}: operations, parameters, what is kept of an answer. */
bool form_name_ok(struct view v);

/* "data.0.id", a field of JSON: 1 to 16 names of [A-Za-z0-9_-], at most 128 bytes. */
bool form_field_ok(struct view v);
