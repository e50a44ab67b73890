/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The read of the system of record: before a proposal is shown (VERIFY_ASK), before a read, and again right before an execution. What was
 * read, and whether the conditions of operation and grant hold over it.
 */
#pragma once

#include "broker/call.h"
#include "proto_gen.h"

struct reading {
	struct broker *b;
	const struct operation *op;
	struct request_values values; /* borrowed views */
	struct view where;            /* borrowed: the grant's conditions, NUL-terminated */
	void (*done)(struct reading *f);
	void *owner; /* borrowed */

	struct call *call; /* owned while it runs */
	/* The result. */
	enum denial denial;
	struct err why;
	struct buf read; /* owned: a canonical object, at least {} */
	uint32_t calls;
	uint64_t bytes;
};

/* f is zero but for the first five members. `done` is called once, at once where nothing has to be read. */
void reading_start(struct reading *f);
void reading_free(struct reading *f); /* what it holds, also while it runs */

/* Has every provider of the operation its secret here? -ENOENT with its name. */
int reading_secrets(const struct broker *b, const struct operation *op, struct err *err) MUST_CHECK;
