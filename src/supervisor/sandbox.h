/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandboxes, from the line in the journal to the proof that nothing is left. A sandbox begins as a spare (spawn.h) and
 * gets its name, task and template with the order. All that it holds hangs on this object; teardown.c takes it down.
 *
 * Invariants:
 *   1. an object in the list has a line in the journal, written before anything else of it existed;
 *   2. its uid range is free again only when the proof was all zero;
 *   3. a spare that was ordered is never a spare again;
 *   4. told: SPAWNED was sent, the engine counts on it; nothing is said of a sandbox that nobody ordered;
 *   5. a sandbox with a policy has a gateway from before SPAWNED to its end, and the end of the one is the end of the other.
 */
#pragma once

#include "lib/base/list.h"
#include "proto_gen.h"
#include "supervisor/budget.h"
#include "supervisor/deadline.h"
#include "supervisor/journal.h"
#include "supervisor/marks.h"
#include "supervisor/gateway.h"
#include "supervisor/phase.h"
#include "supervisor/revisions.h"
#include "supervisor/program.h"
#include "supervisor/relay.h"
#include "supervisor/slot.h"
#include "supervisor/spawn.h"
#include "supervisor/template.h"

struct sandboxes;

/* Edges that its gateway needs and has not got yet (edges.c). */
enum sandbox_due { DUE_DIALER = 1, DUE_BROKER = 2 };

struct sandbox {
	struct link link;
	struct sandboxes *all; /* borrowed */
	enum phase phase;
	char name[JOURNAL_NAME]; /* of its journal line, its control groups and its volume */
	uint32_t slot;

	bool ordered; /* from here on it has an id */
	bool told;    /* SPAWNED was sent */
	bool started; /* the process is about to execute the agent */
	struct id id, task;
	struct limits limits;
	uint8_t template[SHA256_BYTES];
	struct places
		places;  /* as they were named when it was ordered; the template may get others */
	uint64_t tag;    /* of SPAWN */
	uint64_t ttl_ms; /* as asked, until it is created */
	uint64_t born_ms, ends_ms; /* CLOCK_BOOTTIME */
	uint64_t asked_us;
	struct timings timings;
	struct facts facts;

	pid_t pid;
	int pidfd, sock, userns, volume; /* owned; -1: none */
	struct relay relay;
	struct revision *policy; /* owned: a reference; NULL: it reaches nothing */
	struct gateway gateway;  /* of a spare, or with a policy */
	bool named;              /* the gateway was told whose it is */
	bool plumbed;            /* and its sockets, which is all */
	unsigned due;            /* bits of enum sandbox_due */
	struct marks marks;      /* by which the kernel is asked what is left */
	ev_io reports, died, relay_died, gateway_died;
	ev_timer timer; /* building, freezing or sweeping: never two at a time */

	bool freezing, freeze_wanted;
	uint64_t freeze_tag, freeze_us;

	enum sandbox_reason reason;
	struct err fault; /* why it could not be built */
	uint64_t kill_us, kill_tag;
	bool proved_once; /* GONE or SPAWN_FAILED was told with what was left */
	struct usage usage;
	struct proof proof;
};

/* What the room tells the engine. */
struct sandbox_tells {
	void (*spawned)(
		void *owner, struct sandbox *sb); /* its edges for the engine are borrowed */
	void (*due)(void *owner);                 /* a gateway needs edges */
	void (*failed)(void *owner, struct sandbox *sb);
	void (*gone)(void *owner, struct sandbox *sb);
	void (*frozen)(
		void *owner, struct sandbox *sb, uint64_t tag, bool frozen, const struct err *err);
};

struct sandboxes {
	struct ev_loop *loop; /* borrowed, like all below but the lists */
	const struct settings *settings;
	const struct cgroups *cgroups;
	const struct programs *programs;
	struct slots *slots;
	struct journal *journal;
	struct templates *templates;
	const struct revisions *policies; /* of the host */
	bool ipv6;                        /* this host has it */
	int agent, stage;
	int watch; /* owned: inotify, for the ends of volumes */
	char stage_path[sizeof(((struct settings *)0)->run_dir) + 8];
	const char *masks[32];
	size_t nmasks;
	struct budget budget;
	const struct sandbox_tells *tells;
	void *owner;

	struct link list;      /* of struct sandbox */
	size_t n;              /* all */
	size_t live;           /* ordered */
	uint64_t memory_bytes; /* sum of the limits of the ordered ones */
	uint64_t pids;         /* the same */
	uint64_t serial;
	bool stopping;
	struct deadline deadline;
	ev_timer refill;
};

int sandboxes_init(struct sandboxes *all, struct err *err) MUST_CHECK;
void sandboxes_done(struct sandboxes *all);

/*
 * Builds one. 0: it was begun, and is told by spawned() or failed(). Negative: refused by our ceilings, and told
 * nowhere else. A known id is -EEXIST.
 */
int sandbox_order(
	struct sandboxes *all, const struct msg_spawn *m, uint64_t tag, struct err *err) MUST_CHECK;

struct sandbox *sandbox_find(struct sandboxes *all, const struct id *id);

/* The first reason stays. */
void sandbox_kill(struct sandbox *sb, enum sandbox_reason reason);

/* Every one: the host stops. */
void sandboxes_stop(struct sandboxes *all);

/* The engine died: what it was not told of cannot be handed to the next one. */
void sandboxes_engine_lost(struct sandboxes *all);

/* Life from now on, within the ceiling that counts from its creation; what it came to. */
uint64_t sandbox_ttl_set(struct sandbox *sb, uint64_t ttl_ms);
uint64_t sandbox_ttl_left_ms(const struct sandbox *sb);

/* Told by frozen(). */
void sandbox_freeze(struct sandbox *sb, bool frozen, uint64_t tag);

/* All edges that its gateway needs; bits of enum sandbox_due. */
unsigned sandbox_needs(const struct sandbox *sb);

/* Its process was cloned: reports and death are watched from here on. */
void sandbox_watch(struct sandbox *sb);

/* Moves it along sandbox.fsm; a pair without a row is a bug of ours. */
void sandbox_step(struct sandbox *sb, enum phase_event event);

/* ---- bind.c ---- */

/* A gateway beside a spare. */
int bind_start(struct sandbox *sb, struct err *err) MUST_CHECK;

/* It is ordered: what the clone is to make. Without a policy its gateway ends, and is not waited for. */
int bind_order(struct sandbox *sb, struct plumbing *ret, struct err *err) MUST_CHECK;

/* The order was sent: a gateway is told whose it will be. The sandbox may be ending after it (sandbox_kill). */
int bind_named(struct sandbox *sb, struct err *err) MUST_CHECK;

/* The clone's sockets came: the gateway gets them, and begins. */
int bind_listening(
	struct sandbox *sb, const struct spawn_report *report, struct err *err) MUST_CHECK;

/* ---- teardown.c ---- */

/* Both processes may be gone: go on with the sweep, or wait. */
void teardown_check(struct sandbox *sb);
void teardown_begin(struct sandbox *sb);

/* At the end of the process: frees the object, takes nothing down. */
void sandbox_forget(struct sandbox *sb);
void on_sandbox_died(struct ev_loop *loop, ev_io *w, int events);
void on_relay_died(struct ev_loop *loop, ev_io *w, int events);
void on_gateway_died(struct ev_loop *loop, ev_io *w, int events);
