/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of the guest; see file.h. */
#include "file.h"

#include "note.h"

#include "lib/base/id.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

int
file_root(void)
{
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int
file_open(int root, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	long fd;

	/* EAGAIN: something was renamed while the kernel walked. */
	for (int i = 0; i < 16; i++) {
		fd = syscall(SYS_openat2, root, path[0] == '\0' ? "/" : path, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return fd < 0 ? -errno : (int)fd;
}

int
file_open_checked(int root, const char *path, int flags, struct stat *ret_st)
{
	auto_fd int fd = file_open(root, path, flags | O_NONBLOCK | O_NOCTTY);
	struct statfs fs;

	if (fd < 0)
		return fd;
	if (fstat(fd, ret_st) < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	if (!S_ISREG(ret_st->st_mode) && !S_ISDIR(ret_st->st_mode))
		return -ENXIO;
	if (fs.f_type == PROC_SUPER_MAGIC)
		return -EACCES;
	return take_fd(&fd);
}

int
file_make_dir(int root, const char *path, mode_t mode, bool *ret_made)
{
	auto_fd int at = file_open(root, "/", O_PATH | O_DIRECTORY);
	char prefix[4097];
	size_t n = strlen(path), start = 0;

	if (at < 0)
		return at;
	if (n >= sizeof(prefix))
		return -ENAMETOOLONG;
	memcpy(prefix, path, n + 1);
	*ret_made = false;
	for (size_t i = 0; i <= n; i++) {
		int next;

		if (i < n && path[i] != '/')
			continue;
		if (i == start) {
			start = i + 1;
			continue;
		}
		prefix[i] = '\0';
		next = file_open(root, prefix, O_PATH | O_DIRECTORY);
		if (next == -ENOENT) {
			if (mkdirat(at, prefix + start, mode) == 0)
				*ret_made = true;
			else if (errno != EEXIST)
				return -errno;
			next = file_open(root, prefix, O_PATH | O_DIRECTORY);
		}
		if (next < 0)
			return next;
		(void)close(at); /* O_PATH: nothing to lose */
		at = next;
		prefix[i] = path[i];
		start = i + 1;
	}
	return take_fd(&at);
}

int
file_parent(int root, char *path, bool make, int *ret_dir, const char **ret_name)
{
	char *slash = strrchr(path, '/');
	const char *name = slash == NULL ? path : slash + 1;
	const char *dir = slash == NULL ? "/" : path;
	bool made;
	int fd;

	if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EISDIR;
	if (slash != NULL)
		*slash = '\0';
	fd = make ? file_make_dir(root, dir, 0755, &made)
		  : file_open(root, dir, O_PATH | O_DIRECTORY);
	if (fd < 0)
		return fd;
	*ret_dir = fd;
	*ret_name = name;
	return 0;
}

int
file_new_open(struct file_new *f, int dir, const char *name, mode_t mode)
{
	struct stat st;
	struct id id;

	*f = (struct file_new){.dir = dir, .fd = -1, .mode = mode != 0 ? mode : 0644};
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISDIR(st.st_mode))
			return -EISDIR;
		if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
			return -ENXIO;
		/* The new file takes its place by its name, but a mode that forbids writing is meant. */
		if (S_ISREG(st.st_mode) &&
			faccessat(dir, name, W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
		if (mode == 0 && S_ISREG(st.st_mode))
			f->mode = st.st_mode & 07777;
	} else if (errno != ENOENT) {
		return -errno;
	}
	id_new(&id);
	id_text(&id, ".part-", f->temporary);
	f->fd = openat(
		dir, f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return f->fd < 0 ? -errno : 0;
}

int
file_new_commit(struct file_new *f, const char *name)
{
	int r = 0;

	if (fchmod(f->fd, f->mode) < 0 || renameat(f->dir, f->temporary, f->dir, name) < 0)
		r = -errno;
	if (r < 0) {
		file_new_abandon(f);
		return r;
	}
	if (close(take_fd(&f->fd)) < 0)
		return -errno; /* some file systems tell of a full disk only now */
	return 0;
}

void
file_new_abandon(struct file_new *f)
{
	if (f->fd < 0)
		return;
	(void)unlinkat(f->dir, f->temporary, 0); /* it may be gone: the guest can remove it */
	(void)close(take_fd(&f->fd));            /* nobody wants the bytes */
}

int
file_put(int fd, const void *p, size_t n)
{
	const uint8_t *at = p;

	while (n > 0) {
		ssize_t r = write(fd, at, n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		at += r;
		n -= (size_t)r;
	}
	return 0;
}

ssize_t
file_input(void *p, size_t n)
{
	struct pollfd fds[] = {
		{.fd = 0, .events = POLLIN}, {.fd = CHILD_CONTROL_FD, .events = POLLIN}};
	ssize_t r;

	do
		r = poll(fds, ARRAY_LEN(fds), -1);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	if (fds[1].revents != 0)
		return -ECANCELED;
	do
		r = read(0, p, n);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}
