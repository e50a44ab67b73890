/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stored inputs of tasks: the files of a stranger, kept outside of any sandbox so that a fresh one can get
 * them again. The api writes the bytes to a temporary file; the engine copies them, hashing, into a file that
 * nobody else has open, and names that by its digest: what is stored can not be changed afterwards by an
 * api that was taken over. Bytes are never looked at.
 */
#pragma once

#include "engine/sandbox.h"

/* Makes inputs/; removes what was half-made and what no open task needs. The store is open. */
int inputs_open(struct engine *e, struct err *err) MUST_CHECK;

/*
 * The task was closed: the bytes of its inputs go, unless another open task stores the same. The rows
 * stay and say what there was. What cannot be removed now goes at the next start.
 */
void inputs_forget(struct engine *e, const struct id *task);

int on_input_open(struct engine *e, struct reply to, const struct msg_input_open *m,
	struct err *err) MUST_CHECK;
int on_input_close(struct engine *e, struct reply to, const struct msg_input_close *m,
	struct err *err) MUST_CHECK;
int on_input_list(struct engine *e, struct reply to, const struct msg_input_list *m,
	struct err *err) MUST_CHECK;
int on_input_delete(struct engine *e, struct reply to, const struct msg_input_delete *m,
	struct err *err) MUST_CHECK;

/* The next stored input into a sandbox that is being created: 1 one is on its way, 0 there is none left. */
int input_feed_next(struct sandbox *s, struct err *err) MUST_CHECK;

/* Uploads that take too long, or whose api is gone. */
void uploads_tick(struct engine *e, uint64_t now_ms);
void uploads_drop(struct engine *e);

/* A slice of the copy that runs; for the timer in struct engine. */
void uploads_slice(struct engine *e);
