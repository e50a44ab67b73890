/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plays everybody around the engine: starts the real program with its descriptors and speaks as
 * supervisor, api and relays with real messages. One thread, blocking, with a time limit on every
 * wait: a message that does not come is a failure. A test says what it sends and what must come;
 * anything else that comes first is a failure too.
 */
#pragma once

#include "lib/action/operation.h"
#include "lib/base/clock.h"
#include "lib/ipc/datagram.h"

#include <sys/types.h>

enum { RELAYS = 8, PLAY_CLIENTS = 8, PLAY_GATES = 16 };

struct play {
	char dir[64]; /* the state directory */
	int state, supervisor, api, broker;
	int local;                 /* the socket that callers connect to */
	int clients[PLAY_CLIENTS]; /* the callers of play_local; 0: none */
	pid_t engine;              /* 0: not running */
	struct settings settings;
	uint8_t boot[32], template[32];
	uint32_t uid_next; /* the next range of uids for a sandbox */
	uint8_t *room;
	struct ipc_msg in; /* the last message */
	uint64_t tag;
	/* The played broker signs each head that continues the last, without being asked to; unless a test wants to see them itself. */
	bool heads_held;
	uint64_t head_size;
	uint8_t head_root[32];
	unsigned heads; /* how many it signed */
	char head_note[2049];
	struct catalogue catalogue; /* the sample, as the engine has it */
	struct buf documents;       /* its bytes */
	struct buf policies;        /* those of the host, as the engine has them */
	int gates[PLAY_GATES];      /* the played gateways */
	unsigned gates_n;
};

void play_open(struct play *p);  /* a fresh state directory with one template */
void play_close(struct play *p); /* ends the engine, removes the directory */

/* Another catalogue from the next start on: that of the sample with `from` replaced by `to` everywhere. */
void play_catalogue(struct play *p, const char *from, const char *to);

/* One policy more from the next start on; their names ascend. NULL: none at all. */
void play_policy(struct play *p, const char *document);

/* Starts it, sends SETTINGS and HELD_END, prepares the template. */
void play_start(struct play *p);
/* The first half of it: up to and with SETTINGS. */
void play_launch(struct play *p);
void play_ready(struct play *p);
void play_kill(struct play *p); /* SIGKILL */
int play_wait(struct play *p);  /* its exit status when it ends by itself */

void play_send(int fd, enum msg_type type, uint64_t tag, const struct buf *body, int passed);

/* The next message from this descriptor must be of this type; it stays in p->in. */
void play_want(struct play *p, int fd, enum msg_type type);
/* Whatever comes next. */
void play_want_any(struct play *p, int fd);
/* The next from the api or from the supervisor, whichever speaks first. */
void play_want_either(struct play *p);
/* The next message when there is one; false: the other end is gone. */
bool play_read(struct play *p, int fd);
/* The engine closed it. */
void play_want_closed(struct play *p, int fd);
/* Nothing comes for so long. */
void play_want_silence(struct play *p, int fd, int ms);

#define SAY_TAG(fd, tag, NAME, name, passed, ...)            \
	do {                                                 \
		const struct msg_##name m_ = __VA_ARGS__;    \
		struct buf b_;                               \
		buf_init(&b_, IPC_MAX);                      \
		msg_##name##_put(&b_, &m_);                  \
		must(buf_check(&b_) == 0);                   \
		play_send(fd, MSG_##NAME, tag, &b_, passed); \
		buf_done(&b_);                               \
	} while (0)
#define SAY(fd, NAME, name, ...)            SAY_TAG(fd, 0, NAME, name, -1, __VA_ARGS__)
#define SAY_FD(fd, NAME, name, passed, ...) SAY_TAG(fd, 0, NAME, name, passed, __VA_ARGS__)
/* A request of the api: p->tag is its tag. */
#define ASK(p, NAME, name, ...) SAY_TAG((p)->api, ++(p)->tag, NAME, name, -1, __VA_ARGS__)

/* WANT(p, fd, SPAWN, spawn, m) declares struct msg_spawn m and fills it. */
#define WANT(p, fd, NAME, name, m)    \
	struct msg_##name m;          \
	play_want(p, fd, MSG_##NAME); \
	play_decoded(msg_##name##_get((p)->in.body, &m, &(struct err){0}), #NAME)
void play_decoded(int r, const char *what);

/* An answer to the last request of the api. */
#define ANSWER(p, NAME, name, m)          \
	WANT(p, (p)->api, NAME, name, m); \
	play_same_tag(p)
void play_same_tag(struct play *p);

/* The answer must be REFUSED with this error. */
void play_refused(struct play *p, enum error error);

/* ---- whole steps ---- */

/* The number 0 of LOCAL_OPEN, which play_launch sends. */
extern const struct caller as_root;

/* A connection to the local socket of this uid, accepted as the api does; *ret_client is its other end. */
int play_connect(struct play *p, uint32_t uid, int *ret_client);
/* LOCAL_OPEN with this number for a caller of this uid. */
struct caller play_local(struct play *p, uint16_t number, uint32_t uid);
/* The api died and was started again: its new edge. */
void play_api_new(struct play *p);

/* CHECKPOINT_ASK is in p->in: signed as the real broker would; its proof must hold. */
void play_head(struct play *p);
/* What the broker would tell of its newest head. */
void play_head_told(struct play *p, struct msg_broker_ready *m);
/* The broker was told of another line. */
void play_head_forget(struct play *p);

/* BROKER_READY on the edge of the start, or with `again` on a new one; the epoch is 7. */
void play_broker(struct play *p, bool again);
/* The broker dies. */
void play_broker_lost(struct play *p);

struct facts play_facts(struct play *p, const struct limits *l); /* as the policy wants them */
/* SANDBOX_CREATE was asked: SPAWN, SPAWNED, RELAY_READY. The relay's end; *ret_id. */
int play_spawn(struct play *p, struct id *ret_id);
/* SPAWN came: SPAWNED with these facts; the relay's end. */
int play_spawned(struct play *p, const struct id *sandbox, const struct facts *f);
/* Create and wait for the row. */
int play_create(struct play *p, struct id *ret_id, struct id *ret_task);
void play_gone(struct play *p, const struct id *id, enum sandbox_reason reason);
/* JOB_RUN with `true`: JOB_START, JOB_SESSION to the relay, JOB_OPENED to the api. */
void play_run(struct play *p, int relay, const struct id *sandbox, struct id *ret_job);
void play_end_job(struct play *p, int relay, const struct id *job, int32_t code);

/* Reads the whole audit of a task, checks its chain; the number of records. */
uint64_t play_audit(struct play *p, const struct id *task);
/* The same of "host", or of any name of AUDIT_READ. */
uint64_t play_audit_of(struct play *p, const char *name);
/* Is there such an event in the records that play_audit read last? How often. */
unsigned play_events(struct play *p, const char *event);
/* Does this text stand in them? */
bool play_recorded(const char *text);
/* Does it stand in every record of this event, of which there is one at least? */
bool play_record(struct play *p, const char *event, const char *text);

/* The same image under another name: another template. The engine asks for it when it is first named. */
void play_template(struct play *p, const char *name);

/* A token of the tenant, made by root; the caller that uses it. */
struct caller play_token(struct play *p, const char *tenant, const char *template, uint8_t number);

/* Stores an input as root and writes into its file afterwards, which must change nothing. */
void play_input(struct play *p, const struct id *task, const char *path, const char *text,
	struct msg_input_row *ret);
/* A task of the tenant, made by root. */
struct id play_task(struct play *p, const char *tenant);
