/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs of the sandbox ask for: strict JSON in, canonical bytes to the engine, and its answer as JSON back. Whether it is
 * an operation, a grant or a lie is the engine's to find out; here it is only well-formed or not.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/propose_bounds.h"

#include "proto_gen.h"

struct relay;

struct proposals {
	uint64_t open
		[PROPOSE_LIVE_MAX]; /* numbers of the agent that the engine has not answered yet */
	size_t n;
};

/* -EPROTO: a number that is open, or one too many. Malformed text is answered, not returned. */
int propose_ask(struct relay *r, const struct frame_propose *m, struct err *err) MUST_CHECK;

/* -EPROTO: nobody asked. */
int propose_answered(
	struct relay *r, uint64_t number, const struct msg_proposed *m, struct err *err) MUST_CHECK;

/* Whoever waits hears that it may ask again: the same proposal is found again, not made twice. */
void propose_engine_lost(struct relay *r);
