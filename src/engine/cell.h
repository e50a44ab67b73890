/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells: code that the api sends to an interpreter which it holds open in a job. A cell goes over the session, past
 * the engine, so its two records repeat the words of the api (`source`: `api`); that its job runs, whose it is and when it was
 * told are the engine's own knowledge. A cell that is open when its job ends gets its end from that (`source`: `engine`).
 * At most one per job is open: an interpreter runs one at a time.
 */
#pragma once

#include "engine/job.h"

int on_cell_begin(struct engine *e, struct reply to, const struct msg_cell_begin *m,
	struct err *err) MUST_CHECK;
int on_cell_end(struct engine *e, struct reply to, const struct msg_cell_end *m,
	struct err *err) MUST_CHECK;

/* The job ends with its cell open, for j->reason: inside the transaction that records the job's end. */
int cell_record_lost(const struct job *j, struct err *err) MUST_CHECK;
