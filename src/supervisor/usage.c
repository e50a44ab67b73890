/* SPDX-License-Identifier: Apache-2.0 */
/* Usage of a sandbox; see usage.h. */
#include "supervisor/usage.h"

#include <sys/vfs.h>

static uint64_t
number(const struct cgroups *c, const char *group, enum cgroup_knob knob)
{
	uint64_t n;

	return cgroup_read(c, group, knob, &n) < 0 ? 0 : n;
}

static uint32_t
count(const struct cgroups *c, const char *group, enum cgroup_knob knob, const char *key)
{
	uint64_t n;

	if (cgroup_read_key(c, group, knob, key, &n) < 0)
		return 0;
	return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

void
usage_read(const struct cgroups *c, const char *group, int volume, struct usage *ret)
{
	struct statfs fs;

	*ret = (struct usage){
		.memory_bytes = number(c, group, KNOB_MEMORY_NOW),
		.memory_peak_bytes = number(c, group, KNOB_MEMORY_PEAK),
		.cpu_us = cgroup_cpu_us(c, group),
		.pids = (uint32_t)number(c, group, KNOB_PIDS_NOW),
		.oom_kills = count(c, group, KNOB_MEMORY_EVENTS, "oom_kill"),
		.pids_refused = count(c, group, KNOB_PIDS_EVENTS, "max"),
	};
	if (volume < 0 || fstatfs(volume, &fs) < 0)
		return;
	ret->disk_used_bytes = (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
	ret->disk_free_bytes = (uint64_t)fs.f_bfree * (uint64_t)fs.f_bsize;
	ret->inodes_free = (uint32_t)fs.f_ffree;
}
