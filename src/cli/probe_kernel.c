/* SPDX-License-Identifier: Apache-2.0 */
/* Probes of the kernel; see probe.h. */
#include "cli/probe.h"

#include "lib/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Room for a list of names in a phrase. */
static void
add_name(char detail[static PROBE_TEXT], const char *name)
{
	size_t n = strlen(detail);

	(void)snprintf(detail + n, PROBE_TEXT - n, "%s%s", n == 0 ? "" : " ", name);
}

enum probe_state
probe_caps(struct cli *cli, char detail[static PROBE_TEXT])
{
	static const struct {
		int cap;
		const char *name;
	} caps[] = {
#define KEEP(name, why) {CAP_##name, "CAP_" #name},
#include "proto/caps.def"
#undef KEEP
	};

	(void)cli;
	for (size_t i = 0; i < ARRAY_LEN(caps); i++)
		if (prctl(PR_CAPBSET_READ, caps[i].cap, 0, 0, 0) != 1)
			add_name(detail, caps[i].name);
	if (detail[0] != '\0')
		return PROBE_MISSING;
	(void)snprintf(detail, PROBE_TEXT, "%s",
		geteuid() == 0 ? "all of them" : "root here could have all of them");
	return PROBE_OK;
}

/* 0 or errno of unshare in a child, so that nothing of it stays with us. */
static int
try_unshare(int flags)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return errno;
	if (pid == 0)
		_exit(unshare(flags) == 0 ? 0 : errno);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

enum probe_state
probe_namespaces(struct cli *cli, char detail[static PROBE_TEXT])
{
	static const struct {
		int flag;
		const char *name;
	} kinds[] = {
		{CLONE_NEWUSER, "user"},
		{CLONE_NEWNS, "mount"},
		{CLONE_NEWPID, "pid"},
		{CLONE_NEWNET, "net"},
		{CLONE_NEWIPC, "ipc"},
		{CLONE_NEWUTS, "uts"},
		{CLONE_NEWCGROUP, "cgroup"},
	};
	bool root = geteuid() == 0;

	(void)cli;
	if (!root && try_unshare(CLONE_NEWUSER) != 0) {
		(void)snprintf(detail, PROBE_TEXT, "users other than root may not make any here");
		return PROBE_UNTRIED;
	}
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (try_unshare(kinds[i].flag | (root ? 0 : CLONE_NEWUSER)) != 0)
			add_name(detail, kinds[i].name);
	if (detail[0] != '\0')
		return PROBE_MISSING;
	(void)snprintf(detail, PROBE_TEXT, "all seven were made");
	return PROBE_OK;
}

/* With arguments that cannot succeed: a kernel that has the call says something else than ENOSYS. */
enum probe_state
probe_calls(struct cli *cli, char detail[static PROBE_TEXT])
{
	static const struct {
		long number;
		const char *name;
	} calls[] = {
		{SYS_clone3, "clone3"},
		{SYS_openat2, "openat2"},
		{SYS_open_tree, "open_tree"},
		{SYS_move_mount, "move_mount"},
		{SYS_fsopen, "fsopen"},
		{SYS_fsmount, "fsmount"},
		{SYS_mount_setattr, "mount_setattr"},
		{SYS_pidfd_send_signal, "pidfd_send_signal"},
		{SYS_memfd_create, "memfd_create"},
	};

	(void)cli;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (syscall(calls[i].number, -1L, NULL, -1L, -1L, 0L) < 0 && errno == ENOSYS)
			add_name(detail, calls[i].name);
	if (syscall(SYS_close_range, ~0U, 0U, 0U) < 0 &&
		errno == ENOSYS) /* first above last: EINVAL */
		add_name(detail, "close_range");
	if (detail[0] != '\0')
		return PROBE_MISSING;
	(void)snprintf(detail, PROBE_TEXT, "all %zu are there", ARRAY_LEN(calls) + 1);
	return PROBE_OK;
}

enum probe_state
probe_erofs(struct cli *cli, char detail[static PROBE_TEXT])
{
	char list[8192];
	struct err unused = {0};
	size_t n = 0;
	int fd auto_fd = (int)syscall(SYS_fsopen, "erofs", FSOPEN_CLOEXEC);

	(void)cli;
	if (fd < 0 && errno == EPERM) {
		fd = open("/proc/filesystems", O_RDONLY | O_CLOEXEC);
		if (fd < 0 || fd_read_upto(fd, list, sizeof(list) - 1, &n, &unused) < 0)
			return PROBE_UNTRIED;
		list[n] = '\0';
		(void)snprintf(detail, PROBE_TEXT, "in /proc/filesystems");
		if (strstr(list, "\terofs\n") != NULL)
			return PROBE_OK;
		(void)snprintf(detail, PROBE_TEXT, "not loaded; only root can load it");
		return PROBE_UNTRIED;
	}
	(void)snprintf(detail, PROBE_TEXT, "%s",
		fd >= 0 ? "the kernel knows it" : "the kernel does not know it");
	return fd >= 0 ? PROBE_OK : PROBE_MISSING;
}

/* The kernel looks at the user namespace's descriptor before it looks at the mount. */
enum probe_state
probe_idmap(struct cli *cli, char detail[static PROBE_TEXT])
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (__u64)INT32_MAX};
	int failed = mount_setattr(-1, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0 ? errno : 0;

	(void)cli;
	if (failed == EPERM)
		return PROBE_UNTRIED;
	(void)snprintf(detail, PROBE_TEXT, "%s",
		failed == EBADF ? "the kernel has them" : "the kernel has none");
	return failed == EBADF ? PROBE_OK : PROBE_MISSING;
}

enum probe_state
probe_seccomp(struct cli *cli, char detail[static PROBE_TEXT])
{
	uint32_t action = SECCOMP_RET_KILL_PROCESS;
	bool there = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;

	(void)cli;
	(void)snprintf(detail, PROBE_TEXT, "%s", there ? "filters that kill" : "no filters");
	return there ? PROBE_OK : PROBE_MISSING;
}

enum probe_state
probe_landlock(struct cli *cli, char detail[static PROBE_TEXT])
{
	long version = syscall(
		SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	(void)cli;
	if (version < 1) {
		(void)snprintf(detail, PROBE_TEXT, "%s",
			errno == ENOSYS ? "not in this kernel" : "switched off");
		return PROBE_MISSING;
	}
	(void)snprintf(detail, PROBE_TEXT, "version %ld", version);
	return PROBE_OK;
}
