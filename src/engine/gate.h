/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateway of one sandbox, as the engine sees it: its edge, its policy, what it may still say. A gateway believes hostile programs and is believed
 * nothing: every field is tested (verdict_check.c), what it may say is bounded, and one that breaks the table is lost, and its sandbox with it.
 *
 * A sandbox with a policy is ready when its gateway is and its agent was told what to trust. After a restart of the engine the same gateway says
 * GATEWAY_READY again on its new edge; then everything goes on.
 */
#pragma once

#include "engine/sandbox.h"

enum gate_state { GATE_STARTS, GATE_LIVE };
enum { KEPT_MAX = 64 };

/* So many at once, so many a second. */
struct tokens {
	uint64_t milli, at_ms;
};

/* The verdict of a brokered request that was kept, for one lease. */
struct kept {
	uint8_t digest[32];
	uint16_t rule;
	uint64_t until_ms; /* monotonic; 0 = none */
};

/* Flows without a record of their own. */
struct untold {
	uint64_t flows, count, bytes_out, bytes_in;
};

struct gate {
	struct sandbox *sandbox;     /* borrowed; owns it */
	const struct policy *policy; /* borrowed for ever */
	struct ipc_peer *peer;       /* owned; NULL: no edge yet, or lost */
	bool told;                   /* GATEWAY_EDGE came */
	bool broke;  /* it broke the protocol, or ended by itself: what it had on loan is used */
	bool full;   /* not read until it may be recorded again */
	bool ending; /* its last words are read */
	bool unheard; /* it had more to say than was read when it ended: its last words may be lost */
	uint64_t heard; /* messages */
	struct buf certificate, keystore;
	bool system_roots;
	struct tokens verdicts, others, flows;
	struct untold untold;
	uint64_t bytes_out, bytes_in; /* that flows told of, since this engine runs */
	struct egress lent;           /* as it was told last */
	struct kept kept[KEPT_MAX];
	unsigned kept_next;
	struct link leases; /* of struct lease */
	unsigned leases_n;
	uint64_t may_turn; /* the turn in which `may` was found */
	enum egress_reason may;
};

/* For a sandbox with a policy; also from the store. */
int gate_new(struct sandbox *s, const struct policy *p, struct err *err) MUST_CHECK;
void gate_free(struct gate *g);

bool gate_ready(const struct gate *g);
/* RELAY_TRUST, when there is something to trust. */
void gate_trust(struct gate *g);

/*
 * May anything of it leave: NONE, or CONTAINED when its task is not open, was revoked or contained, or it is ending itself. Asked of the store once
 * in a turn (engine.h).
 */
int gate_may(struct gate *g, enum egress_reason *ret, struct err *err) MUST_CHECK;

/* The same of what is true now, outside of such a turn. */
int gate_may_now(struct gate *g, enum egress_reason *ret, struct err *err) MUST_CHECK;

/* The task was revoked: what is open is reset. What is asked for later, gate_may() refuses. */
void gates_end(struct engine *e, const struct id *task);

/* One token, if there is one. */
bool tokens_take(struct tokens *t, uint64_t burst, uint64_t per_s, uint64_t now_ms);

/* It is not what a gateway may be: lost, and its sandbox ended. Only from the loop. */
void gate_break(struct gate *g, const char *why);

/*
 * Its sandbox is gone, and it with it: what it had said before is read, and written. The supervisor tells the end of a sandbox after that of its
 * gateway, but on another socket.
 */
void gate_drain(struct gate *g);

/* Those that were paused, from the clock. */
void gate_tick(struct gate *g, uint64_t now_ms);

int on_gateway_edge(struct engine *e, struct ipc_msg *in, const struct msg_gateway_edge *m,
	struct err *err) MUST_CHECK;
int on_gateway_ready(struct gate *g, const struct msg_gateway_ready *m, struct err *err) MUST_CHECK;
void lost_gateway(struct ipc_peer *peer, const struct err *why);

/* After the restart: who is held and has a policy has a gateway too, or ends. */
void gates_resume(struct engine *e);
