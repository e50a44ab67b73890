/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox in memory and its row in the database. sandbox.c: objects, rows and steps; create.c: from
 * the request to the first command; life.c: everything that may happen to one that lives;
 * gone.c: its end.
 */
#pragma once

#include "engine/audit.h"
#include "engine/caller.h"
#include "engine/step.h"

/* What somebody waits for. A waiter is answered when it happens, or when its time is up. */
enum wait_kind { WAIT_READY, WAIT_GONE, WAIT_FROZEN, WAIT_TTL, WAIT_USAGE };

struct job;
struct gate;

struct waiter {
	struct link link;
	enum wait_kind kind;
	struct reply to;
	struct job *job;      /* WAIT_USAGE for the end of a job; else NULL */
	bool frozen;          /* WAIT_FROZEN */
	uint64_t deadline_ms; /* monotonic; 0 = none of its own */
};

struct sandbox {
	struct link link, bucket;
	struct engine *engine; /* borrowed */
	uint64_t seq;          /* the order of creation */
	struct id id, task;
	char tenant[TENANT_BYTES];
	char template_asked[129], template[64];
	uint8_t digest[32];
	char policy[64]; /* of its egress, "" = none; and the revision, for its life */
	uint8_t policy_digest[32];
	enum sandbox_state state;
	enum sandbox_reason reason;
	struct limits limits;
	struct facts facts;
	struct timings timings;
	struct proof proof;
	struct usage usage; /* as the supervisor told last */
	uint64_t created_ms, ended_ms, ttl_ms, ttl_until_ms, idle_ms; /* real time */
	bool persistent, residue;
	uint32_t boot_us;
	struct buf metadata;

	/* Of a living one: */
	bool asked;              /* SPAWN was sent */
	bool spawned;            /* SPAWNED came and the facts are right */
	bool held;               /* after a restart: the supervisor has it */
	bool uncommitted;        /* its end could not be recorded yet: tried again */
	bool proof_known;        /* when uncommitted: as it was told */
	struct msg_gone gone;    /* the same */
	bool kill_due;           /* the kill could not be recorded yet: it comes with the end */
	struct principal killer; /* when kill_due: who asked, */
	enum sandbox_reason killed_reason; /* and why */
	bool frozen;                       /* what the kernel reported last */
	bool frozen_due;                   /* that report could not be recorded yet: tried again */
	uint64_t begun_us;                 /* monotonic */
	uint64_t touched_ms;               /* monotonic: last request or end of a job */
	uint64_t deadline_ms;   /* monotonic: of the creation or the teardown; 0 = none */
	uint64_t resync_ms;     /* monotonic: until then ends of jobs may follow; 0 = no resync */
	struct ipc_peer *relay; /* owned; NULL before SPAWNED and when lost */
	struct gate *gate;      /* owned; NULL: it has no policy */
	struct link jobs;       /* of struct job */
	unsigned jobs_n;
	unsigned proposing_n; /* questions of PROPOSE without an answer yet */
	bool budget_told;     /* that its budget of proposals is used up was recorded */
	struct link waiters;
	uint64_t input_seq; /* last stored input that was written into it */
	char refusal[224];  /* what WAIT_READY is told when it ends before it is ready */
};

/* ---- sandbox.c ---- */

struct sandbox *sandbox_new(struct engine *e, struct err *err) MUST_CHECK;
/* Out of memory, with its peer; nobody may be waiting and nothing run. */
void sandbox_free(struct sandbox *s);
void sandbox_link(struct sandbox *s); /* counts it as living */

/* NULL when none with this id lives. */
struct sandbox *sandbox_live(struct engine *e, const struct id *id);

/* From the database, living or not; the caller frees it. -ENOENT. */
struct sandbox *sandbox_load(struct engine *e, const struct id *id, struct err *err) MUST_CHECK;

int sandbox_insert(struct sandbox *s, struct err *err) MUST_CHECK;

/* The one place where the state changes; the caller writes it in the same transaction. */
int sandbox_step(struct sandbox *s, enum sandbox_event event, struct err *err) MUST_CHECK;
bool sandbox_lives(enum sandbox_state state);

/*
 * The sandbox of a request: the caller must see its tenant, else there is none. Living ones are
 * borrowed; an ended one is loaded into *ret_loaded, which the caller frees.
 */
int sandbox_find(struct engine *e, const struct principal *p, const struct id *id,
	struct sandbox **ret, struct sandbox **ret_loaded, struct err *err) MUST_CHECK;

/* As sandbox_find, but it must live; an ended one is refused with a sentence. */
int sandbox_find_live(struct engine *e, const struct principal *p, const struct id *id,
	struct sandbox **ret, struct err *err) MUST_CHECK;

static inline void
sandbox_cleanup(struct sandbox **s)
{
	if (*s != NULL)
		sandbox_free(*s);
}
#define auto_sandbox __attribute__((cleanup(sandbox_cleanup)))

void sandbox_answer(struct sandbox *s, struct reply to, bool replayed);
void sandbox_touch(struct sandbox *s);

/* An audit record about it, inside the open transaction. */
int sandbox_audit(struct sandbox *s, const char *event, const struct principal *who,
	struct view request_id, void (*data)(struct canon_writer *, const void *), const void *arg,
	struct err *err) MUST_CHECK;

/* ---- waiters ---- */

int wait_add(struct sandbox *s, enum wait_kind kind, struct reply to, struct waiter **ret,
	struct err *err) MUST_CHECK;
/* The oldest of this kind, out of the list; the caller frees it. NULL. */
struct waiter *wait_take(struct sandbox *s, enum wait_kind kind);
/* Answers all of this kind with the row, or with a refusal when `why` is given. */
void wait_answer(struct sandbox *s, enum wait_kind kind, const struct err *why);
/* Gives up what waits too long. */
void wait_expire(struct sandbox *s, uint64_t now_ms);
