/* SPDX-License-Identifier: Apache-2.0 */
/* The form of the tables that generate.py makes of body.def; for body.c and the generated file alone. */
#pragma once

#include "body_gen.h"

/* Fields that lib/json/fields has no type for. */
enum extra_kind { EXTRA_SECONDS, EXTRA_IGNORED, EXTRA_LATER, EXTRA_OBJECT };

struct extra {
	enum extra_kind kind;
	const char *name;
	size_t at;           /* SECONDS, OBJECT: offset of the member that is filled */
	int64_t max;         /* SECONDS */
	const char *note;    /* SECONDS: what a refusal says behind the range; or NULL */
	const char *prose;   /* LATER: the sentence */
	enum body_name body; /* OBJECT: its table */
};

struct body_table {
	const struct field *rows;
	size_t nrows;
	const struct extra *extras;
	size_t nextras;
	const char *const *names; /* of all that may be sent with an effect, for sentences */
	size_t nnames;
	size_t bytes; /* of the struct */
};

extern const struct body_table body_tables[BODY_MAX];
