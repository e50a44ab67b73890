/* SPDX-License-Identifier: Apache-2.0 */
/* Record to text; see display.h. The record is taken apart by the table alone, so nothing in it is known by two names. */
#include "lib/approval/display_part.h"
#include "lib/base/clock.h"
#include "lib/base/hex.h"
#include "lib/canon/read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define PREFIX "request."

const struct display_row display_rows[DISPLAY_LINES] = {
#define LINE(id, label, key, form) [DISPLAY_##id] = {label, key, FORM_##form},
#include "lib/approval/display.def"
#undef LINE
};

/* Reads over a value and tells its bytes. */
static int
take_value(struct canon_reader *r, struct view *ret, struct err *err)
{
	size_t at = r->at;

	if (canon_skip(r, err) < 0)
		return err->code;
	*ret = view_of(r->in.p + at, r->at - at);
	return 0;
}

static int
take_key(struct canon_reader *r, struct view key, const char *prefix, struct display_values *v,
	struct err *err)
{
	size_t n = strlen(prefix);

	for (unsigned i = 0; i < DISPLAY_LINES; i++)
		if (view_starts(view_str(display_rows[i].key), prefix) &&
			view_is(key, display_rows[i].key + n))
			return take_value(r, &v->v[i], err);
	return err_set(err, -EINVAL, "the record has a field \"%.*s\" that cannot be shown",
		(int)(key.n < 64 ? key.n : 64), (const char *)key.p);
}

/* The members of an object whose begin comes next. */
static int
take_members(struct canon_reader *r, const char *prefix, struct display_values *v, struct err *err)
{
	struct canon_token t, begin;
	int e = canon_want(r, CANON_OBJECT_BEGIN, &begin, err);

	while (e == 0 && (e = canon_next(r, &t, err)) == 0 && t.type == CANON_KEY) {
		if (prefix[0] == '\0' && view_is(t.raw, "request"))
			e = take_members(r, PREFIX, v, err); /* once: there it has a prefix */
		else
			e = take_key(r, t.raw, prefix, v, err);
	}
	return e;
}

int
display_take_apart(struct view record, struct display_values *ret, struct err *err)
{
	struct display_values v = {0};
	struct canon_reader r;
	struct canon_token t;
	int e;

	canon_reader_init(&r, record, true);
	e = take_members(&r, "", &v, err);
	if (e == 0)
		e = canon_want(&r, CANON_END, &t, err);
	for (unsigned i = 0; e == 0 && i < DISPLAY_LINES; i++)
		if (v.v[i].n == 0)
			e = err_set(err, -EINVAL, "the record has no field \"%s\"",
				display_rows[i].key);
	if (e == 0)
		*ret = v;
	return e;
}

/* One value of a known type out of its bytes. */
static int
value_of(struct view bytes, enum canon_type type, struct canon_token *ret, struct err *err)
{
	struct canon_reader r;

	canon_reader_init(&r, bytes, true);
	return canon_want(&r, type, ret, err);
}

static int
write_text(struct view bytes, bool wide, struct buf *out, struct err *err)
{
	auto_buf struct buf text = {.max = PROPOSAL_RECORD_MAX};
	struct canon_token t;

	if (value_of(bytes, CANON_STR, &t, err) < 0)
		return err->code;
	canon_token_text(&t, &text);
	display_escape_as(buf_view(&text), wide, false, out);
	return buf_check(&text) < 0 ? err_set(err, -ENOMEM, "no memory for a text") : 0;
}

static int
write_number(struct view bytes, enum display_form form, struct buf *out, struct err *err)
{
	char text[CLOCK_TEXT];
	struct canon_token t;

	if (value_of(bytes, CANON_INT, &t, err) < 0)
		return err->code;
	if (form == FORM_MOMENT) {
		if (t.i < 0 || (uint64_t)t.i > CLOCK_MS_MAX)
			return err_set(err, -EINVAL, "a time beyond the year 9999");
		clock_text((uint64_t)t.i, text);
		buf_addf(out, "%s (%" PRId64 ")", text, t.i);
	} else {
		buf_addf(out, "%" PRId64 "%s", t.i, form == FORM_SPAN ? " ms" : "");
	}
	return 0;
}

/* A string of the array is this name. */
static bool
array_has(struct view array, struct view name)
{
	struct canon_reader r;
	struct canon_token t;
	struct err err;

	canon_reader_init(&r, array, true);
	while (canon_next(&r, &t, &err) == 0 && t.type != CANON_END)
		if (t.type == CANON_STR && !t.escaped && view_eq(t.raw, name))
			return true;
	return false;
}

/* The string that an object has under this key, as it stands; empty: none. */
static struct view
member_of(struct view object, struct view name)
{
	struct canon_reader r;
	struct canon_token t;
	struct view none = view_of(NULL, 0);
	struct err err;

	canon_reader_init(&r, object, true);
	if (canon_want(&r, CANON_OBJECT_BEGIN, &t, &err) < 0)
		return none;
	while (canon_next(&r, &t, &err) == 0 && t.type == CANON_KEY) {
		bool same = view_eq(t.raw, name);

		if (!same && canon_skip(&r, &err) == 0)
			continue;
		return same && canon_want(&r, CANON_STR, &t, &err) == 0 ? t.raw : none;
	}
	return none;
}

static bool
label_ok(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if ((v.p[i] < 'a' || v.p[i] > 'z') && v.p[i] != '_')
			return false;
	return v.n != 0 && v.n <= 32;
}

/* " (from sandbox, default)" */
static void
write_origin(const struct display_values *v, struct view name, struct buf *out)
{
	bool defaulted = array_has(v->v[DISPLAY_DEFAULTED], name);
	struct view from = member_of(v->v[DISPLAY_PROVENANCE], name);

	if (label_ok(from))
		buf_addf(out, " (from %.*s%s)", VIEW_ARGS(from), defaulted ? ", default" : "");
	else if (defaulted)
		buf_add_str(out, " (default)");
}

/* Names of facts have "__" where the system of record has a dot. */
static void
write_name(struct view name, bool dots, struct buf *out)
{
	for (size_t i = 0; i < name.n; i++) {
		bool two = dots && name.p[i] == '_' && i + 1 < name.n && name.p[i + 1] == '_';

		buf_add_byte(out, two ? '.' : name.p[i]);
		i += two;
	}
}

static int
write_members(
	const struct display_values *v, enum display_line line, struct buf *out, struct err *err)
{
	bool facts = display_rows[line].form == FORM_FACTS;
	struct canon_reader r;
	struct canon_token t;
	struct view value;
	int e;

	canon_reader_init(&r, v->v[line], true);
	e = canon_want(&r, CANON_OBJECT_BEGIN, &t, err);
	while (e == 0 && (e = canon_next(&r, &t, err)) == 0 && t.type == CANON_KEY) {
		e = take_value(&r, &value, err);
		if (e < 0)
			return e;
		buf_add_str(out, display_rows[line].label);
		write_name(t.raw, facts, out);
		buf_add_str(out, ": ");
		display_escape_as(value, true, true, out);
		if (facts)
			buf_add_str(out, " (verified)");
		else
			write_origin(v, t.raw, out);
		buf_add_byte(out, '\n');
	}
	return e;
}

/* "amount: 42.00 EUR (4200)" */
static int
write_amount(const struct display_values *v, const struct operation *op, struct buf *out,
	struct err *err)
{
	struct canon_reader r;
	struct canon_token t = {0};
	uint64_t unit = 1, minor;

	if (!op->has_amount)
		return 0;
	canon_reader_init(&r, v->v[DISPLAY_ARGUMENTS], true);
	if (canon_want(&r, CANON_OBJECT_BEGIN, &t, err) < 0)
		return err->code;
	while (canon_next(&r, &t, err) == 0 && t.type == CANON_KEY &&
		!view_eq(t.raw, op->amount_argument))
		if (canon_skip(&r, err) < 0)
			return err->code;
	if (t.type != CANON_KEY || canon_want(&r, CANON_INT, &t, err) < 0)
		return err_set(err, -EINVAL, "the arguments have no amount");
	for (uint32_t i = 0; i < op->exponent && i < 3; i++)
		unit *= 10;
	minor = (uint64_t)(t.i < 0 ? -t.i : t.i);
	buf_addf(out, "amount: %s%" PRIu64, t.i < 0 ? "-" : "", minor / unit);
	if (unit > 1)
		buf_addf(out, ".%0*" PRIu64, (int)op->exponent, minor % unit);
	buf_add_byte(out, ' ');
	display_escape_as(op->currency, false, false, out);
	buf_addf(out, " (%" PRId64 ")\n", t.i);
	return 0;
}

static int
write_line(const struct display_values *v, enum display_line i, struct buf *out, struct err *err)
{
	const struct display_row *row = &display_rows[i];
	int e = 0;

	if (row->form == FORM_PART)
		return 0;
	if (row->form == FORM_ARGUMENTS || row->form == FORM_FACTS)
		return write_members(v, i, out, err);
	buf_addf(out, "%s: ", row->label);
	if (row->form == FORM_WORD || row->form == FORM_TEXT)
		e = write_text(v->v[i], row->form == FORM_TEXT, out, err);
	else if (row->form == FORM_JSON)
		display_escape_as(v->v[i], false, true, out);
	else
		e = write_number(v->v[i], row->form, out, err);
	buf_add_byte(out, '\n');
	return e;
}

/* The operation must be the one whose schema the record names. */
static int
check_operation(const struct display_values *v, const struct operation *op, struct err *err)
{
	char hex[SHA256_TEXT + 1];
	struct canon_token name, schema;

	if (value_of(v->v[DISPLAY_ACTION], CANON_STR, &name, err) < 0 ||
		value_of(v->v[DISPLAY_SCHEMA], CANON_STR, &schema, err) < 0)
		return err->code;
	hex_encode(op->schema, SHA256_BYTES, hex);
	if (!view_eq(name.raw, op->name) || !view_is(schema.raw, hex))
		return err_set(err, -EINVAL,
			"the operation is not the one that this proposal was made with");
	return 0;
}

int
display_write(struct view record, const struct operation *op, struct buf *out, struct err *err)
{
	struct display_values v;
	int e = display_take_apart(record, &v, err);

	if (e == 0)
		e = check_operation(&v, op, err);
	for (unsigned i = 0; e == 0 && i < DISPLAY_LINES; i++) {
		e = write_line(&v, (enum display_line)i, out, err);
		if (e == 0 && i == DISPLAY_ACTION)
			e = write_amount(&v, op, out, err);
	}
	if (e == 0 && buf_check(out) < 0)
		e = err_set(err, -E2BIG, "the record is too large to be shown");
	return e;
}
