/* SPDX-License-Identifier: Apache-2.0 */
/* The dialer, and one request to it: from a name of its own table to a connected socket in the hands of whoever asked. */
#pragma once

#include "lib/base/list.h"
#include "lib/ipc/peer.h"
#include "origins.h"
#include "servers.h"

struct dialer {
	struct ev_loop *loop; /* owned */
	struct origins origins;
	struct servers servers;
	struct own own;
	struct ipc_peer *broker, *supervisor; /* owned; broker: NULL while there is none */
	struct link dials;                    /* of struct dialing */
	size_t ndials;
	/* What is left to do when the supervisor said how: name servers, the jail, the broker. */
	int (*begin)(struct dialer *d, const struct msg_dialer_begin *m, struct err *err);
	ev_timer late; /* it did not say it yet */
	int exit;
};

/* Answered by DIALED or DIAL_FAILED with this tag, on the broker's edge. */
void dial_begin(
	struct dialer *d, uint64_t tag, struct view host, uint16_t port, uint32_t timeout_ms);

/* The broker is gone: nobody waits for any of them. */
void dials_forget(struct dialer *d);
