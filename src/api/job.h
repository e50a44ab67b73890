/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One job as a caller sees it: the question to the engine (JOB_RUN or JOB_ATTACH) and the session with the relay
 * that carries its bytes. Ends by exactly one of done() and refused(); then only job_free() is left to do. Freeing a job
 * closes the session and leaves the job running; job_cancel() ends it.
 *
 * The bytes come from a hostile guest by way of the relay: offsets and gaps are taken as they come, so whoever
 * collects them bounds them.
 */
#pragma once

#include "api.h"
#include "ask.h"

struct job;

struct job_ops {
	void (*opened)(struct job *job); /* or NULL */
	void (*out)(struct job *job, enum output output, uint64_t offset,
		struct view data);                                                    /* or NULL */
	void (*gap)(struct job *job, enum output output, uint64_t from, uint64_t to); /* or NULL */
	void (*entry)(struct job *job, const struct msg_out_entry *entry);            /* or NULL */
	void (*drained)(struct job *job);                                             /* or NULL */
	void (*done)(struct job *job,
		const struct msg_job_row *row); /* it ended and all output has come */
	void (*refused)(struct job *job, const struct answer *answer);
};

struct job {
	struct api *api; /* borrowed */
	const struct job_ops *ops;
	void *owner; /* borrowed */
	struct link asks;
	struct link orphans;   /* questions that nobody waits for */
	struct ipc_peer *peer; /* owned; NULL before JOB_OPENED and after the session */
	struct caller caller;
	struct id sandbox, id; /* id: after opened */
	bool opened;
	bool revoked;   /* its caller is not valid any more: it is killed all the same */
	bool doomed;    /* nobody waits for it; it is to be killed as soon as it is known */
	bool out_ended; /* all output has come, or none will */
	bool out_cut;   /* the session broke before its end */
	bool row_known;
	struct msg_job_row row; /* its views point into `texts` */
	struct buf texts;
};

/* Sends the question; ops and owner as above. The job is the caller's, to be freed. */
int job_run(struct api *api, const struct msg_job_run *m, const struct job_ops *ops, void *owner,
	struct job **ret, struct err *err) MUST_CHECK;
int job_attach(struct api *api, const struct msg_job_attach *m, const struct job_ops *ops,
	void *owner, struct job **ret, struct err *err) MUST_CHECK;
void job_free(struct job *job);

/* As job_free, and the job itself is killed with all its descendants, as soon as its number is known. */
void job_kill_free(struct job *job);

/* As job_kill_free, for a caller whose token was found revoked or expired. */
void job_revoked_free(struct job *job);

/* For a job that was opened and runs. */
void job_signal(struct job *job, uint32_t signal);

/* Its stdin; bytes given before it was opened or after its session are lost, which the caller prevents. */
void job_send(struct job *job, struct view data);
void job_send_end(struct job *job);
void job_resize(struct job *job, uint16_t rows, uint16_t columns);
size_t job_backlog(const struct job *job); /* bytes that the relay has not taken */

/* Stops and resumes the output: back-pressure on the relay. */
void job_pause(struct job *job, bool paused);
