/* SPDX-License-Identifier: Apache-2.0 */
/* Proof of teardown; see proof.h. Called by teardown.c. */
#include "supervisor/proof.h"

#include "supervisor/text.h"

#include <fcntl.h>

enum { ROOM_BYTES = 1 << 20 };

/* Mounts in our own table whose source is the sandbox's volume. */
static uint16_t
mounts_count(const char *name)
{
	static char room[ROOM_BYTES];
	struct view text, line, word;
	unsigned n = 0;

	if (text_file(AT_FDCWD, "/proc/self/mountinfo", room, sizeof(room), &text) < 0)
		return UINT16_MAX; /* not known is not zero */
	while (text_line(&text, &line))
		while (text_word(&line, &word))
			n += view_is(word, name);
	return (uint16_t)n;
}

static bool
exists(pid_t pid, int pidfd)
{
	return pid > 0 && pidfd >= 0; /* a process that was waited for has no descriptor here */
}

void
proof_take(const struct sandbox *sb, unsigned groups_left, bool journal, struct proof *ret)
{
	const struct relay *r = &sb->relay;

	*ret = (struct proof){
		.processes = (uint16_t)(cgroup_processes(sb->all->cgroups, sb->name) +
					exists(sb->pid, sb->pidfd) + exists(r->pid, r->pidfd)),
		.cgroups = (uint16_t)groups_left,
		.mounts = mounts_count(sb->name),
		.namespaces = (uint16_t)(sb->userns >= 0),
		.descriptors = (uint16_t)((sb->pidfd >= 0) + (sb->sock >= 0) + (sb->volume >= 0) +
					  (r->pidfd >= 0) + (r->channel >= 0) + (r->engine >= 0) +
					  (r->edge >= 0)),
		.journal = journal,
	};
}

bool
proof_is_zero(const struct proof *p)
{
	return p->processes == 0 && p->cgroups == 0 && p->mounts == 0 && p->namespaces == 0 &&
	       p->descriptors == 0 && p->journal == 0;
}
