/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs. One that runs is in memory, on the list of its sandbox; its row was committed before the relay
 * heard of it. job.c: objects, start and requests; job_end.c: why it ended, and the record.
 */
#pragma once

#include "engine/sandbox.h"

struct job {
	struct link link;
	struct sandbox *sandbox; /* borrowed: it outlives its jobs */
	struct id id;
	enum job_kind kind;
	enum job_reason reason;
	bool input;          /* the engine writes a stored input with it */
	uint8_t content[32]; /* of that input */
	bool told;           /* after a restart: the relay named it */
	bool ended;          /* JOB_ENDED came: `end` is what it said */
	bool asked;          /* USAGE was asked for the reason */
	bool uncommitted;    /* the end could not be recorded yet */
	uint64_t cells;      /* begun in it, see cell.h; not kept over a restart */
	bool cell_open;      /* the last one was begun and has not ended */
	struct msg_job_ended end;
	struct link waiters; /* of struct waiter: who gets the JOB_ROW */
};

int on_job_run(
	struct engine *e, struct reply to, const struct msg_job_run *m, struct err *err) MUST_CHECK;
int on_job_attach(struct engine *e, struct reply to, const struct msg_job_attach *m,
	struct err *err) MUST_CHECK;
int on_job_get(
	struct engine *e, struct reply to, const struct msg_job_get *m, struct err *err) MUST_CHECK;
int on_job_list(struct engine *e, struct reply to, const struct msg_job_list *m,
	struct err *err) MUST_CHECK;
int on_job_kill(struct engine *e, struct reply to, const struct msg_job_kill *m,
	struct err *err) MUST_CHECK;

/* A stored input into a sandbox that is being created: a file_write fed with the file. */
int job_feed_input(struct sandbox *s, struct view path, uint32_t mode, uint64_t size,
	const uint8_t content[static 32], int fd, struct err *err) MUST_CHECK;

int job_new(struct sandbox *s, const struct id *id, enum job_kind kind, struct job **ret,
	struct err *err) MUST_CHECK;
struct job *job_live(struct sandbox *s, const struct id *id);
void job_free(struct job *j);

/* REFUSE unless commands can begin in it now. */
int job_sandbox_ready(struct sandbox *s, struct err *err) MUST_CHECK;

/* The row, from the database. */
void job_answer(struct engine *e, const struct id *id, struct reply to);

/* ---- job_end.c ---- */

int on_job_ended(struct sandbox *s, const struct msg_job_ended *m, struct err *err) MUST_CHECK;

/* The counters that were asked for because of this job. */
void job_usage(struct job *j, const struct usage *u);

/* Records, answers and forgets it; with a record that fails it stays and is tried again. */
void job_finish(struct job *j, enum job_reason reason);

/* When the sandbox is gone: records inside the open transaction, then the answers. */
int jobs_record_lost(struct sandbox *s, struct err *err) MUST_CHECK;
void jobs_answer_lost(struct sandbox *s);

/* Why it ended, from what relay, guest and kernel say. Pure. */
enum job_reason job_reason_of(
	const struct msg_job_ended *end, const struct usage *before, const struct usage *now);
/* Must the kernel be asked? Only when it did not end with exit code 0. */
bool job_needs_usage(const struct msg_job_ended *end);
