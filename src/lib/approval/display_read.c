/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text to record; see display.h. It is lenient on its own (lines in any order, any escape): whoever calls it writes the record out again and
 * compares, so only what display_write makes is ever taken.
 */
#include "lib/approval/display_part.h"
#include "lib/approval/split.h"
#include "lib/canon/write.h"

#include <errno.h>

/* What the lines said, each value as canonical bytes. */
struct reading {
	struct buf value[DISPLAY_LINES];
	bool seen[DISPLAY_LINES];
};

static void
reading_done(struct reading *r)
{
	for (unsigned i = 0; i < DISPLAY_LINES; i++)
		buf_done(&r->value[i]);
}
#define auto_reading __attribute__((cleanup(reading_done)))

static int
read_text(struct view text, struct buf *out)
{
	auto_buf struct buf plain;
	struct canon_writer w;
	struct err err;

	buf_init(&plain, PROPOSAL_RECORD_MAX);
	if (display_unescape(text, false, &plain) < 0)
		return -EINVAL;
	canon_begin(&w, out);
	canon_text(&w, buf_view(&plain));
	return canon_end(&w, &err);
}

/* "... (123)": what stands between the last brackets; false: nothing does. */
static bool
take_brackets(struct view *text, struct view *ret)
{
	size_t i = text->n;

	if (i == 0 || text->p[i - 1] != ')')
		return false;
	while (i >= 2 && !(text->p[i - 2] == ' ' && text->p[i - 1] == '('))
		i--;
	if (i < 2)
		return false;
	*ret = view_of(text->p + i, text->n - 1 - i);
	*text = view_of(text->p, i - 2);
	return true;
}

/* One member onto an object that is being collected: {"a":1 without its end. */
static void
add_member(struct buf *object, struct view name, struct view value, const char *quote)
{
	buf_add_byte(object, object->n == 0 ? '{' : ',');
	buf_addf(object, "\"%.*s\":%s", VIEW_ARGS(name), quote);
	buf_add_view(object, value);
	buf_add_str(object, quote);
}

static int
read_argument(struct reading *r, struct view name, struct view text)
{
	auto_buf struct buf value;
	struct view origin = view_of(NULL, 0), from = view_of(NULL, 0);

	(void)take_brackets(&text, &origin);
	buf_init(&value, PROPOSAL_RECORD_MAX);
	if (display_unescape(text, true, &value) < 0)
		return -EINVAL;
	add_member(&r->value[DISPLAY_ARGUMENTS], name, buf_view(&value), "");
	if (view_starts(origin, "from ")) {
		origin = view_skip(origin, strlen("from "));
		if (!take_until(&origin, ',', &from))
			return -EINVAL;
		add_member(&r->value[DISPLAY_PROVENANCE], name, from, "\"");
		origin = origin.p == NULL ? origin : view_skip(origin, 1);
	}
	if (view_is(origin, "default")) {
		struct buf *list = &r->value[DISPLAY_DEFAULTED];

		buf_addf(list, "%s\"%.*s\"", list->n == 0 ? "[" : ",", VIEW_ARGS(name));
	}
	return 0;
}

static int
read_fact(struct reading *r, struct view name, struct view text)
{
	auto_buf struct buf value, key;
	struct view mark;

	buf_init(&value, PROPOSAL_RECORD_MAX);
	buf_init(&key, PROPOSAL_RECORD_MAX);
	for (size_t i = 0; i < name.n; i++)
		buf_add(&key, name.p[i] == '.' ? (const uint8_t *)"__" : name.p + i,
			name.p[i] == '.' ? 2 : 1);
	if (!take_brackets(&text, &mark) || display_unescape(text, true, &value) < 0 ||
		buf_check(&key) < 0)
		return -EINVAL;
	add_member(&r->value[DISPLAY_FACTS], buf_view(&key), buf_view(&value), "");
	return 0;
}

static int
read_value(enum display_form form, struct view text, struct buf *out)
{
	struct view number;

	switch (form) {
	case FORM_WORD:
	case FORM_TEXT:
		return read_text(text, out);
	case FORM_JSON:
		return display_unescape(text, true, out);
	case FORM_MOMENT:
		if (!take_brackets(&text, &number))
			return -EINVAL;
		buf_add_view(out, number);
		return buf_check(out);
	case FORM_SPAN:
	case FORM_INTEGER:
		if (!take_until(&text, ' ', &number))
			return -EINVAL;
		buf_add_view(out, number);
		return buf_check(out);
	case FORM_ARGUMENTS:
	case FORM_FACTS:
	case FORM_PART:
		return -EINVAL;
	}
	return -EINVAL;
}

static int
read_line(struct reading *r, struct view label, struct view text)
{
	for (unsigned i = 0; i < DISPLAY_LINES; i++) {
		const struct display_row *row = &display_rows[i];
		size_t n = strlen(row->label);

		if (row->form == FORM_ARGUMENTS && view_starts(label, row->label))
			return read_argument(r, view_skip(label, n), text);
		if (row->form == FORM_FACTS && view_starts(label, row->label))
			return read_fact(r, view_skip(label, n), text);
		if (n == 0 || !view_is(label, row->label))
			continue;
		if (r->seen[i])
			return -EINVAL;
		r->seen[i] = true;
		return read_value(row->form, text, &r->value[i]);
	}
	return view_is(label, "amount") ? 0 : -EINVAL;
}

/* Objects and lists of the arguments get their ends; those without a member are empty. */
static void
finish(struct reading *r)
{
	static const struct {
		enum display_line line;
		const char *empty, *end;
	} open[] = {
		{DISPLAY_ARGUMENTS, "{}", "}"},
		{DISPLAY_FACTS, "{}", "}"},
		{DISPLAY_PROVENANCE, "{}", "}"},
		{DISPLAY_DEFAULTED, "[]", "]"},
	};

	for (size_t i = 0; i < ARRAY_LEN(open); i++) {
		struct buf *b = &r->value[open[i].line];

		buf_add_str(b, b->n == 0 ? open[i].empty : open[i].end);
	}
}

static int
read_lines(struct reading *r, struct view text, struct err *err)
{
	for (size_t number = 1; text.n != 0; number++) {
		struct view line, label;

		if (!take_until(&text, '\n', &line) || text.p == NULL ||
			!take_until(&line, ':', &label) || line.n == 0 || line.p[0] != ' ' ||
			read_line(r, label, view_skip(line, 1)) < 0)
			return err_set(err, -EINVAL, "line %zu is none of a display", number);
	}
	return 0;
}

/* The next row by its key behind `after`, in the order of the canonical form; NULL: that was the last. */
static const struct display_row *
next_row(const char *after)
{
	const struct display_row *next = NULL;

	for (unsigned i = 0; i < DISPLAY_LINES; i++) {
		const struct display_row *row = &display_rows[i];

		if (strcmp(row->key, after) > 0 &&
			(next == NULL || strcmp(row->key, next->key) < 0))
			next = row;
	}
	return next;
}

/* Keys with a dot are members of an object; the dot comes before all letters, so these stand together. */
void
display_compose(const struct display_values *v, struct buf *out)
{
	const struct display_row *row = NULL;
	const char *dot, *in = "";

	buf_add_byte(out, '{');
	while ((row = next_row(row == NULL ? "" : row->key)) != NULL) {
		dot = strchr(row->key, '.');
		if (dot == NULL && in[0] != '\0')
			buf_add_byte(out, '}');
		if (out->n > 1 && out->p[out->n - 1] != '{')
			buf_add_byte(out, ',');
		if (dot != NULL && in[0] == '\0')
			buf_addf(out, "\"%.*s\":{", (int)(dot - row->key), row->key);
		in = dot != NULL ? row->key : "";
		buf_addf(out, "\"%s\":", dot != NULL ? dot + 1 : row->key);
		buf_add_view(out, v->v[row - display_rows]);
	}
	buf_add_byte(out, '}');
}

int
display_read(struct view text, struct buf *out, struct err *err)
{
	auto_reading struct reading r = {0};
	struct display_values v;
	int e;

	for (unsigned i = 0; i < DISPLAY_LINES; i++)
		buf_init(&r.value[i], PROPOSAL_RECORD_MAX);
	e = read_lines(&r, text, err);
	if (e < 0)
		return e;
	finish(&r);
	for (unsigned i = 0; i < DISPLAY_LINES; i++) {
		if (buf_check(&r.value[i]) < 0 || r.value[i].n == 0)
			return err_set(err, -EINVAL, "the line \"%s\" is missing or too long",
				display_rows[i].label);
		v.v[i] = buf_view(&r.value[i]);
	}
	display_compose(&v, out);
	return 0;
}
