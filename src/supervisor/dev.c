/* SPDX-License-Identifier: Apache-2.0 */
/* The device tree; see dev.h. */
#include "supervisor/dev.h"

#include "supervisor/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static const struct {
	const char *name;
	unsigned major, minor;
} nodes[] = {{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9},
	{"tty", 5, 0}};

static const struct {
	const char *name, *target;
} links[] = {{"fd", "/proc/self/fd"}, {"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"},
	{"stderr", "/proc/self/fd/2"}, {"ptmx", "pts/ptmx"}};

static const char *const dirs[] = {"pts", "shm"};

static int
fill(int fd, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
		if (mknodat(fd, nodes[i].name, S_IFCHR | 0666,
			    makedev(nodes[i].major, nodes[i].minor)) < 0 ||
			fchmodat(fd, nodes[i].name, 0666, 0) < 0)
			return err_errno(err, "device node %s", nodes[i].name);
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		if (symlinkat(links[i].target, fd, links[i].name) < 0)
			return err_errno(err, "link %s", links[i].name);
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (mkdirat(fd, dirs[i], 0755) < 0)
			return err_errno(err, "directory %s", dirs[i]);
	return 0;
}

int
dev_make(int stage, const char *at, struct err *err)
{
	const struct mount_option options[] = {
		{"mode", "0755"}, {"size", "65536"}, {"nr_inodes", "32"}};
	auto_fd int fd = mount_new(
		"tmpfs", options, ARRAY_LEN(options), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
	int r = fd < 0 ? fd : fill(fd, err);

	if (r == 0)
		r = mount_change(fd, MOUNT_ATTR_RDONLY, -1, err);
	return r == 0 ? mount_attach(fd, stage, at, err) : r;
}

int
dev_copy(int stage, const char *at, int userns, struct err *err)
{
	auto_fd int fd = mount_copy(stage, at, err);
	struct err why;

	if (fd < 0)
		return fd;
	/* Without it the nodes show as owned by nobody: everybody may use them all the same. */
	return mount_change(fd, 0, userns, &why) == -ENOMEM ? err_set(err, why.code, "%s", why.text)
							    : take_fd(&fd);
}
