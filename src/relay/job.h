/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job in the relay: what the engine asked for, what was seen of it, and who reads it. Kept after its end
 * until it is recorded and old (limits.def), so that a caller can attach again.
 *
 * Credit is the back-pressure: a lossless stream is given CHANNEL_CREDIT beyond what its session has taken,
 * every other one beyond what was seen.
 */
#pragma once

#include "relay.h"

#include "lib/base/sha256.h"

enum job_state {
#define STATE(name) JOB_##name,
#define EVENT(name)
#define STEP(state, event, next)
#include "job.fsm"
#undef STATE
#undef EVENT
#undef STEP
	JOB_STATE_MAX
};

struct stream {
	struct store store;
	enum output output;
	uint64_t spent; /* credit that the agent used: bytes, or bodies of ENTRY */
	uint64_t given; /* credit it got, in all */
	uint64_t sent;  /* offset up to which the session has it; of a listing: bodies it has */
};

struct input {
	bool wanted;     /* the job reads stdin */
	bool end;        /* nothing follows */
	bool end_sent;   /* the agent knows */
	int feed;        /* owned: a file, or -1 */
	struct buf wait; /* from the session, for want of credit */
	uint64_t credit;
	uint64_t bytes; /* sent to the agent */
};

struct job {
	struct link link;
	struct relay *relay; /* borrowed */
	enum job_state state;
	struct id id;
	uint32_t stream;
	enum job_kind kind;
	bool live, pty;
	bool attached; /* a session was there */
	struct stream out, err;
	struct buf entries; /* of a listing: u16 length and body of each ENTRY not yet sent */
	size_t entries_at;
	bool stat_done;
	struct input in;
	struct sha256 hash; /* of content or the stdin of a command, when `hashed` */
	bool hashed;
	ev_timer deadline;
	uint64_t started_us, ended_ms;
	uint64_t timeout_ms;
	bool timed_out, cancelled;
	struct ipc_peer *session; /* NULL when nobody is attached */
	bool end_told;            /* OUT_END was sent to it */
	struct msg_job_ended end;
};

/* serve.c: the engine. Negative: the engine broke the protocol. */
int job_start(struct relay *r, const struct msg_job_start *m, struct err *err) MUST_CHECK;
int job_feed(struct job *j, int fd, struct err *err) MUST_CHECK;
void job_signal(struct job *j, uint32_t signal);
void job_recorded(struct job *j);
void job_tell_end(const struct job *j);
struct job *job_find(const struct relay *r, const struct id *id);
struct job *job_find_stream(const struct relay *r, uint32_t stream);

/* guest.c: the agent. Negative: the agent broke the protocol. */
int job_output(struct job *j, enum output output, struct view data, struct err *err) MUST_CHECK;
int job_entry(
	struct job *j, struct view body, const struct frame_entry *m, struct err *err) MUST_CHECK;
int job_take_credit(struct job *j, const struct frame_credit *m, struct err *err) MUST_CHECK;
int job_ended(struct job *j, const struct frame_ended *m, struct err *err) MUST_CHECK;

/* Ends it with all its descendants: timeout, cancellation, a file job whose caller went. */
void job_stop(struct job *j);
bool job_runs(const struct job *j);
bool job_lists(const struct job *j);

/* Whether the agent waits for the session rather than have bytes dropped. */
bool job_lossless(const struct job *j);

/* Moves what can be moved, both ways, and gives credit; flushes the channel. */
void job_pump(struct job *j);

/* Forgets recorded jobs that are too old or too many. */
void jobs_sweep(struct relay *r);

/* After a pause: jobs that were ending have their grace anew. */
void jobs_thaw(struct relay *r);
bool jobs_forget_oldest(void *relay);

/* input.c */
void input_pump(struct job *j);

/* session.c */
void session_attach(struct job *j, int fd, uint64_t stdout_from, uint64_t stderr_from);
void session_pump(struct job *j);
void session_close(struct job *j);
