/* SPDX-License-Identifier: Apache-2.0 */
/* Inside lib/approval: the table of lines, and the three pieces of a display: escapes, record to text, text to record. */
#pragma once

#include "lib/approval/display.h"

#include "lib/action/record.h"

enum display_form {
	FORM_WORD,
	FORM_TEXT,
	FORM_INTEGER,
	FORM_MOMENT,
	FORM_SPAN,
	FORM_JSON,
	FORM_ARGUMENTS,
	FORM_FACTS,
	FORM_PART,
};

enum display_line {
#define LINE(id, label, key, form) DISPLAY_##id,
#include "lib/approval/display.def"
#undef LINE
	DISPLAY_LINES
};

struct display_row {
	const char *label, *key;
	enum display_form form;
};
extern const struct display_row display_rows[DISPLAY_LINES];

/* The canonical bytes of each key's value, quotes and brackets too. */
struct display_values {
	struct view v[DISPLAY_LINES];
};

/* `wide`: letters that are not ASCII may stand as themselves. `json`: the text is canonical JSON, whose own backslashes stay. */
void display_escape_as(struct view text, bool wide, bool json, struct buf *out);
/* The way back; -EINVAL for an escape that is none. */
int display_unescape(struct view text, bool json, struct buf *out) MUST_CHECK;

int display_take_apart(struct view record, struct display_values *ret, struct err *err) MUST_CHECK;
void display_compose(const struct display_values *v, struct buf *out);

int display_write(struct view record, const struct operation *op, struct buf *out,
	struct err *err) MUST_CHECK;
int display_read(struct view text, struct buf *out, struct err *err) MUST_CHECK;
