/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to the engine. Each has a tag of its own and a row in ask.def; the answers go to its function
 * in order, the last one with `last` set, exactly once. Where no answer comes (deadline, engine lost), a REFUSED
 * is made up here, so that an asker has one way to fail. Answers to questions that were given up are dropped.
 */
#pragma once

#include "api.h"

struct answer {
	enum msg_type type;
	bool last;
	const void *
		m; /* struct msg_<type>; borrowed, with all its views, until the function returns */
	struct ipc_msg *in; /* for its descriptors; NULL when made up */
};

typedef void ask_fn(void *owner, const struct answer *answer);

struct ask {
	struct link link;     /* in api->asks */
	struct link of_owner; /* in the owner's list */
	struct api *api;      /* borrowed */
	uint64_t tag;
	enum msg_type question;
	ask_fn *fn;
	void *owner; /* borrowed */
	ev_timer deadline;
};

/*
 * Sends a packed question and appends the ask to the owner's list; it is released after its last answer. The
 * owner gives up its questions with ask_forget_all() before it goes. -ERROR_UNAVAILABLE without an engine, or when it
 * does not read and LIMIT_ASK_QUEUE_MAX_BYTES wait for it: a question is refused rather than the edge lost.
 */
int ask_send(struct api *api, enum msg_type question, const struct buf *body, struct link *owners,
	ask_fn *fn, void *owner, struct err *err) MUST_CHECK;
void ask_forget_all(struct link *owners);

/* Whether work may begin that may ask: not while LIMIT_ASK_QUEUE_BYTES wait for the engine. See conn_resume_held. */
bool ask_room(const struct api *api);

/* A message about a question that is under way, with its tag (INPUT_CLOSE). */
void ask_more(struct ask *ask, enum msg_type type, const struct buf *body);

/* From serve.c: a typed answer. A tag that was never given or an answer that ask.def does not list: negative. */
int ask_answered(struct api *api, struct ipc_msg *in, const void *m, struct err *err) MUST_CHECK;

/* The engine is gone: all questions are refused. */
void ask_engine_lost(struct api *api);

/* r = ASK(api, owners, fn, owner, err, WHOAMI, whoami, {.caller = c}); */
#define ASK(api, owners, fn, owner, err, NAME, name, ...)               \
	__extension__({                                                 \
		const struct msg_##name m_ = __VA_ARGS__;               \
		auto_buf struct buf b_;                                 \
		buf_init(&b_, IPC_MAX);                                 \
		msg_##name##_put(&b_, &m_);                             \
		ask_send(api, MSG_##NAME, &b_, owners, fn, owner, err); \
	})
