/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox without the supervisor: the real agent as PID 1 of new pid and mount namespaces (hidepid /proc,
 * tmpfs on /tmp, its own devpts, read-only root, the four capabilities), the real relay beside it, and this
 * process in the place of engine, supervisor and api, on real sockets. Needs root.
 */
#pragma once

#include "lib/base/sha256.h"
#include "lib/ipc/datagram.h"

#include <sys/types.h>

enum { ENTRIES_MAX = 8, GAPS_MAX = 16 };

struct world {
	pid_t agent, relay; /* 0 = ended and reaped */
	int engine, supervisor;
	int channel; /* our own end when there is no agent, or no relay: a hostile test plays it; else -1 */
	unsigned next_job;
	char cgroup[64]; /* pids limit; "" = none */
	struct msg_relay_lost lost;
	unsigned lost_count;
};

struct world_options {
	bool no_agent;     /* the channel's other end is world.channel */
	bool no_relay;     /* likewise, to the agent */
	bool places;       /* /run belongs to the user of the sandbox, as places do */
	const char *roots; /* the image's: /usr/share/demilune/roots.crt; NULL = it has none */
	unsigned pids;     /* limit of processes; 0 = none */
	const char *exe;   /* in the agent's place; NULL = the agent */
};

struct entry {
	char name[256];
	enum file_kind kind;
	uint32_t mode;
	uint64_t size_bytes;
	int64_t mtime;
};

struct gap {
	enum output output;
	uint64_t from, to;
};

/* What a session and the engine saw of one job. */
struct result {
	struct id job;
	struct buf out, err;
	uint64_t out_at, err_at; /* offset behind the last byte or gap */
	struct entry entries[ENTRIES_MAX];
	size_t nentries; /* all, also those above ENTRIES_MAX */
	struct gap gaps[GAPS_MAX];
	size_t ngaps;
	bool out_end, closed, ended;
	struct msg_job_ended end;
	int session; /* -1 when closed */
};

void world_start(struct world *w, const struct world_options *o);
void world_stop(struct world *w);

/* With agent ready; waits for RELAY_READY. */
void world_open(struct world *w);

void result_init(struct result *r);
void result_done(struct result *r);

/* A JOB_START with the usual values; args is NULL-terminated, env is PATH. */
struct msg_job_start start_argv(struct world *w, struct buf *room, const char *const *args);
struct msg_job_start start_shell(struct world *w, struct buf *room, const char *command);
struct msg_job_start start_file(struct world *w, enum job_kind kind, const char *path);

void world_send(struct world *w, enum msg_type type, struct view body, int fd);
void session_send(struct result *r, enum msg_type type, struct view body);

/* JOB_START, and JOB_SESSION when attach. */
void world_begin(struct world *w, const struct msg_job_start *m, bool attach, struct result *r);
void world_attach(struct world *w, struct result *r, uint64_t stdout_from, uint64_t stderr_from);

/* Takes what comes until done(r) or the time is over; says whether done. */
bool world_until(
	struct world *w, struct result *r, bool (*done)(const struct result *), unsigned ms);
bool is_complete(const struct result *r); /* JOB_ENDED, and session ended if there was one */
bool is_ended(const struct result *r);    /* JOB_ENDED */

/* All of it: begin, stdin and its end when `in` is not NULL, until complete. Fails the test after 20 s. */
void world_run(
	struct world *w, const struct msg_job_start *m, const struct view *in, struct result *r);
void world_shell(struct world *w, const char *command, struct result *r);

/* Reads the next engine message; false after ms. Sets *m, body borrowed until the next call. */
bool engine_next(struct world *w, struct ipc_msg *m, unsigned ms);

/* The relay's exit status, or -1 after ms. */
int relay_wait(struct world *w, unsigned ms);

#define SEND(w, NAME, name, fd, ...)                          \
	do {                                                  \
		const struct msg_##name m_ = __VA_ARGS__;     \
		struct buf b_;                                \
		buf_init(&b_, IPC_MAX);                       \
		msg_##name##_put(&b_, &m_);                   \
		world_send(w, MSG_##NAME, buf_view(&b_), fd); \
		buf_done(&b_);                                \
	} while (0)
#define SESSION_SEND(r, NAME, name, ...)                    \
	do {                                                \
		const struct msg_##name m_ = __VA_ARGS__;   \
		struct buf b_;                              \
		buf_init(&b_, IPC_MAX);                     \
		msg_##name##_put(&b_, &m_);                 \
		session_send(r, MSG_##NAME, buf_view(&b_)); \
		buf_done(&b_);                              \
	} while (0)
