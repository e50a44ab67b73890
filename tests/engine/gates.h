/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task with a policy, its sandboxes with their played gateways and relays, a played broker. Policies of the host: `open`, `support` (for acme
 * alone; rules below) and `zeta_only`.
 */
#pragma once

#include "play.h"

#include "lib/egress/policy.h"

enum { DOCS, CARRIER, MIRROR, WILD, CARRIER_OPEN }; /* rules of `support` */

#define GATES_BUDGETS                                                   \
	"{\"brokered\":16,\"bytes_in\":64000000,\"bytes_out\":8000000," \
	"\"connections\":400,\"handshakes\":200,\"names\":40,\"requests\":800}"

struct gates {
	struct play p;
	struct id task;
	unsigned brokers;
};

/* One sandbox. */
struct boxed {
	struct id sandbox;
	int relay, gateway;
	struct facts facts;
};

void gates_open(struct gates *g); /* directory, settings, policies */
void gates_start(
	struct gates *g); /* the engine with a broker, and a task of acme with the policy support */
void gates_close(struct gates *g);

/* Of a test of cmocka that has one as it comes: its state is a struct gates. */
int gates_setup(void **state);
int gates_teardown(void **state);

/* The document of `support` with these budgets. */
const char *gates_support(const char *budgets);

struct id gates_task(struct gates *g, const char *tenant, const char *policy);

/* A sandbox of this task is asked for: SPAWN came, SPAWNED and GATEWAY_EDGE were sent; nobody is ready. */
void boxed_begin(struct gates *g, const struct id *task, struct boxed *b);
/* The gateway's first message; the relay is told what to trust when both are there. */
void gateway_ready(struct boxed *b);
void boxed_create(struct gates *g, const struct id *task, struct boxed *b);
/* The gateway dies. */
void gateway_close(struct gates *g, struct boxed *b);
/* It ends with this reason, as the supervisor tells it: the gateway first, as a teardown does. */
void boxed_end(struct gates *g, struct boxed *b, enum sandbox_reason reason);
/* The engine is killed and started again, the supervisor holds these: up to HELD_END, */
void gates_held(struct gates *g, struct boxed *b, size_t n);
/* and all of it. */
void gates_restart(struct gates *g, struct boxed *b, size_t n);

/* A verdict that holds: an allowed fetch of the document. */
struct msg_verdict good_verdict(void);
/* VERDICT and its answer; NONE: kept. */
enum egress_reason verdict_say(
	struct gates *g, struct boxed *b, uint64_t tag, const struct msg_verdict *m);
struct msg_allotment allot(struct gates *g, struct boxed *b, const struct egress *used);
void gates_net(struct gates *g, const struct id *task, struct msg_net_budget *ret_budget,
	struct msg_net_row *ret_rows, size_t *rows_n);
/* A broker that is ready, and known to be. */
void gates_broker(struct gates *g, bool again);
