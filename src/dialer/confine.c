/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jail; see confine.h. It makes sockets, so the filter names which (dialer-syscalls.def), and where the kernel can tell by port
 * (Landlock ABI 4) it connects TCP to the ports of its table and of the name servers only. No file can be opened any more.
 */
#include "confine.h"

#include "dialer-syscalls.h"
#include "lib/jail/jail.h"
#include "limits.h"

#include <unistd.h>

enum { PORTS_MAX = ORIGINS_MAX + SERVERS_MAX };

static void
port_add(uint16_t *ports, size_t *n, uint16_t port)
{
	for (size_t i = 0; i < *n; i++)
		if (ports[i] == port)
			return;
	ports[(*n)++] = port;
}

int
confine(const struct dialer *d, struct err *err)
{
	const struct jail_rlimit rlimits[] = {{RLIMIT_NOFILE, LIMIT_DESCRIPTORS}};
	uint16_t ports[PORTS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < d->origins.n; i++)
		port_add(ports, &n, d->origins.row[i].port);
	for (size_t i = 0; i < d->servers.n; i++)
		port_add(ports, &n, d->servers.row[i].port);
	const struct jail jail = {
		.uid = getuid(),
		.gid = getgid(),
		.rlimits = rlimits,
		.rlimits_n = ARRAY_LEN(rlimits),
		.ports = ports,
		.ports_n = n,
		.filter = dialer_syscalls,
		.filter_n = ARRAY_LEN(dialer_syscalls),
	};
	int r = jail_enter(&jail, err);

	return r < 0 ? r : jail_prove(&jail, err);
}
