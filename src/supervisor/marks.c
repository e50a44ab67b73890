/* SPDX-License-Identifier: Apache-2.0 */
/* Marks of a sandbox; see marks.h. Called by the sandbox's life and by proof.c. */
#include "supervisor/marks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>

/* In place of a directory descriptor: the root of the file system of namespaces (FD_NSFS_ROOT of linux/fcntl.h). */
enum { NSFS_ROOT = -10003 };

/* Those that go with the last process. */
static const char *const names[MARKS_NAMESPACES] = {"mnt", "net", "ipc", "uts", "cgroup"};

union handle {
	struct file_handle head;
	uint8_t room[sizeof(struct file_handle) + MARK_HANDLE_BYTES];
};

static int
namespace_mark(struct marks *m, size_t i, pid_t pid, struct err *err)
{
	union handle h = {.head = {.handle_bytes = MARK_HANDLE_BYTES}};
	char path[64];
	struct stat st;
	auto_fd int fd = -1;
	int mount;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, names[i]);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, "%s", path);
	m->ns[i].dev = st.st_dev;
	m->ns[i].inode = st.st_ino;
	m->ns[i].taken = true;
	if (name_to_handle_at(fd, "", &h.head, &mount, AT_EMPTY_PATH) < 0)
		return errno == EOPNOTSUPP ? 0 : err_errno(err, "handle of %s", path);
	m->ns[i].bytes = h.head.handle_bytes;
	m->ns[i].type = h.head.handle_type;
	memcpy(m->ns[i].handle, h.head.f_handle, h.head.handle_bytes);
	return 0;
}

int
marks_namespaces(struct marks *m, pid_t pid, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < MARKS_NAMESPACES; i++)
		r = namespace_mark(m, i, pid, err);
	return r;
}

int
marks_open(struct err *err)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	return fd < 0 ? err_errno(err, "inotify") : fd;
}

int
marks_volume(struct marks *m, int watch, int volume, struct err *err)
{
	char path[64];
	int wd;

	/* A root directory is never deleted: all that can be heard of it is the end of its file system. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", volume);
	wd = inotify_add_watch(watch, path, IN_DELETE_SELF | IN_ONLYDIR);
	if (wd < 0)
		return err_errno(err, "a watch on the volume of a sandbox");
	m->volume = wd;
	return 0;
}

/* ---- afterwards ---- */

/* A process that we may look at is in it. */
static bool
is_entered(const char *name, uint64_t dev, uint64_t inode)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;
	bool found = proc == NULL; /* not known is not gone */

	while (!found && (e = readdir(proc)) != NULL) {
		char path[64];
		struct stat st;

		(void)snprintf(path, sizeof(path), "%.20s/ns/%s", e->d_name, name);
		found = fstatat(dirfd(proc), path, &st, 0) == 0 && st.st_dev == dev &&
			st.st_ino == inode;
	}
	if (proc != NULL)
		(void)closedir(proc); /* only read */
	return found;
}

static bool
namespace_left(const struct marks *m, size_t i)
{
	union handle h = {.head = {.handle_bytes = m->ns[i].bytes, .handle_type = m->ns[i].type}};
	auto_fd int fd = -1;

	if (m->ns[i].bytes == 0)
		return is_entered(names[i], m->ns[i].dev, m->ns[i].inode);
	memcpy(h.head.f_handle, m->ns[i].handle, m->ns[i].bytes);
	fd = open_by_handle_at(NSFS_ROOT, &h.head, O_RDONLY | O_CLOEXEC);
	return fd >= 0 || errno != ESTALE; /* any other answer is not known: not gone */
}

unsigned
marks_namespaces_left(struct marks *m)
{
	unsigned left = 0;

	for (size_t i = 0; i < MARKS_NAMESPACES; i++) {
		m->ns[i].taken = m->ns[i].taken && namespace_left(m, i);
		left += m->ns[i].taken;
	}
	return left;
}

int
marks_volume_ended(int watch)
{
	struct inotify_event event; /* none of ours has a name behind it */

	while (read(watch, &event, sizeof(event)) == (ssize_t)sizeof(event))
		if ((event.mask & IN_UNMOUNT) != 0)
			return event.wd;
	return 0;
}
