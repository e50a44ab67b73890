/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job: one command or file operation, from START to ENDED. PID 1 holds its pipes and a control socket to
 * its child; it never touches what the job works on.
 */
#pragma once

#include "agent.h"
#include "note.h"

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

struct outlet {
	struct watch w; /* WATCH_STDOUT or WATCH_STDERR */
	enum frame_type frame;
	uint64_t credit;
};

struct job {
	struct link link;
	struct agent *agent; /* borrowed */
	enum job_state state;
	uint32_t stream;
	struct frame_start start; /* start.path is a view of `path` */
	char *path;               /* owned, NUL-terminated */
	uint8_t *spec;            /* owned: argv, then env */
	size_t spec_n;            /* bytes that came */
	pid_t pid;                /* 0 when reaped */
	struct watch report;      /* control socket */
	struct outlet out, err;
	struct watch in; /* stdin: a pipe, or a copy of the terminal's master */
	struct buf in_pending;
	uint32_t in_taken; /* bytes taken since the relay was told */
	bool in_end;
	bool killed_by_timeout;
	bool reported;
	uint64_t deadline_ms;        /* 0 = none */
	uint64_t kill_ms;            /* a cancelled file job is killed then; 0 = none */
	uint64_t quiet_ms, drain_ms; /* when draining ends */
	struct note note;            /* how it went */
};

/* serve.c: frames. */
void job_start(struct agent *a, uint32_t stream, const struct frame_start *m);
void job_spec(struct job *j, struct view data);
void job_stdin(struct job *j, struct view data);
void job_stdin_end(struct job *j);
void job_signal(struct job *j, uint32_t signal);
void job_resize(struct job *j, uint16_t rows, uint16_t columns);
void job_credit(struct job *j, enum output output, uint32_t bytes);
struct job *job_find(const struct agent *a, uint32_t stream);

/* main.c: events, and what is due. */
void job_ready(struct job *j, struct watch *w);
void job_due(struct job *j, uint64_t now_ms);
void job_settle(struct job *j);

/* When job_due() wants to be called; UINT64_MAX = never. */
uint64_t job_next_due_ms(const struct job *j);
void job_free(struct job *j);

/* launch.c: makes the pipes and the child. 0 or a positive errno. */
int launch(struct job *j) MUST_CHECK;
