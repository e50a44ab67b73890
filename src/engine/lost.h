/* SPDX-License-Identifier: Apache-2.0 */
/* When a peer is gone or broke the protocol: what is lost with it, and no more. */
#pragma once

#include "engine/sandbox.h"

void lost_supervisor(struct ipc_peer *peer, const struct err *why);
void lost_api(struct ipc_peer *peer, const struct err *why);
void lost_relay(struct ipc_peer *peer, const struct err *why);

/* The relay says by itself that the agent is lost. */
int on_relay_lost(struct sandbox *s, const struct msg_relay_lost *m, struct err *err) MUST_CHECK;

/* The supervisor started a new api. */
int on_api_edge(struct engine *e, struct ipc_msg *in, const struct msg_api_edge *m,
	struct err *err) MUST_CHECK;
