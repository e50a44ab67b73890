/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions over what was asked for and what the system of record says: "order.tenant == @tenant". The operation's come with its
 * document, a grant's as text. A condition about a fact or an argument that is not there does not hold.
 *
 * Text: LEFT OP RIGHT. LEFT: a fact (dotted), or a parameter of the operation. OP: == != <= >= < > or `in`. RIGHT: @tenant, @task, an integer, a word or
 * "quoted text" (a literal; a parameter when one has that name and it is not quoted), [a, b] after `in`. A single "=" is read as "==".
 */
#pragma once

#include "lib/action/operation.h"

enum { CONDITION_BYTES_MAX = 256, CONDITIONS_MAX = 16 };

struct condition_world {
	const struct operation *op;
	struct view arguments; /* canonical object, of schema_apply */
	struct view facts;     /* canonical object of facts; empty = none were read */
	struct view tenant;
	struct view task; /* tk_... */
};

/* Does the text make sense for this operation: -EINVAL with what to write. */
int condition_check(const struct operation *op, struct view text, struct err *err) MUST_CHECK;

/* 0: all conditions of the operation hold. -EPERM: one does not, the sentence tells it with the values of both sides. */
int conditions_hold(const struct condition_world *w, struct err *err) MUST_CHECK;

/* The same for the conditions of a grant, NUL-terminated texts. */
int conditions_hold_text(
	const struct condition_world *w, struct view where, struct err *err) MUST_CHECK;

/* Does a condition of the operation compare this argument with a fact by ==: once it held, the argument is what the system of record says. */
bool condition_verifies(const struct operation *op, struct view argument);

/*
 * Which condition such a sentence is about, without what the system of record says: "order.tenant == @tenant does not hold". Empty when it is
 * another sentence.
 */
struct view condition_failed(struct view sentence);
