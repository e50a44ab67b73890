/* SPDX-License-Identifier: Apache-2.0 */
/* Proof of teardown; see proof.h. Called by teardown.c. */
#include "supervisor/proof.h"

static uint16_t
count(unsigned n)
{
	return n > UINT16_MAX ? UINT16_MAX : (uint16_t)n;
}

static void
volumes_hear(struct sandboxes *all)
{
	int ended;

	while ((ended = marks_volume_ended(all->watch)) != 0)
		list_each (sb, &all->list, struct sandbox, link)
			if (sb->marks.volume == ended)
				sb->marks.volume = 0;
}

void
proof_take(struct sandbox *sb, unsigned groups_left, struct proof *ret)
{

	volumes_hear(sb->all);
	*ret = (struct proof){
		.processes = count(cgroup_processes(sb->all->cgroups, sb->name)),
		.cgroups = count(groups_left),
		.mounts = sb->marks.volume != 0,
		.namespaces = count(marks_namespaces_left(&sb->marks)),
	};
}
