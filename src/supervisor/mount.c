/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts by descriptor; see mount.h. Used by the supervisor and by the process that becomes PID 1. */
#include "supervisor/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What the kernel wrote about the failure into the context, if anything. */
static int
context_failed(int fs, const char *what, const char *type, struct err *err)
{
	int code = errno;
	char said[160];
	ssize_t n = read(fs, said, sizeof(said) - 1);

	errno = code;
	if (n <= 0)
		return err_errno(err, "%s of %s", what, type);
	said[n] = '\0';
	return err_errno(err, "%s of %s: %.120s", what, type, said);
}

int
mount_new(const char *type, const struct mount_option *options, size_t n, unsigned attrs,
	struct err *err)
{
	auto_fd int fs = fsopen(type, FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0)
		return err_errno(err, "file system %s", type);
	for (size_t i = 0; i < n; i++) {
		const struct mount_option *o = &options[i];
		enum fsconfig_command set = o->value == NULL ? FSCONFIG_SET_FLAG
							     : FSCONFIG_SET_STRING;

		if (fsconfig(fs, set, o->key, o->value, 0) < 0)
			return context_failed(fs, o->key, type, err);
	}
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return context_failed(fs, "creation", type, err);
	fd = fsmount(fs, FSMOUNT_CLOEXEC, attrs);
	return fd < 0 ? context_failed(fs, "mount", type, err) : fd;
}

int
mount_copy(int dir, const char *path, struct err *err)
{
	unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW;
	int fd = open_tree(dir, path, path[0] == '\0' ? flags | AT_EMPTY_PATH : flags);

	return fd < 0 ? err_errno(err, "copy of the mount at %s", path) : fd;
}

int
mount_attach(int mount, int dir, const char *path, struct err *err)
{
	unsigned flags = MOVE_MOUNT_F_EMPTY_PATH;

	if (path[0] == '\0')
		flags |= MOVE_MOUNT_T_EMPTY_PATH;
	return move_mount(mount, "", dir, path, flags) < 0 ? err_errno(err, "mount at %s", path)
							   : 0;
}

int
mount_change(int mount, unsigned attrs, int userns, struct err *err)
{
	struct mount_attr a = {.attr_set = (__u64)attrs};

	if (userns >= 0) {
		a.attr_set |= (__u64)MOUNT_ATTR_IDMAP;
		a.userns_fd = (__u64)userns;
	}
	if (mount_setattr(mount, "", AT_EMPTY_PATH, &a, sizeof(a)) < 0)
		return err_errno(err, "flags of a mount");
	return 0;
}

int
mount_propagation(unsigned long flag, struct err *err)
{
	return mount(NULL, "/", NULL, MS_REC | flag, NULL) < 0 ? err_errno(err, "mount propagation")
							       : 0;
}

int
mount_pivot_here(struct err *err)
{
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return err_errno(err, "pivot_root");
	/* The old root now lies on top of the new one. */
	if (umount2(".", MNT_DETACH) < 0)
		return err_errno(err, "detaching the host's root");
	return chdir("/") < 0 ? err_errno(err, "chdir") : 0;
}
