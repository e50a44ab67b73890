/* SPDX-License-Identifier: Apache-2.0 */
/* The broker itself: its edges, what it holds, and what is in flight. One object, made by main.c, handed to all. */
#pragma once

#include "broker/approval.h"
#include "broker/checkpoint.h"
#include "broker/http.h"
#include "broker/ledger.h"
#include "broker/limits.h"
#include "broker/roots.h"
#include "broker/secret.h"

#include "lib/action/operation.h"
#include "lib/base/list.h"
#include "lib/ipc/peer.h"

enum broker_exit {
	EXIT_CLOSED = 0,   /* the supervisor closed its edge, or told it to end */
	EXIT_NO_START = 1, /* a descriptor, the catalogue or the start messages cannot be used */
	EXIT_LEDGER = 2,   /* the ledger is damaged, or another broker has it */
	EXIT_NO_JAIL = 3,
};

/* Of the edge to the supervisor. */
enum broker_state {
	BROKER_STARTING, /* it tells secrets and mirrors; no jail yet */
	BROKER_LIVE,
};

struct broker {
	struct ev_loop *loop;
	struct ipc_peer *engine, *dialer, *supervisor; /* NULL while the other end is away */
	uint64_t engine_number; /* which engine: an answer goes to the one that asked */
	uint64_t last_call;
	struct catalogue catalogue;
	struct vault *vault;
	struct roots *roots;
	struct ledger *ledger;
	struct audit audit;
	struct approval approval;
	struct http *http;
	struct link calls; /* of struct call */
	struct link works; /* of struct work */
	size_t nworks;
	struct leases *leases; /* owned */
	struct link gateways;  /* of struct gateway */
	size_t ngateways;
	size_t nbrokered;     /* requests of all gateways */
	struct link policies; /* of struct held_policy: those of the gateways */
	ev_timer approvers;
	ev_signal term;
	ev_timer end; /* active: SIGTERM came, see ending.c */
	int state, trust, mirrors[4];
	size_t nmirrors;
	char origin[128];
};

/* Who asked. */
struct ask {
	uint64_t engine; /* broker.engine_number */
	uint64_t tag;
};

/* To whoever asked, if it is still there: TELL(b, ask, EXECUTED, executed, {...}). */
#define TELL(b, ask, NAME, name, ...)                                              \
	do {                                                                       \
		if ((b)->engine != NULL && (ask).engine == (b)->engine_number)     \
			IPC_SEND((b)->engine, (ask).tag, NAME, name, __VA_ARGS__); \
	} while (0)

/* The first check that failed, and why; BROKER_REFUSED. */
void tell_refused(struct broker *b, struct ask ask, enum denial denial, const char *text);

/* A log line that has no secret in it, whatever a provider put there. */
void broker_log(struct broker *b, const char *fmt, ...) PRINTF(2, 3);

/*
 * A sentence as it may leave: ASCII, or another one when it has a secret in it. Every text of a message goes through this: it may have been put
 * together from what a provider or an engine said, and been cut in the middle of a letter.
 */
enum { TEXT_BYTES = 512 };
const char *broker_text(struct broker *b, const char *text, char room[static TEXT_BYTES]);
void broker_clean(struct broker *b, struct err *err);

/*
 * ending.c. SIGTERM: nothing more is taken or sent, the ends of what was sent are waited for, so that no restart makes an `unknown`; at most
 * LIMIT_END_MS.
 */
void ending_init(struct broker *b);
bool ending(const struct broker *b);
/* Something that was in flight is over. */
void ending_check(struct broker *b);

/* serve.c */
int serve_engine(struct broker *b, int fd, struct err *err) MUST_CHECK;
int serve_dialer(struct broker *b, int fd, struct err *err) MUST_CHECK;
int serve_supervisor(struct broker *b, int fd, struct err *err) MUST_CHECK;
/* Looks at the approvers file; one that changed is read, and the engine is told before anything else. */
void approvers_look(struct broker *b);
