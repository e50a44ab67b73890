/* SPDX-License-Identifier: Apache-2.0 */
/* The name servers to ask: those of the configuration, or of /etc/resolv.conf, read once before the jail. */
#pragma once

#include "class.h"
#include "proto_gen.h"

enum { SERVERS_MAX = 3 };

struct server {
	struct address address;
	uint16_t port;
};

struct servers {
	struct server row[SERVERS_MAX];
	size_t n;
};

/* `nameserver` lines of a resolv.conf; what cannot be used (a zone, a fourth one) is passed over. */
void servers_of_conf(struct view text, struct servers *ret);

/* What DIALER_BEGIN says: empty texts, the one text `system`, or servers. */
int servers_find(const struct msg_dialer_begin *m, struct servers *ret, struct err *err) MUST_CHECK;
