/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of the whole machine; see budget.h. Called by start.c. Texts that are read here come from the kernel. */
#include "supervisor/budget.h"

#include "lib/base/num.h"
#include "supervisor/limits.h"
#include "supervisor/text.h"

#include <errno.h>
#include <fcntl.h>

/* An eighth, and never less than LIMIT_HOST_PIDS, is left for the host. */
int
budget_pids(uint32_t wanted, uint64_t pid_max, uint64_t threads_max, uint32_t *ret, struct err *err)
{
	uint64_t most = pid_max < threads_max ? pid_max : threads_max;
	uint64_t host = most / 8 > LIMIT_HOST_PIDS ? most / 8 : LIMIT_HOST_PIDS;

	if (most <= 2 * LIMIT_HOST_PIDS)
		return err_set(err, -ERANGE,
			"this kernel runs at most %llu processes and threads: raise "
			"kernel.pid_max and kernel.threads-max",
			(unsigned long long)most);
	if (wanted > most - LIMIT_HOST_PIDS)
		return err_set(err, -ERANGE,
			"limits.pids is %u, but this kernel runs at most %llu processes and "
			"threads, and %llu of them are the host's: raise kernel.pid_max and "
			"kernel.threads-max, or lower limits.pids",
			wanted, (unsigned long long)most, (unsigned long long)LIMIT_HOST_PIDS);
	most -= host;
	*ret = wanted != 0 ? wanted : most > UINT32_MAX ? UINT32_MAX : (uint32_t)most;
	return 0;
}

/* A quarter of what is not reserved stays for others that are no sandboxes. */
int
budget_ptys(uint64_t max, uint64_t reserve, uint32_t sandboxes, uint32_t *ret, struct err *err)
{
	uint64_t each = max > reserve ? (max - reserve) / 4 * 3 / sandboxes : 0;

	if (each == 0)
		return err_set(err, -ERANGE,
			"%u sandboxes cannot have a terminal each: raise kernel.pty.max (%llu, of "
			"which %llu are reserved), or lower limits.sandboxes",
			sandboxes, (unsigned long long)max, (unsigned long long)reserve);
	*ret = each < LIMIT_PTYS ? (uint32_t)each : (uint32_t)LIMIT_PTYS;
	return 0;
}

static int
kernel_number(const char *path, uint64_t *ret, struct err *err)
{
	char room[64];
	struct view text, line;
	int r = text_file(AT_FDCWD, path, room, sizeof(room), &text);

	if (r == 0)
		r = text_line(&text, &line) ? num_u64(line, UINT64_MAX, ret) : -EBADMSG;
	errno = -r;
	return r < 0 ? err_errno(err, "%s", path) : 0;
}

int
budget_find(struct settings *settings, struct budget *ret, struct err *err)
{
	uint64_t pids = 0, threads = 0, ptys = 0, reserve = 0;
	const struct {
		const char *path;
		uint64_t *into;
	} rows[] = {{"/proc/sys/kernel/pid_max", &pids}, {"/proc/sys/kernel/threads-max", &threads},
		{"/proc/sys/kernel/pty/max", &ptys}, {"/proc/sys/kernel/pty/reserve", &reserve}};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(rows); i++)
		r = kernel_number(rows[i].path, rows[i].into, err);
	if (r == 0)
		r = budget_pids(settings->max_pids, pids, threads, &settings->max_pids, err);
	return r == 0 ? budget_ptys(ptys, reserve, settings->max_sandboxes, &ret->ptys, err) : r;
}
