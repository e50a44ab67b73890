/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plays everybody around the broker: starts the real program with its descriptors and speaks as supervisor, engine and dialer with real
 * messages; the provider is tests/provider.py, a real HTTP(S) server whose own ledger of effects is what counts. People sign with real keys.
 * One thread, blocking, with a time limit on every wait. The dialer connects as it is asked, unless a test holds or refuses it.
 */
#pragma once

#include "lib/action/operation.h"
#include "lib/action/record.h"
#include "lib/base/clock.h"
#include "lib/ipc/datagram.h"

#include <sys/types.h>

enum { PEOPLE = 3 };

/* What the play's dialer does with DIAL. */
enum dialer {
	DIALER_CONNECTS,
	DIALER_REFUSES,
	DIALER_HOLDS, /* remembers the tag until play_dial_now */
	DIALER_AWAY,  /* its end is closed */
};

struct person {
	const char *name;
	void *key; /* EVP_PKEY */
	uint8_t blob[51];
};

struct play {
	char dir[64];                              /* state, trust, secrets, provider */
	int state, trust, provider_dir, mirror[2]; /* the mirrors are told when `mirrors` */
	bool mirrors;
	const char *origin; /* NULL: the usual */
	int supervisor, engine, dialer;
	pid_t broker, provider; /* 0: not running */
	uint16_t port;
	bool tls;
	enum dialer dials;
	uint64_t held[64];
	size_t nheld;
	unsigned dialled;     /* how often it was asked */
	struct msg_dial dial; /* the last time */
	struct catalogue catalogue;
	struct buf edit_from, edit_to; /* one replacement in the catalogue's documents */
	struct person person[PEOPLE];
	uint8_t *room;
	struct ipc_msg in; /* the last message of the broker to the engine */
	uint64_t tag;
	uint64_t epoch;
	const struct id *again; /* not NULL: the next record is of this proposal */
	uint64_t decide_by_ms;  /* not 0: of the next records */
	uint64_t paid_cents; /* not 0: what the orders of the provider say, of the next records */
	uint64_t file_size;  /* 0, or RLIMIT_FSIZE of the next broker: a disk that is full */
};

/* What the broker must never let out: the credential in the secrets directory. */
#define PLAY_SECRET "sk_live_CANARY/7f3a+9c\"quoted\"=="

void play_open(struct play *p); /* directories, provider, approvers: anna, ben and root's carl */
void play_close(struct play *p);

/* Replaces a text in the catalogue of the next start, e.g. "'pending':[202]," by "" (with " for '). */
void play_edit(struct play *p, const char *from, const char *to);

/* With TLS: the provider is started again with a certificate of a test CA, which is the pinned root `shop`. */
void play_tls(struct play *p);

/* In the provider's directory; beside it are trust, secrets, state. */
void play_shell(struct play *p, const char *command);
void play_provider_again(struct play *p);

void play_start(struct play *p);       /* until BROKER_READY and APPROVERS_LOADED */
void play_launch(struct play *p);      /* without waiting for them */
void play_launch_only(struct play *p); /* nothing is told yet */
void play_kill(struct play *p);        /* SIGKILL */
int play_wait(struct play *p);         /* its exit status when it ends by itself */
void play_restart(struct play *p);

/* A new engine, as after a restart: BROKER_ENGINE; the old edge is closed. */
void play_engine_again(struct play *p);

/* ---- messages ---- */

void play_send(int fd, enum msg_type type, uint64_t tag, const struct buf *body, int passed);
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
/* p->tag is its tag. */
#define ASK(p, NAME, name, ...) SAY_TAG((p)->engine, ++(p)->tag, NAME, name, -1, __VA_ARGS__)

/* The next message to the engine, while the dialer works; it must be of this type. */
void play_want(struct play *p, enum msg_type type);
void play_decoded(int r, const char *what);
#define WANT(p, NAME, name, m)    \
	struct msg_##name m;      \
	play_want(p, MSG_##NAME); \
	play_decoded(msg_##name##_get((p)->in.body, &m, &(struct err){0}), #NAME)

/* Whatever comes. */
void play_want_any(struct play *p);
/* The dialer works for so long; something may come to the engine and is left there. */
void play_turn(struct play *p, int ms);
/* Nothing comes to the engine for so long; the dialer works. */
void play_silence(struct play *p, int ms);
/* Until the broker asked the dialer so often in all. */
void play_until_dialled(struct play *p, unsigned n);
void play_dial_now(struct play *p); /* the held ones */

/* ---- whole things ---- */

/* people.c: keys, and the file that says what they may. */
void play_people(struct play *p);
void play_people_done(struct play *p);
/* The approvers file with this text behind each name (NULL: the usual). */
void play_approvers(struct play *p, const char *const options[PEOPLE]);

/* A proposal: its record and id, and an execution id. */
struct action {
	struct id proposal, execution, task;
	struct buf record;    /* owned */
	struct buf approvals; /* owned: as in EXECUTE */
};

/* What a test may change before the record is written. */
struct action_edit {
	void (*edit)(struct proposal_record *r, void *arg);
	void *arg;
};

/* Of an operation of the catalogue with these arguments (JSON in canonical form, defaults are put in). */
void action_make(struct play *p, struct action *a, const char *operation, const char *arguments);
void action_make_edited(struct play *p, struct action *a, const char *operation,
	const char *arguments, struct action_edit edit);
void action_done(struct action *a);

/* The person approves it, now; added to a->approvals. */
void action_approve(struct play *p, struct action *a, unsigned person);
/* The same with these times, and without a word to the broker. */
void action_sign(struct play *p, struct action *a, unsigned person, bool approve,
	uint64_t decided_ms, uint64_t dispatch_by_ms);
/* Asks the broker about the last approval: its denial. */
enum denial action_decide(struct play *p, struct action *a);

/* EXECUTE; the tag is p->tag. */
void action_send(struct play *p, const struct action *a);
/* The answer to it; body of p->in. */
struct msg_executed action_executed(struct play *p);
/* Both. */
struct msg_executed action_execute(struct play *p, const struct action *a);
struct msg_executed action_ask(struct play *p, const struct action *a);
struct msg_executed action_lookup(struct play *p, const struct action *a);

/* A signature over any bytes by a person. */
void play_sign(struct play *p, unsigned person, struct view message, struct buf *out);

#define PLAY_REFUND "{\"cents\":4200,\"order_id\":\"48221\"}"
/* The usual: anna approves a refund of 42.00 of order 48221. */
void action_refund(struct play *p, struct action *a);
/* The answer must be this; on another one the test fails and says what came. */
void action_is(const struct msg_executed *m, enum attempt attempt, enum denial denial);

/* ---- the provider ---- */

void provider_script(struct play *p, const char *lines);       /* added to what is there */
unsigned provider_effects(struct play *p);                     /* how many really happened */
unsigned provider_requests(struct play *p, const char *start); /* that begin so */
/* A file of the play, all of it. */
void play_read(struct play *p, int dir, const char *name, struct buf *out);
void play_write(int dir, const char *name, const char *text);
/* One more message that the broker sent: for play_leaked. */
void play_record(const struct ipc_msg *m);
/* Is the text in any file that the broker wrote, or in anything that it ever sent or logged. */
bool play_leaked(struct play *p, const char *text);
