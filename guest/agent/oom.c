/* SPDX-License-Identifier: Apache-2.0 */
/* Who is taken when there is no memory left; see oom.h. Called by main.c and launch.c, in PID 1 alone. */
#include "oom.h"

#include "lib/base/num.h"
#include "proto_gen.h"

#include <errno.h>
#include <unistd.h>

static const char first[] = "1000";

int
oom_look(struct oom *oom)
{
	ssize_t n = pread(FD_AGENT_OOM, oom->own, sizeof(oom->own), 0);
	uint64_t value;

	if (n < 0)
		return -errno;
	if (n < 2 || oom->own[n - 1] != '\n')
		return -EINVAL;
	oom->own_n = (size_t)n - 1;
	/* A value below 0 would be one of the host's: no sandbox has it. */
	return num_u64(view_of(oom->own, oom->own_n), 1000, &value);
}

int
oom_raise(const struct oom *oom)
{
	(void)oom;
	return write(FD_AGENT_OOM, first, sizeof(first) - 1) < 0 ? errno : 0;
}

void
oom_restore(const struct oom *oom)
{
	must(write(FD_AGENT_OOM, oom->own, oom->own_n) == (ssize_t)oom->own_n);
}
