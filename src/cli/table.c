/* SPDX-License-Identifier: Apache-2.0 */
/* Tables; see table.h. */
#include "cli/table.h"

#include "cli/safe.h"
#include "cli/units.h"

#include <errno.h>
#include <stdarg.h>

struct cell {
	size_t at, n, width;
	enum tone tone;
};

enum { FIELD_WIDTH = 14, LINE_BYTES = 8192 };

static const char *const tones[] = {[TONE_PLAIN] = "",
	[TONE_GOOD] = "\033[32m",
	[TONE_BAD] = "\033[31m",
	[TONE_QUIET] = "\033[2m"};

bool
table_colours(FILE *out)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return (no == NULL || no[0] == '\0') && term != NULL && strcmp(term, "dumb") != 0 &&
	       isatty(fileno(out)) == 1;
}

void
table_init(struct table *t, const struct table_column *column, size_t columns)
{
	must(columns <= TABLE_COLUMNS_MAX);
	*t = (struct table){.column = column, .columns = columns};
	buf_init(&t->text, TABLE_TEXT_BYTES);
	buf_init(&t->cells, TABLE_TEXT_BYTES);
}

void
table_done(struct table *t)
{
	buf_done(&t->text);
	buf_done(&t->cells);
}

void
table_tone(struct table *t, enum tone tone, struct view v)
{
	struct cell c = {.at = t->text.n, .tone = tone};

	safe_add(&t->text, v, t->column[t->next].max);
	c.n = t->text.n - c.at;
	c.width = safe_width(view_of(t->text.p + c.at, c.n));
	buf_add(&t->cells, &c, sizeof(c));
	t->next = (t->next + 1) % t->columns;
}

void
table_cell(struct table *t, struct view v)
{
	table_tone(t, TONE_PLAIN, v);
}

void
table_cellf(struct table *t, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	table_cell(t, view_str(text));
}

void
table_bytes(struct table *t, int64_t bytes)
{
	char text[UNITS_TEXT];

	units_bytes_text(bytes, text);
	table_cell(t, view_str(text));
}

void
table_duration(struct table *t, int64_t us)
{
	char text[UNITS_TEXT];

	units_duration_text(us, text);
	table_cell(t, view_str(text));
}

static struct cell
cell_at(const struct table *t, size_t i)
{
	struct cell c;

	memcpy(&c, t->cells.p + i * sizeof(c), sizeof(c));
	return c;
}

static void
print_cell(const struct table *t, size_t column, struct view v, size_t width, size_t column_width,
	const char *tone, FILE *out)
{
	int pad = (int)(column_width - width);
	bool last = column + 1 == t->columns;

	if (t->column[column].right)
		(void)fprintf(out, "%*s", pad, "");
	(void)fputs(v.n > 0 ? tone : "", out);
	(void)fwrite(v.p, 1, v.n, out);
	if (tone[0] != '\0' && v.n > 0)
		(void)fputs("\033[0m", out);
	if (!t->column[column].right && !last)
		(void)fprintf(out, "%*s", pad, "");
	(void)fputs(last ? "\n" : "  ", out);
}

int
table_print(const struct table *t, FILE *out, struct err *err)
{
	size_t n = t->cells.n / sizeof(struct cell), widths[TABLE_COLUMNS_MAX];
	bool colours = table_colours(out);

	must(t->next == 0);
	if (buf_check(&t->text) < 0 || buf_check(&t->cells) < 0)
		return err_set(err, -ENOMEM, "the table is too large; use --json");
	for (size_t i = 0; i < t->columns; i++)
		widths[i] = strlen(t->column[i].head);
	for (size_t i = 0; i < n; i++) {
		struct cell c = cell_at(t, i);

		if (c.width > widths[i % t->columns])
			widths[i % t->columns] = c.width;
	}
	for (size_t i = 0; i < t->columns; i++) {
		struct view head = view_str(t->column[i].head);

		print_cell(t, i, head, head.n, widths[i], colours ? "\033[1m" : "", out);
	}
	for (size_t i = 0; i < n; i++) {
		struct cell c = cell_at(t, i);

		print_cell(t, i % t->columns, view_of(t->text.p + c.at, c.n), c.width,
			widths[i % t->columns], colours ? tones[c.tone] : "", out);
	}
	return 0;
}

void
field_line(FILE *out, const char *name, struct view v)
{
	auto_buf struct buf safe;

	buf_init(&safe, LINE_BYTES);
	safe_add(&safe, v, LINE_BYTES / 8);
	(void)fprintf(out, "%-*s ", FIELD_WIDTH, name);
	(void)fwrite(safe.p, 1, safe.n, out);
	(void)fputc('\n', out);
}

void
field_linef(FILE *out, const char *name, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	field_line(out, name, view_str(text));
}
