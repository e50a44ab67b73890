/* SPDX-License-Identifier: Apache-2.0 */
/* The dialer, and one request to it: from a name of its own tables to a connected socket in the hands of whoever asked. */
#pragma once

#include "lib/base/list.h"
#include "lib/ipc/peer.h"
#include "origins.h"
#include "servers.h"

/* Whoever may ask: the broker, or the gateway of one sandbox. */
struct asker {
	struct dialer *dialer; /* borrowed */
	struct ipc_peer *peer; /* owned; NULL while there is none */
	struct link dials;     /* of struct dialing */
	size_t ndials;
	bool gateway;
	/* The answers, on the asker's own edge. The descriptor stays the caller's. */
	void (*connected)(struct asker *a, uint64_t tag, const char *address, int fd);
	void (*failed)(struct asker *a, uint64_t tag, enum dial reason, const char *text);
};

enum { PORTS = 65536 };

struct dialer {
	struct ev_loop *loop; /* owned */
	struct origins origins;
	struct servers servers;
	struct own own;
	struct asker broker;
	struct link gateways; /* of struct gateway */
	size_t ngateways;
	struct link policies;        /* of struct held_policy: those of the gateways */
	size_t nreaches;             /* dials of all gateways */
	uint8_t told[PORTS / 8];     /* ports of policies, a bit each: what the jail was made for */
	struct ipc_peer *supervisor; /* owned */
	/* What is left to do when the supervisor said how: name servers, the jail, the broker. */
	int (*begin)(struct dialer *d, const struct msg_dialer_begin *m, struct err *err);
	ev_timer late; /* it did not say it yet */
	int exit;
};

void port_tell(uint8_t told[static PORTS / 8], uint16_t port);
bool port_told(const uint8_t told[static PORTS / 8], uint16_t port);

void asker_init(struct asker *a, struct dialer *d, bool gateway);

/*
 * `to` is a row of a table of this process: nobody's message becomes one. Answered by connected() or failed() with this tag, also at once:
 * with DIAL_BUSY when the asker has too many on their way.
 */
void dial_begin(struct asker *a, uint64_t tag, const struct origin *to, uint32_t timeout_ms);

/* The asker is gone: nobody waits for any of them. */
void dials_forget(struct asker *a);
