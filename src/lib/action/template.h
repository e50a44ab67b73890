/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of a request in a document: TERM and TEMPLATE. operation.c asks whether they fit the operation, request.c fills them in. Views are
 * borrowed from the document.
 */
#pragma once

#include "lib/canon/form.h"

enum { TEMPLATE_DEPTH_MAX = 8 };

enum term_kind {
	TERM_ARGUMENT,
	TERM_ARRAY,
	TERM_HOST,
	TERM_LITERAL,
	TERM_OBJECT,
	TERM_KINDS,
};

/* What the host knows and no sandbox says. */
enum host_value {
	HOST_KEY,
	HOST_TENANT,
	HOST_TASK,
	HOST_PROPOSAL,
	HOST_REFERENCE,
	HOST_VALUES,
};

struct term {
	enum term_kind kind;
	struct form_value v; /* the value of its one key */
	enum host_value host;
};

/* An object with exactly one of the five keys. */
int term_read(struct view raw, struct term *ret, struct err *err) MUST_CHECK;

/* Where a term stands decides what it may be. */
struct term_place {
	struct view parameters; /* of the operation */
	unsigned hosts;         /* 1 << HOST_... that are known there */
	bool scalar;            /* a string, integer or boolean, and no tree */
	bool always;            /* not an argument that may be absent */
};

/* Does a TERM or TEMPLATE fit. depth: from 0. */
int term_check(const struct term_place *place, struct view raw, unsigned depth,
	struct err *err) MUST_CHECK;

/* Name and value of a pair: {name, value}. */
int pair_read(struct view raw, struct form_value *ret_name, struct form_value *ret_value,
	struct err *err) MUST_CHECK;
