/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of the engine that live in memory. The database is the truth; memory holds what
 * lives now (sandboxes that stand, jobs that run, who waits for what) and dies with the process.
 *
 * Invariants:
 * 1. A change is committed before the message that depends on it is sent.
 * 2. A sandbox is in memory exactly while its state is creating, running, paused or stopping.
 * 3. Only sandbox_step, task_step and job_step change a state.
 * 4. A request gets exactly one final answer, or its api is gone.
 */
#pragma once

#include "engine/broker.h"
#include "engine/checkpoint.h"
#include "engine/outbox.h"
#include "engine/store.h"
#include "lib/action/operation.h"
#include "lib/base/list.h"
#include "lib/base/sha256.h"
#include "lib/egress/policy.h"
#include "lib/ipc/local_bounds.h"
#include "lib/ipc/peer.h"
#include "proto_gen.h"

#include <ev.h>
#include <time.h>

enum { TENANT_BYTES = 64, SANDBOX_BUCKETS = 256 };

/* States of the peers; the rows of serve.c name those in which they hold. */
enum supervisor_state { SUPERVISOR_NEW, SUPERVISOR_HOLDS, SUPERVISOR_LIVE };
enum api_state { API_LIVE };
enum relay_state { RELAY_STARTS, RELAY_RESYNCS, RELAY_LIVE, RELAY_DEAD };

/* A number of LOCAL_OPEN; one that is open and not known is nobody. */
struct local {
	bool open, known;
	uint32_t uid;
};

struct engine {
	struct ev_loop *loop; /* owned */
	struct store *store;  /* owned; NULL until SETTINGS */
	struct settings settings;
	uint8_t boot[32];
	int engine_fd;    /* owned: directory engine/ of the state */
	int inputs_fd;    /* owned: engine/inputs/ */
	int templates_fd; /* owned: templates/ of the state; -1 when there are none yet */
	int state_fd;     /* owned */
	bool ready, stopping, stopped;
	bool restarted;    /* the supervisor is the one of the last engine */
	struct tree *tree; /* owned: over all audit records */
	struct checkpoints checkpoints;
	struct ipc_peer *supervisor, *api; /* owned; api NULL while it is being restarted */
	uint32_t api_generation;
	struct local locals[LOCAL_BOUND];
	struct broker broker;
	struct catalogue catalogue; /* the pinned operations, for as long as this process */
	struct policies policies;   /* those of the host now, for as long as this process */
	struct link revisions;      /* of struct revision: older ones that sandboxes have */
	struct link said;           /* of struct said: what gateways said in this turn */
	unsigned said_n;
	uint64_t turn;         /* counts transactions of that */
	ev_prepare flush;      /* the end of the turn */
	struct link sandboxes; /* of struct sandbox, oldest first */
	struct link buckets[SANDBOX_BUCKETS];
	unsigned sandboxes_n;
	uint64_t memory_bytes;         /* sum of the limits of the live sandboxes */
	struct link templates;         /* of struct template */
	struct timespec index_changed; /* of the directory of the index, at the last scan */
	struct link rates;             /* of struct rate */
	struct link uploads;           /* of struct upload */
	unsigned uploads_n;
	ev_timer tick;
	ev_timer slice;   /* hashing of stored inputs */
	ev_timer actions; /* times of proposals and of questions to the broker */
	struct outbox outbox;
	struct link calls; /* of struct call */
	ev_timer lookup;   /* of unknown executions */
	ev_timer again;    /* what could not be recorded is asked again */
	bool begin_waits;  /* something is approved, and the broker has enough to do */
};

/* Where an answer goes. An api that was restarted gets no answer to what another one asked. */
struct reply {
	uint32_t generation; /* 0: nobody */
	uint64_t tag;
};

static inline struct reply
reply_of(const struct engine *e, const struct ipc_msg *m)
{
	return (struct reply){.generation = e->api_generation, .tag = m->tag};
}

static inline bool
reply_alive(const struct engine *e, struct reply to)
{
	return e->api != NULL && to.generation == e->api_generation;
}

#define REPLY(e, to, NAME, name, ...)                                          \
	do {                                                                   \
		if (reply_alive(e, to))                                        \
			IPC_SEND((e)->api, (to).tag, NAME, name, __VA_ARGS__); \
	} while (0)

/*
 * A refusal: a row of errors.def and a sentence for the caller. The code lies beyond all errno values, so
 * that a fault of ours is never taken for a refusal.
 */
enum { REFUSAL_BASE = 10000 };
#define REFUSE(err, ERROR, ...) err_set(err, -(REFUSAL_BASE + (int)ERROR_##ERROR), __VA_ARGS__)

/* The same for a check of an action that failed: ERROR_DENIED with this denial of proto/enums.def. */
enum { DENIAL_BASE = 20000 };
#define DENY(err, NAME, ...) err_set(err, -(DENIAL_BASE + (int)DENIAL_##NAME), __VA_ARGS__)

/* Answers with the refusal in *err; any other code is a fault of ours, logged and told without detail. */
void answer_refused(struct engine *e, struct reply to, const struct err *err);

static inline struct view
view_id(const struct id *id)
{
	return view_of(id->b, ID_BYTES);
}

static inline bool
digest_is_zero(const uint8_t d[static 32])
{
	static const uint8_t zero[32];

	return memcmp(d, zero, 32) == 0;
}
