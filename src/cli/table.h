/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables for people: aligned columns, a head line in bold on a terminal (never with NO_COLOR). Cells may be
 * of a stranger; they are made terminal-safe here. Nothing is printed before table_print.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <stdio.h>

enum { TABLE_COLUMNS_MAX = 12, TABLE_TEXT_BYTES = 64 << 20 };

enum tone {
	TONE_PLAIN,
	TONE_GOOD,
	TONE_BAD,
	TONE_QUIET,
};

struct table_column {
	const char *head;
	bool right; /* numbers */
	size_t max; /* columns of the screen for a cell; 0: no limit */
};

struct table {
	const struct table_column *column; /* borrowed */
	size_t columns;
	struct buf text;  /* all cells, safe, one behind the other */
	struct buf cells; /* struct cell */
	size_t next;      /* the column of the next cell */
};

void table_init(struct table *t, const struct table_column *column, size_t columns);
void table_done(struct table *t);

static inline void
table_cleanup(struct table *t)
{
	table_done(t);
}
#define auto_table __attribute__((cleanup(table_cleanup)))

/* Cells from left to right; a row is full after as many as there are columns. */
void table_cell(struct table *t, struct view v);
void table_tone(struct table *t, enum tone tone, struct view v);
void table_cellf(struct table *t, const char *fmt, ...) PRINTF(2, 3);
void table_bytes(struct table *t, int64_t bytes);
void table_duration(struct table *t, int64_t us);

/* 0, or -ENOMEM when the table became too large to be shown. */
int table_print(const struct table *t, FILE *out, struct err *err) MUST_CHECK;

/* "name   value" lines; the value is safe text. */
void field_line(FILE *out, const char *name, struct view v);
void field_linef(FILE *out, const char *name, const char *fmt, ...) PRINTF(3, 4);

/* Whether `out` is a terminal that may get colours. */
bool table_colours(FILE *out);
