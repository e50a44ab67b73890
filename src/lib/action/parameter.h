/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One parameter of an operation, as its document says it, and values against it. For schema.c, for the readers of operations, and for who shows
 * an operation. Views are borrowed from the document. A default is for parameters of the first level only, so that the record's
 * `defaulted` can name each one.
 */
#pragma once

#include "lib/canon/form.h"

enum {
	PARAMETERS_MAX = 32,     /* of one object */
	PARAMETER_DEPTH_MAX = 4, /* arrays and objects inside each other */
	PARAMETER_TEXT_MAX = 16384,
	PARAMETER_ENTRIES_MAX = 256,
	PARAMETER_VALUES_MAX = 64,
};

enum parameter_type {
	PARAMETER_STRING,
	PARAMETER_INTEGER,
	PARAMETER_BOOLEAN,
	PARAMETER_ENUM,
	PARAMETER_ARRAY,
	PARAMETER_OBJECT,
	PARAMETER_SCRIPT,
	PARAMETER_TYPES,
};

struct parameter {
	enum parameter_type type;
	struct view name; /* empty: what an array has */
	bool optional, identifier, multiline;
	struct view fallback; /* canonical value; empty = no default */
	int64_t min, max;
	struct view fields;        /* object: canonical array of parameters */
	struct view items;         /* array: canonical object */
	struct view values;        /* enum: canonical array of strings */
	struct form_value pattern; /* not there = none */
};

const char *parameter_type_text(enum parameter_type t);

/* One PARAMETER of the document, with all that is in it. depth: of this one, from 0. */
int parameter_read(
	struct view raw, unsigned depth, struct parameter *ret, struct err *err) MUST_CHECK;

/* All of an array: read, sorted, each name once. */
int parameters_check(struct view array, unsigned depth, struct err *err) MUST_CHECK;

/* The parameter of this name: 1, 0 when there is none, or negative. */
int parameter_find(
	struct view array, struct view name, struct parameter *ret, struct err *err) MUST_CHECK;

/* A value against its parameter: -EINVAL with what it must be. */
int parameter_value(
	const struct parameter *p, const struct form_value *v, struct err *err) MUST_CHECK;
