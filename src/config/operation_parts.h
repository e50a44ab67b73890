/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of an operation's document, for operation.c. Each writes its key and its value; nothing where the part is not there. */
#pragma once

#include "config/section.h"
#include "proto_gen.h"

/* amount, approval, budgets: approval.c. approval is always written. */
void amount_write(struct builder *b, const struct section *op, struct canon_writer *w);
void approval_write(
	struct builder *b, const struct section *op, enum effect effect, struct canon_writer *w);
void budgets_write(struct builder *b, const struct section *op, struct canon_writer *w);

/* request, verify: adapter.c. */
void request_write(
	struct builder *b, const struct section *op, enum effect effect, struct canon_writer *w);
enum conditions {
	CONDITIONS_LATER, /* one that always has a form stands for them, so that the rest can be read without */
	CONDITIONS_NOW,
};
void verify_write(
	struct builder *b, const struct section *op, enum conditions which, struct canon_writer *w);

/* A condition's text, which condition_check() has taken, as CONDITION of the document: where.c. */
void condition_write(const struct section *op, struct view text, struct canon_writer *w);
