/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts of the classes `mount` and `namespace`. See probe.h. */
#include "probe.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/quota.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/quota.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_listmount
#define SYS_listmount 458
#endif
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif

/* ---- mounts ---- */

ATTEMPT(mount_tmpfs, mount("none", "/tmp", "tmpfs", 0, NULL))
ATTEMPT(mount_proc, mount("proc", "/proc", "proc", 0, NULL))
ATTEMPT(mount_bind, mount("/", "/tmp", NULL, MS_BIND, NULL))
ATTEMPT(mount_remount, mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL))
ATTEMPT(mount_cgroup, mount("none", "/tmp", "cgroup2", 0, NULL))
ATTEMPT(mount_shared, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
ATTEMPT(umount_proc, umount2("/proc/kcore", MNT_DETACH))
ATTEMPT(fs_open, fsopen("tmpfs", 0))
ATTEMPT(fs_config, fsconfig(-1, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
ATTEMPT(fs_mount, fsmount(-1, 0, 0))
ATTEMPT(fs_pick, fspick(AT_FDCWD, "/tmp", 0))
ATTEMPT(tree_open, open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | AT_RECURSIVE))
ATTEMPT(tree_open_attr, syscall(SYS_open_tree_attr, AT_FDCWD, "/", OPEN_TREE_CLONE, NULL, 0))
ATTEMPT(mount_move, move_mount(AT_FDCWD, "/tmp", AT_FDCWD, "/run", 0))
ATTEMPT(mount_attributes, mount_setattr(AT_FDCWD, "/", AT_RECURSIVE,
				  &(struct mount_attr){.attr_clr = 1}, MOUNT_ATTR_SIZE_VER0))
ATTEMPT(root_pivot, syscall(SYS_pivot_root, "/tmp", "/tmp"))
ATTEMPT(root_change, chroot("/tmp"))
ATTEMPT(swap_on, swapon("/tmp/none", 0))
ATTEMPT(swap_off, swapoff("/tmp/none"))
ATTEMPT(quota, quotactl(QCMD(Q_SYNC, USRQUOTA), NULL, 0, NULL))

int
try_mount_list(const struct given *g, struct note *n)
{
	/* struct mnt_id_req, first version: size, spare, LSMT_ROOT, last id */
	const struct {
		uint32_t size, spare;
		uint64_t id, last;
	} request = {24, 0, UINT64_MAX, 0};
	uint64_t ids[16];

	(void)g, (void)n;
	return syscall(SYS_listmount, &request, ids, 16, 0) < 0 ? errno : WORKED;
}

/* ---- new namespaces ---- */

static const struct {
	const char *name;
	uint64_t flag;
} kinds[] = {
	{"user", CLONE_NEWUSER},
	{"mnt", CLONE_NEWNS},
	{"pid", CLONE_NEWPID},
	{"net", CLONE_NEWNET},
	{"ipc", CLONE_NEWIPC},
	{"uts", CLONE_NEWUTS},
	{"cgroup", CLONE_NEWCGROUP},
	{"time", CLONE_NEWTIME},
	{"user and mnt", CLONE_NEWUSER | CLONE_NEWNS},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

int
try_unshare_each(const struct given *g, struct note *n)
{
	(void)g;
	for (size_t i = 0; i < KINDS; i++)
		if (unshare((int)kinds[i].flag) == 0 || errno != EPERM) {
			NOTE(n, "%s: %s", kinds[i].name, strerrorname_np(errno));
			return WORKED;
		}
	return OWN;
}

int
try_clone_each(const struct given *g, struct note *n)
{
	(void)g;
	for (size_t i = 0; i < KINDS; i++) {
		long pid;

		if (kinds[i].flag == CLONE_NEWTIME)
			continue; /* clone has no room for it: the bit is part of the signal */
		pid = syscall(SYS_clone, kinds[i].flag | SIGCHLD, NULL, NULL, NULL, 0);
		if (pid == 0)
			_exit(0);
		if (pid > 0 || errno != EPERM) {
			NOTE(n, "%s: %s", kinds[i].name, strerrorname_np(errno));
			return WORKED;
		}
	}
	return OWN;
}

static long
clone3_with(uint64_t flags, int cgroup)
{
	struct clone_args a = {.flags = flags, .exit_signal = SIGCHLD, .cgroup = (unsigned)cgroup};
	long pid = syscall(SYS_clone3, &a, sizeof(a));

	if (pid == 0)
		_exit(0);
	return pid;
}

int
try_clone3_each(const struct given *g, struct note *n)
{
	(void)g;
	for (size_t i = 0; i < KINDS; i++)
		if (clone3_with(kinds[i].flag, 0) > 0 || errno != ENOSYS) {
			NOTE(n, "%s: %s", kinds[i].name, strerrorname_np(errno));
			return WORKED;
		}
	return OWN;
}

ATTEMPT(clone3_cgroup, clone3_with(CLONE_INTO_CGROUP, open("/", O_RDONLY | O_CLOEXEC)))

/* ---- namespaces that are there ---- */

int
try_setns_self(const struct given *g, struct note *n)
{
	static const char *const names[] = {"mnt", "net", "ipc", "uts", "pid", "cgroup"};

	(void)g;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[32];
		int fd;

		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (setns(fd, 0) == 0 || errno != EPERM) {
			NOTE(n, "%s: %s", names[i], strerrorname_np(errno));
			return WORKED;
		}
	}
	return OWN;
}

ATTEMPT(setns_init, setns((int)syscall(SYS_pidfd_open, 1, 0), CLONE_NEWPID))

static long
relation(const char *path, unsigned long question)
{
	return ioctl(open(path, O_RDONLY | O_CLOEXEC), question);
}

/* EPERM: the owner lies outside what the sandbox can see, so that no uid inside owns anything. */
ATTEMPT(owner_network, relation("/proc/self/ns/net", NS_GET_USERNS))
ATTEMPT(owner_mounts, relation("/proc/self/ns/mnt", NS_GET_USERNS))
ATTEMPT(parent_user, relation("/proc/self/ns/user", NS_GET_PARENT))
ATTEMPT(parent_pid, relation("/proc/self/ns/pid", NS_GET_PARENT))
