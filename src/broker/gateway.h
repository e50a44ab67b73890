/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateway of one sandbox whose policy has a brokered rule, as the broker sees it: its edge, this broker's own copy of the policy, and
 * what it has in flight. The gateway reads hostile bytes all day: taken over, it may send any message, and gets what the engine leased.
 */
#pragma once

#include "broker/broker.h"
#include "broker/call.h"

#include "lib/egress/held.h"

struct gateway {
	struct link link; /* of broker.gateways */
	struct broker *b;
	struct ipc_peer *peer;      /* owned */
	struct held_policy *policy; /* owned: a reference */
	struct link requests;       /* of struct brokered */
	size_t nrequests;
	struct id sandbox;
	char text[ID_TEXT]; /* the sandbox */
};

/* Takes both descriptors. A policy that cannot be used is logged and the edge closed: brokered requests of that sandbox are refused. */
void gateway_add(struct broker *b, const struct msg_broker_gateway *m, int edge, int policy);
void gateways_free(struct broker *b);

/* brokered.c */
void brokered_ask(struct gateway *g, uint64_t tag, const struct msg_brokered *m);
/* What it has in flight ends unheard. */
void brokered_forget(struct gateway *g);
