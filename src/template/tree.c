/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directory trees by descriptor; build.c, import.c and store.c call this as root. Links are
 * never followed: openat2 with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, or *at calls with
 * NOFOLLOW on one name.
 */
#include "template/tree.h"
#include "template/limits.h"

#include "lib/base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/* What a walk does with each entry of a directory; `depth` counts from 1. */
struct walk {
	int (*entry)(struct walk *w, int dir, const char *name, const struct stat *st,
		unsigned depth, struct err *err);
	struct tree_count *count; /* borrowed */
	int to;                   /* tree_copy: the directory that mirrors the current one */
};

static void
dir_cleanup(DIR **d)
{
	if (*d != NULL)
		(void)closedir(*d);
}

int
tree_open(int root, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};

	while (*path == '/')
		path++;
	return (int)syscall(SYS_openat2, root, *path != '\0' ? path : ".", &how, sizeof(how));
}

/* Calls w->entry for each entry of the directory `fd`, which stays open. */
static int
walk(struct walk *w, int fd, unsigned depth, struct err *err)
{
	DIR *d __attribute__((cleanup(dir_cleanup))) = NULL;
	int copy auto_fd = openat(fd, ".", DIR_FLAGS);
	const struct dirent *e;

	if (depth > LIMIT_TREE_DEPTH)
		return err_set(
			err, -ELOOP, "more than %u directories inside each other", depth - 1);
	d = copy < 0 ? NULL : fdopendir(copy);
	if (d == NULL)
		return err_errno(err, "open directory");
	(void)take_fd(&copy);
	for (errno = 0; (e = readdir(d)) != NULL; errno = 0) {
		struct stat st;
		int r;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return err_errno(err, "%s", e->d_name);
		r = w->entry(w, fd, e->d_name, &st, depth, err);
		if (r < 0)
			return r;
	}
	return errno != 0 ? err_errno(err, "read directory") : 0;
}

static int
walk_into(struct walk *w, int dir, const char *name, unsigned depth, struct err *err)
{
	int fd auto_fd = openat(dir, name, DIR_FLAGS);
	int r;

	if (fd < 0)
		return err_errno(err, "%s", name);
	r = walk(w, fd, depth + 1, err);
	return r < 0 ? err_context(err, "%.40s", name) : 0;
}

static int
remove_entry(struct walk *w, int dir, const char *name, const struct stat *st, unsigned depth,
	struct err *err)
{
	if (S_ISDIR(st->st_mode)) {
		int r = walk_into(w, dir, name, depth, err);

		if (r < 0)
			return r;
	}
	if (w->count != NULL)
		w->count->dropped++;
	if (unlinkat(dir, name, S_ISDIR(st->st_mode) ? AT_REMOVEDIR : 0) < 0)
		return err_errno(err, "remove %s", name);
	return 0;
}

int
tree_remove(int dir, const char *name, struct err *err)
{
	struct walk w = {.entry = remove_entry};
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_errno(err, "%s", name);
	return remove_entry(&w, dir, name, &st, 0, err);
}

int
tree_clear(int root, const char *path, struct tree_count *count, struct err *err)
{
	struct walk w = {.entry = remove_entry, .count = count};
	int fd auto_fd = tree_open(root, path, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		return errno == ENOENT ? 0 : err_errno(err, "%s", path);
	return walk(&w, fd, 1, err);
}

static int
copy_file(int from, int to, const char *name, const struct stat *st, struct err *err)
{
	int in auto_fd = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int out auto_fd = openat(
		to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat now;
	off_t left = st->st_size;

	if (in < 0 || out < 0 || fstat(in, &now) < 0)
		return err_errno(err, "copy %s", name);
	if (!S_ISREG(now.st_mode) || now.st_ino != st->st_ino || now.st_size != st->st_size)
		return err_set(err, -EBUSY, "%s changes while it is copied", name);
	while (left > 0) {
		ssize_t n = sendfile(out, in, NULL, (size_t)left);

		if (n < 0)
			return err_errno(err, "copy %s", name);
		if (n == 0)
			return err_set(err, -EBUSY, "%s changes while it is copied", name);
		left -= n;
	}
	if (fchmod(out, now.st_mode & 0777) < 0)
		return err_errno(err, "copy %s", name);
	return 0;
}

static int
copy_link(int from, int to, const char *name, struct err *err)
{
	char target[4096];
	ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);

	if (n < 0 || n == (ssize_t)sizeof(target) - 1)
		return err_errno(err, "read link %s", name);
	target[n] = '\0';
	return symlinkat(target, to, name) < 0 ? err_errno(err, "link %s", name) : 0;
}

static int
copy_dir(struct walk *w, int dir, const char *name, const struct stat *st, unsigned depth,
	struct err *err)
{
	int outer = w->to, r;

	if (mkdirat(outer, name, 0700) < 0)
		return err_errno(err, "make %s", name);
	int inner auto_fd = openat(outer, name, DIR_FLAGS);
	if (inner < 0)
		return err_errno(err, "open %s", name);
	w->to = inner;
	r = walk_into(w, dir, name, depth, err);
	w->to = outer;
	if (r == 0 && fchmod(inner, st->st_mode & 01777) < 0)
		return err_errno(err, "mode of %s", name);
	return r;
}

static int
copy_entry(struct walk *w, int dir, const char *name, const struct stat *st, unsigned depth,
	struct err *err)
{
	struct tree_count *count = w->count;

	if (depth == 1 && (strcmp(name, "dev") == 0 || strcmp(name, "proc") == 0 ||
				  strcmp(name, "sys") == 0)) {
		count->dropped++;
		return 0;
	}
	if (++count->entries > LIMIT_TREE_ENTRIES)
		return err_set(err, -E2BIG, "more than %zu files", (size_t)LIMIT_TREE_ENTRIES);
	if (S_ISREG(st->st_mode)) {
		count->bytes += (uint64_t)st->st_size;
		if (st->st_size < 0 || count->bytes > LIMIT_TREE_BYTES)
			return err_set(
				err, -EFBIG, "more than %zu bytes", (size_t)LIMIT_TREE_BYTES);
		if ((st->st_mode & (S_ISUID | S_ISGID)) != 0)
			count->stripped++;
		return copy_file(dir, w->to, name, st, err);
	}
	if (S_ISDIR(st->st_mode))
		return copy_dir(w, dir, name, st, depth, err);
	if (S_ISLNK(st->st_mode))
		return copy_link(dir, w->to, name, err);
	return err_set(err, -EINVAL, "%s is a device, FIFO or socket; a template holds none", name);
}

int
tree_copy(int from, int to, struct tree_count *count, struct err *err)
{
	struct walk w = {.entry = copy_entry, .count = count, .to = to};

	return walk(&w, from, 1, err);
}

static int
settle_entry(struct walk *w, int dir, const char *name, const struct stat *st, unsigned depth,
	struct err *err)
{
	mode_t keep = S_ISDIR(st->st_mode) ? 01777 : 0777;

	if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode) && !S_ISLNK(st->st_mode))
		return err_set(err, -EINVAL,
			"%s is a device, FIFO or socket; a template holds none", name);
	w->count->entries++;
	w->count->bytes += S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
	if (S_ISREG(st->st_mode) && (st->st_mode & (S_ISUID | S_ISGID)) != 0)
		w->count->stripped++;
	if (fchownat(dir, name, 0, 0, AT_SYMLINK_NOFOLLOW) < 0)
		return err_errno(err, "owner of %s", name);
	if (!S_ISLNK(st->st_mode) && fchmodat(dir, name, st->st_mode & keep, 0) < 0)
		return err_errno(err, "mode of %s", name);
	return S_ISDIR(st->st_mode) ? walk_into(w, dir, name, depth, err) : 0;
}

int
tree_settle(int root, struct tree_count *count, struct err *err)
{
	struct walk w = {.entry = settle_entry, .count = count};

	if (fchown(root, 0, 0) < 0 || fchmod(root, 0755) < 0)
		return err_errno(err, "owner of the root directory");
	return walk(&w, root, 1, err);
}

int
tree_mkdir(int root, const char *path, struct err *err)
{
	int dir auto_fd = tree_open(root, "", O_PATH | O_DIRECTORY);
	const char *p = path;

	if (dir < 0)
		return err_errno(err, "open the tree");
	while (*p == '/')
		p++;
	while (*p != '\0') {
		char name[256];
		size_t n = strcspn(p, "/");
		int next;

		if (n >= sizeof(name))
			return err_set(err, -ENAMETOOLONG, "%.64s: a name is too long", path);
		(void)snprintf(name, sizeof(name), "%.*s", (int)n, p);
		if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
			return err_errno(err, "make %s", path);
		next = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return err_errno(err, "%s is needed as a directory", path);
		(void)close(dir);
		dir = next;
		p += n + strspn(p + n, "/");
	}
	return 0;
}

/* The directory of `path`, made if missing, without what had that name in it. */
static int
place_for(int root, const char *path, int *ret_dir, const char **ret_name, struct err *err)
{
	const char *slash = strrchr(path, '/');
	char *parent auto_free = NULL;
	int r;

	must(slash != NULL);
	parent = strndup(path, (size_t)(slash - path));
	if (parent == NULL)
		return err_set(err, -ENOMEM, "no memory");
	r = tree_mkdir(root, parent, err);
	if (r < 0)
		return r;
	int dir auto_fd = tree_open(root, parent, O_PATH | O_DIRECTORY);
	if (dir < 0)
		return err_errno(err, "%s", parent);
	if (unlinkat(dir, slash + 1, 0) < 0 && errno != ENOENT)
		return err_errno(err, "replace %s", path);
	*ret_dir = take_fd(&dir);
	*ret_name = slash + 1;
	return 0;
}

int
tree_write(int root, const char *path, struct view text, mode_t mode, struct err *err)
{
	int dir auto_fd = -1;
	const char *name;
	int r = place_for(root, path, &dir, &name, err);

	if (r < 0)
		return r;
	int fd auto_fd = openat(
		dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return err_errno(err, "write %s", path);
	if (fchmod(fd, mode) < 0)
		return err_errno(err, "mode of %s", path);
	return fd_write_all(fd, text.p, text.n, err);
}

int
tree_link(int root, const char *path, const char *target, struct err *err)
{
	int dir auto_fd = -1;
	const char *name;
	int r = place_for(root, path, &dir, &name, err);

	if (r < 0)
		return r;
	return symlinkat(target, dir, name) < 0 ? err_errno(err, "link %s", path) : 0;
}
