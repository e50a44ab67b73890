/* SPDX-License-Identifier: Apache-2.0 */
/* A local directory as ustar; see tree.h. */
#include "cli/tree.h"

#include "lib/ustar/ustar.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { READ_BYTES = 65536 };

struct packer {
	struct exchange *x;
	struct ustar_entry entry; /* path is the way from the top to where we are */
	size_t path_n, entries;
	unsigned depth;
	uint8_t *room; /* READ_BYTES */
};

static int pack_directory(struct packer *p, int dir, struct err *err);

static int
send_head(struct packer *p, const struct stat *st, struct err *err)
{
	uint8_t block[USTAR_BLOCK];

	p->entry.mode = (uint32_t)st->st_mode & 0777;
	p->entry.mtime = st->st_mtime > 0 ? (uint64_t)st->st_mtime : 0;
	if (++p->entries > LIMIT_TREE_ENTRIES)
		return err_set(
			err, -E2BIG, "more than %d files and directories", LIMIT_TREE_ENTRIES);
	if (ustar_put(&p->entry, block, err) < 0)
		return err_context(err, "%.80s", p->entry.path);
	return exchange_send(p->x, view_of(block, sizeof(block)), err);
}

static int
pack_file(struct packer *p, int fd, const struct stat *st, struct err *err)
{
	static const uint8_t zeros[USTAR_BLOCK];
	uint64_t left = (uint64_t)st->st_size;
	int r;

	p->entry.kind = USTAR_REGULAR;
	p->entry.size = left;
	r = send_head(p, st, err);
	while (r == 0 && left != 0) {
		ssize_t n = read(fd, p->room, left < READ_BYTES ? (size_t)left : READ_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(err, -EIO, "%.120s became shorter while it was read",
				p->entry.path);
		left -= (uint64_t)n;
		r = exchange_send(p->x, view_of(p->room, (size_t)n), err);
	}
	return r != 0 ? r : exchange_send(p->x, view_of(zeros, ustar_padding(p->entry.size)), err);
}

static int
pack_link(struct packer *p, int dir, const char *name, const struct stat *st, struct err *err)
{
	ssize_t n = readlinkat(dir, name, p->entry.target, sizeof(p->entry.target));
	int r;

	if (n < 0)
		return err_errno(err, "%.120s", p->entry.path);
	if ((size_t)n >= sizeof(p->entry.target))
		return err_set(err, -ENAMETOOLONG, "%.120s leads to a path that is too long",
			p->entry.path);
	p->entry.target[n] = '\0';
	p->entry.kind = USTAR_SYMLINK;
	p->entry.size = 0;
	r = send_head(p, st, err);
	p->entry.target[0] = '\0';
	return r;
}

/* One name in `dir`; it is opened without following a link, then judged by what is open. */
static int
pack_one(struct packer *p, int dir, const char *name, struct err *err)
{
	struct stat st;
	int fd auto_fd = -1;
	int r;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_errno(err, "%.120s", p->entry.path);
	if (S_ISLNK(st.st_mode))
		return pack_link(p, dir, name, &st, err);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return err_set(err, -EINVAL, "%.120s is no file, directory or link", p->entry.path);
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, "%.120s", p->entry.path);
	if (S_ISREG(st.st_mode))
		return pack_file(p, fd, &st, err);
	if (!S_ISDIR(st.st_mode))
		return err_set(
			err, -EINVAL, "%.120s was replaced while it was read", p->entry.path);
	p->entry.kind = USTAR_DIRECTORY;
	p->entry.size = 0;
	r = send_head(p, &st, err);
	return r != 0 ? r : pack_directory(p, fd, err);
}

static void
dir_cleanup(DIR **d)
{
	if (*d != NULL)
		(void)closedir(*d);
}

static int
pack_directory(struct packer *p, int fd, struct err *err)
{
	DIR *dir __attribute__((cleanup(dir_cleanup))) = NULL;
	size_t before = p->path_n;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 3), r = 0;

	dir = own < 0 ? NULL : fdopendir(own);
	if (dir == NULL) {
		fd_cleanup(&own);
		return err_errno(err, "cannot read a directory");
	}
	if (++p->depth > LIMIT_TREE_DEPTH)
		return err_set(err, -ELOOP, "more than %d directories inside each other",
			LIMIT_TREE_DEPTH);
	for (const struct dirent *e; r == 0 && (errno = 0, e = readdir(dir)) != NULL;) {
		size_t room = sizeof(p->entry.path) - before;
		int n;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		n = snprintf(
			p->entry.path + before, room, "%s%s", before == 0 ? "" : "/", e->d_name);
		if (n < 0 || (size_t)n >= room)
			return err_set(err, -ENAMETOOLONG, "a path is longer than %d bytes",
				USTAR_PATH_MAX);
		p->path_n = before + (size_t)n;
		r = pack_one(p, fd, e->d_name, err);
		p->path_n = before;
		p->entry.path[before] = '\0';
	}
	p->depth--;
	return r == 0 && errno != 0 ? err_errno(err, "cannot read a directory") : r;
}

int
tree_send(struct exchange *x, void *arg, struct err *err)
{
	static const uint8_t end[2 * USTAR_BLOCK];
	uint8_t *room auto_free = malloc(READ_BYTES);
	struct packer p = {.x = x, .room = room};
	int fd auto_fd = open(arg, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (room == NULL)
		return err_set(err, -ENOMEM, "no memory");
	if (fd < 0)
		return err_errno(err, "%.120s", (const char *)arg);
	r = pack_directory(&p, fd, err);
	return r != 0 ? r : exchange_send(x, view_of(end, sizeof(end)), err);
}
