/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jail; see confine.h. It makes sockets, so the filter names which (dialer-syscalls.def), and where the kernel can tell by port
 * (Landlock ABI 4) it connects TCP to the ports of its tables and of the name servers only. Tables of gateways come later, their ports before
 * (DIALER_PORTS). No file can be opened any more.
 */
#include "confine.h"

#include "dialer-syscalls.h"
#include "lib/jail/jail.h"
#include "limits.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

void
port_tell(uint8_t told[static PORTS / 8], uint16_t port)
{
	told[port / 8] |= (uint8_t)(1U << port % 8);
}

bool
port_told(const uint8_t told[static PORTS / 8], uint16_t port)
{
	return (told[port / 8] >> port % 8 & 1) != 0;
}

/* Origins, name servers and policies. Returns how many. */
static size_t
ports_all(const struct dialer *d, uint16_t ret[static PORTS])
{
	uint8_t all[PORTS / 8];
	size_t n = 0;

	memcpy(all, d->told, sizeof(all));
	for (size_t i = 0; i < d->origins.n; i++)
		port_tell(all, d->origins.row[i].port);
	for (size_t i = 0; i < d->servers.n; i++)
		port_tell(all, d->servers.row[i].port);
	for (unsigned port = 1; port < PORTS; port++)
		if (port_told(all, (uint16_t)port))
			ret[n++] = (uint16_t)port;
	return n;
}

int
confine(const struct dialer *d, struct err *err)
{
	auto_free uint16_t *ports = calloc(PORTS, sizeof(*ports));
	struct jail_rlimit rlimits[] = {{RLIMIT_NOFILE, LIMIT_DESCRIPTORS}};
	struct rlimit had;

	if (ports == NULL)
		return err_set(err, -ENOMEM, "no memory for the ports");
	if (getrlimit(RLIMIT_NOFILE, &had) < 0)
		return err_errno(err, "limit of open files");
	if (rlimits[0].value > had.rlim_max)
		rlimits[0].value = had.rlim_max; /* it was started with less */
	const struct jail jail = {
		.uid = getuid(),
		.gid = getgid(),
		.rlimits = rlimits,
		.rlimits_n = ARRAY_LEN(rlimits),
		.ports = ports,
		.ports_n = ports_all(d, ports),
		.filter = dialer_syscalls,
		.filter_n = ARRAY_LEN(dialer_syscalls),
	};
	int r = jail_enter(&jail, err);

	return r < 0 ? r : jail_prove(&jail, err);
}
