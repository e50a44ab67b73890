/* SPDX-License-Identifier: Apache-2.0 */
/* The policy table as code; see policy.h. */
#include "engine/policy.h"

enum {
	POLICY_UIDS = 65536,
	POLICY_NAMESPACES = 127,  /* user mnt pid net ipc uts cgroup; bits in proto/messages.def */
	POLICY_OWNER_HOST = 126,  /* all but the user namespace itself */
	POLICY_DEVICE_MOUNTS = 2, /* /dev, /dev/pts */
	POLICY_SIGNALS = 4096,    /* LIMIT_SIGNALS of the supervisor */
	POLICY_OWN_WRITABLE = 2,  /* /dev/pts, /dev/shm */
};

/* KILL, SETGID, SETUID, SETPCAP: what the agent gives up again in front of every command. */
#define AGENT_CAPS \
	((UINT64_C(1) << 5) | (UINT64_C(1) << 6) | (UINT64_C(1) << 7) | (UINT64_C(1) << 8))

_Static_assert(POLICY_MAX <= 64, "a bit per fact");

const struct policy_info policy_info[POLICY_MAX] = {
#define FACT(name, holds, sentence) {#name, sentence},
#include "engine/policy.def"
#undef FACT
};

static bool
caps_ok(uint64_t caps)
{
	return caps == 0 || caps == AGENT_CAPS;
}

static bool
in_range(const struct facts *f, const struct wanted *w)
{
	uint64_t first = w->uid_first, end = first + (uint64_t)w->uid_slots * POLICY_UIDS;

	return f->uid_base != 0 && f->uid_base >= first &&
	       (uint64_t)f->uid_base + f->uid_count <= end;
}

/* Uids out of range are told by their own row. */
static bool
owner_ok(const struct facts *f, const struct wanted *w)
{
	return !in_range(f, w) || f->userns_owner == f->uid_base;
}

uint64_t
policy_differences(const struct facts *f, const struct wanted *w)
{
	uint64_t bits = 0;

#define FACT(name, holds, sentence) \
	if (!(holds))               \
		bits |= UINT64_C(1) << POLICY_##name;
#include "engine/policy.def"
#undef FACT
	return bits;
}
