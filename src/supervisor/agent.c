/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's program; see agent.h. */
#include "supervisor/agent.h"

#include "lib/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { AGENT_MAX_BYTES = 16 << 20 };

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3 */
#endif

/* Where memory files are not executable unless asked; an older kernel does not know the question. */
static int
memory_file(void)
{
	int fd = memfd_create("agent", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

	return fd < 0 && errno == EINVAL ? memfd_create("agent", MFD_CLOEXEC | MFD_ALLOW_SEALING)
					 : fd;
}

static int
copy(int from, int to, struct err *err)
{
	static uint8_t room[65536];
	size_t n = 0;

	do {
		int r = fd_read_upto(from, room, sizeof(room), &n, err);

		if (r == 0)
			r = fd_write_all(to, room, n, err);
		if (r < 0)
			return r;
	} while (n == sizeof(room));
	return 0;
}

int
agent_load(const char *path, struct err *err)
{
	auto_fd int from = open(path, O_RDONLY | O_CLOEXEC), to = memory_file();
	char own[64];
	struct stat st;
	int r;

	if (from < 0 || fstat(from, &st) < 0)
		return err_errno(err, "%s", path);
	if (to < 0)
		return err_errno(err, "a memory file");
	if (!S_ISREG(st.st_mode) || st.st_size > AGENT_MAX_BYTES)
		return err_set(err, -EINVAL, "%s is not a program of at most 16 MiB", path);
	r = copy(from, to, err);
	if (r < 0)
		return r;
	if (fchmod(to, 0555) < 0 ||
		fcntl(to, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) <
			0)
		return err_errno(err, "sealing the agent");
	/* A file that is open for writing somewhere cannot be executed: open it again for reading. */
	(void)snprintf(own, sizeof(own), "/proc/self/fd/%d", to);
	r = open(own, O_RDONLY | O_CLOEXEC);
	return r < 0 ? err_errno(err, "the agent in memory") : r;
}
