/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's end of ENGINE_BROKER: one question, one answer, matched by tag. Who asks embeds a struct broker_wait in what it has to
 * remember and gets its `done` called exactly once, from the loop: with the answer, with the broker's refusal, or when the edge is lost. What the
 * lost broker did with a question is then not known; for a check that means it is denied (BROKER_UNAVAILABLE), for an execution that it is asked again.
 *
 * Nothing that the broker says is stored before its question was; nothing here decides.
 */
#pragma once

#include "lib/base/list.h"
#include "lib/ipc/peer.h"
#include "proto_gen.h"

struct engine;

enum broker_state { BROKER_NEW, BROKER_LIVE };

/* What came of a question. The texts and blobs of `m` are borrowed: they live until `done` returns. */
struct broker_answer {
	bool lost; /* the edge was lost after the question was sent */
	enum denial
		denial; /* BROKER_REFUSED or lost; DENIAL_NONE = `m` has the answer, and its own denial */
	struct view text; /* with a denial: the sentence */
	union {
		struct msg_verified verified;
		struct msg_read_done read_done;
		struct msg_decision_is decision_is;
		struct msg_executed executed;
		struct msg_revoked revoked;
		struct msg_epoch_is epoch_is;
		struct msg_checkpoint_is checkpoint_is;
		struct msg_broker_done broker_done;
	} m;
};

/* Embedded at the asker; out of all lists when `done` is called, which may free it. */
struct broker_wait {
	struct link link;
	struct engine *engine;
	uint64_t tag;
	uint64_t deadline_ms;   /* monotonic */
	enum msg_type expected; /* the type of its answer */
	void (*done)(struct broker_wait *w, const struct broker_answer *a);
};

struct broker {
	struct ipc_peer *peer; /* owned; NULL while it is being restarted */
	struct link waits;     /* of struct broker_wait, oldest first */
	uint64_t tag;
	bool told; /* BROKER_READY came on this edge */
	/* As BROKER_READY and APPROVERS_LOADED told last. */
	uint64_t epoch, ledger_entries, checkpoint_size;
	uint8_t checkpoint_root[32], approvers[32];
	char audit_key[257], note[2049], approvers_fault[225];
};

/* May it be asked now? */
bool broker_there(const struct engine *e);

/*
 * Sends a question whose answer is `expected`; *w is the caller's until its `done` is called. -ENOTCONN with the sentence for a denial
 * (BROKER_UNAVAILABLE): it is not there, nothing was sent, `done` will not be called.
 */
int broker_ask(struct engine *e, struct broker_wait *w, enum msg_type type, struct view body,
	enum msg_type expected, struct err *err) MUST_CHECK;

/* r = BROKER_ASK(e, &w, VERIFY_ASK, verify_ask, VERIFIED, err, {.tenant = ...}) */
#define BROKER_ASK(e, w, NAME, name, ANSWER, err, ...)                               \
	({                                                                           \
		const struct msg_##name m_ = __VA_ARGS__;                            \
		struct buf b_;                                                       \
		int r_;                                                              \
		buf_init(&b_, IPC_MAX);                                              \
		msg_##name##_put(&b_, &m_);                                          \
		must(buf_check(&b_) == 0);                                           \
		r_ = broker_ask(e, w, MSG_##NAME, buf_view(&b_), MSG_##ANSWER, err); \
		buf_done(&b_);                                                       \
		r_;                                                                  \
	})

/* An answer came: finds who asked. */
int broker_answered(struct engine *e, const struct ipc_msg *in, const struct broker_answer *a,
	struct err *err) MUST_CHECK;

/* Gives up an edge whose oldest question waits too long; from the clock. */
void broker_tick(struct engine *e, uint64_t now_ms);

void lost_broker(struct ipc_peer *peer, const struct err *why);

int on_broker_edge(struct engine *e, struct ipc_msg *in, const struct msg_broker_edge *m,
	struct err *err) MUST_CHECK;
int on_broker_ready(struct engine *e, const struct msg_broker_ready *m, struct err *err) MUST_CHECK;
int on_approvers_loaded(
	struct engine *e, const struct msg_approvers_loaded *m, struct err *err) MUST_CHECK;
