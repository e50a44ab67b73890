/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces: the user namespace of a sandbox, and questions about those of a process. */
#pragma once

#include "lib/base/err.h"

#include <stdint.h>
#include <sys/types.h>

/* Bits of struct facts, as proto/messages.def says. */
enum ns_bit {
	NS_USER = 1,
	NS_MNT = 2,
	NS_PID = 4,
	NS_NET = 8,
	NS_IPC = 16,
	NS_UTS = 32,
	NS_CGROUP = 64,
};

/*
 * A new user namespace in which ids 0 to count-1 are the host's base and up, and which owns nothing: no other
 * namespace and no mount is made in it. It belongs to the host's uid `base`. The descriptor is all that keeps it.
 */
int ns_user_make(uint32_t base, uint32_t count, struct err *err) MUST_CHECK;

/* Which namespaces of the process differ from ours, and which of all are owned by our user namespace. */
int ns_look(pid_t pid, uint32_t *ret_own, uint32_t *ret_owner_host, struct err *err) MUST_CHECK;

/* The host's uid that the user namespace of the process belongs to. */
int ns_user_owner(pid_t pid, uint32_t *ret, struct err *err) MUST_CHECK;

/* In the process's own network namespace: lo goes up. */
int ns_lo_up(struct err *err) MUST_CHECK;
