/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jail of the broker, which reads what providers answer and holds every secret: no socket can be made, connected or bound, so whoever
 * takes it over still reaches only what the dialer's own table names; no process, no thread; no file but those of its directories. The
 * uid is the one it was started with (proto/fds.def).
 */
#include "broker/confine.h"

#include "broker-syscalls.h"
#include "lib/jail/jail.h"

#include <unistd.h>

int
confine(const struct broker *b, struct err *err)
{
	struct jail_path paths[2 + ARRAY_LEN(b->mirrors)] = {
		{.fd = b->state, .access = JAIL_READ | JAIL_WRITE},
		{.fd = b->trust, .access = JAIL_READ},
	};
	const struct jail jail = {
		.uid = getuid(),
		.gid = getgid(),
		.paths = paths,
		.paths_n = 2 + b->nmirrors,
		.filter = broker_syscalls,
		.filter_n = ARRAY_LEN(broker_syscalls),
	};
	int r;

	for (size_t i = 0; i < b->nmirrors; i++)
		paths[2 + i] = (struct jail_path){
			.fd = b->mirrors[i], .access = JAIL_READ | JAIL_WRITE};
	r = jail_enter(&jail, err);
	return r < 0 ? r : jail_prove(&jail, err);
}
