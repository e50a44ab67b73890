/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees as strict ustar: down = from the guest's path to stdout, up = from stdin into the guest's path. Runs
 * in the child of a file job (file_ops.c). Going down, sockets, FIFOs and devices are left out: they have no
 * content. Going up, directories are entered by descriptor and no link is followed, neither one that an
 * earlier entry made nor one that was there.
 */
#include "file.h"

#include "limits.h"

#include "lib/base/buf.h"
#include "lib/base/id.h"
#include "lib/ustar/ustar.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

enum { CHUNK = 65536 };

struct down {
	struct ustar_entry entry; /* path is the way from the top to where we are */
	size_t path_n;
	uint32_t entries;
	uint8_t chunk[CHUNK];
};

static int
put_head(struct down *d)
{
	uint8_t block[USTAR_BLOCK];
	struct err err = {0};
	int r = ustar_put(&d->entry, block, &err);

	if (r < 0)
		return r;
	if (++d->entries > AGENT_TREE_ENTRIES)
		return -E2BIG;
	return file_put(1, block, sizeof(block));
}

/* Exactly the size that the header says: a file that shrinks under us fails, one that grows is cut. */
static int
put_content(struct down *d, int fd, uint64_t size)
{
	uint64_t left = size;
	int r;

	while (left > 0) {
		ssize_t n = read(fd, d->chunk, left < CHUNK ? (size_t)left : CHUNK);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		r = file_put(1, d->chunk, (size_t)n);
		if (r < 0)
			return r;
		left -= (uint64_t)n;
	}
	memset(d->chunk, 0, USTAR_BLOCK);
	return file_put(1, d->chunk, ustar_padding(size));
}

static void
entry_set(struct down *d, enum ustar_kind kind, const struct stat *st)
{
	d->entry.kind = kind;
	d->entry.mode = st->st_mode & 07777;
	d->entry.mtime = st->st_mtim.tv_sec > 0 ? (uint64_t)st->st_mtim.tv_sec : 0;
	d->entry.size = kind == USTAR_REGULAR ? (uint64_t)st->st_size : 0;
	d->entry.target[0] = '\0';
}

static int
down_file(struct down *d, int dir, const char *name)
{
	auto_fd int fd = openat(
		dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ESTALE; /* it was a file a moment ago */
	entry_set(d, USTAR_REGULAR, &st);
	r = put_head(d);
	return r < 0 ? r : put_content(d, fd, d->entry.size);
}

static int
down_link(struct down *d, int dir, const char *name, const struct stat *st)
{
	ssize_t n;

	entry_set(d, USTAR_SYMLINK, st);
	n = readlinkat(dir, name, d->entry.target, sizeof(d->entry.target));
	if (n < 0)
		return -errno;
	if (n > USTAR_TARGET_MAX)
		return -ENAMETOOLONG;
	d->entry.target[n] = '\0';
	return put_head(d);
}

static int down_dir(struct down *d, int dir, const char *name, bool top, unsigned depth);

static int
down_one(struct down *d, int dir, const char *name, unsigned depth)
{
	size_t n = strlen(name), was = d->path_n;
	struct stat st;
	int r = 0;

	if (was + 1 + n > USTAR_PATH_MAX)
		return -ENAMETOOLONG;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno; /* gone since the directory was read */
	if (was > 0)
		d->entry.path[d->path_n++] = '/';
	memcpy(d->entry.path + d->path_n, name, n + 1);
	d->path_n += n;
	if (S_ISREG(st.st_mode))
		r = down_file(d, dir, name);
	else if (S_ISLNK(st.st_mode))
		r = down_link(d, dir, name, &st);
	else if (S_ISDIR(st.st_mode))
		r = down_dir(d, dir, name, false, depth + 1);
	d->path_n = was;
	d->entry.path[was] = '\0';
	return r;
}

static int
down_entries(struct down *d, DIR *list, unsigned depth)
{
	for (;;) {
		struct dirent *e;
		int r;

		errno = 0;
		e = readdir(list);
		if (e == NULL)
			return -errno;
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		r = down_one(d, dirfd(list), e->d_name, depth);
		if (r < 0)
			return r;
	}
}

static int
down_dir(struct down *d, int dir, const char *name, bool top, unsigned depth)
{
	auto_fd int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	DIR *list;
	int r = 0;

	if (fd < 0)
		return -errno;
	if (depth > AGENT_DELETE_DEPTH)
		return -ELOOP;
	if (fstat(fd, &st) < 0)
		return -errno;
	entry_set(d, USTAR_DIRECTORY, &st);
	if (!top)
		r = put_head(d);
	if (r < 0)
		return r;
	list = fdopendir(fd);
	if (list == NULL)
		return -ENOMEM;
	(void)take_fd(&fd);
	r = down_entries(d, list, depth);
	(void)closedir(list); /* read only */
	return r;
}

int
tree_down(int root, char *path)
{
	static struct down down;
	struct stat st;
	auto_fd int fd = file_open_checked(root, path, O_RDONLY, &st);
	int r;

	if (fd < 0)
		return fd;
	if (S_ISDIR(st.st_mode)) {
		r = down_dir(&down, fd, ".", true, 0);
	} else {
		auto_fd int dir = -1;
		const char *name = NULL;

		r = file_parent(root, path, false, &dir, &name);
		if (r == 0)
			r = down_one(&down, dir, name, 0);
	}
	if (r < 0)
		return r;
	memset(down.chunk, 0, (size_t)2 * USTAR_BLOCK);
	return file_put(1, down.chunk, (size_t)2 * USTAR_BLOCK);
}

struct up {
	int top;          /* borrowed: where the tree goes */
	int dir;          /* owned: where the current entry goes; -1 = none */
	const char *name; /* of the current entry, in reader.entry.path */
	struct ustar_reader reader;
	struct file_new file;
};

/* The directory `name` in `dir`, made where missing; a link in its place is an error. */
static int
enter(int dir, const char *name)
{
	int fd;

	if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Goes to the directory of the entry; its path has no "." and no ".." (ustar_path_ok). */
static int
up_place(struct up *u)
{
	char *at = u->reader.entry.path;

	if (u->dir >= 0)
		(void)close(take_fd(&u->dir)); /* O_PATH */
	u->dir = openat(u->top, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (u->dir < 0)
		return -errno;
	for (char *slash = strchr(at, '/'); slash != NULL; slash = strchr(at, '/')) {
		int next;

		*slash = '\0';
		next = enter(u->dir, at);
		if (next < 0)
			return next;
		(void)close(u->dir); /* O_PATH */
		u->dir = next;
		at = slash + 1;
	}
	u->name = at;
	return 0;
}

static int
up_dir(struct up *u)
{
	auto_fd int fd = -1;
	bool made = mkdirat(u->dir, u->name, 0700) == 0;

	if (!made && errno != EEXIST)
		return -errno;
	fd = openat(u->dir, u->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* The owner's rights are kept: its own entries come next. */
	return made && fchmod(fd, u->reader.entry.mode | 0700) < 0 ? -errno : 0;
}

/* Made under another name and renamed, so that what was there is replaced at once. */
static int
up_link(struct up *u)
{
	char temporary[40];
	struct stat st;
	struct id id;

	if (fstatat(u->dir, u->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
		return -EISDIR;
	id_new(&id);
	id_text(&id, ".part-", temporary);
	if (symlinkat(u->reader.entry.target, u->dir, temporary) < 0)
		return -errno;
	if (renameat(u->dir, temporary, u->dir, u->name) == 0)
		return 0;
	(void)unlinkat(u->dir, temporary, 0); /* the rename's error is the one to tell */
	return -EEXIST;
}

static int
up_entry(struct up *u)
{
	int r;

	if (u->reader.entry.path[0] == '\0')
		return 0; /* the top is there */
	r = up_place(u);
	if (r < 0)
		return r;
	switch (u->reader.entry.kind) {
	case USTAR_REGULAR:
		return file_new_open(&u->file, u->dir, u->name, u->reader.entry.mode);
	case USTAR_DIRECTORY:
		return up_dir(u);
	case USTAR_SYMLINK:
		return up_link(u);
	}
	must(false);
}

static int
up_take(struct up *u, struct view in)
{
	struct err err = {0};

	for (;;) {
		struct view data;
		int r = ustar_next(&u->reader, &in, &data, &err);

		if (r == USTAR_MORE)
			return 0;
		if (r == USTAR_ENTRY)
			r = up_entry(u);
		else if (r == USTAR_DATA)
			r = file_put(u->file.fd, data.p, data.n);
		else if (r == USTAR_CLOSE)
			r = file_new_commit(&u->file, u->name);
		if (r < 0)
			return r;
	}
}

static int
up_all(struct up *u, uint64_t announced)
{
	static uint8_t chunk[CHUNK];
	struct err err = {0};
	uint64_t done = 0;
	ssize_t n;

	while ((n = file_input(chunk, sizeof(chunk))) > 0) {
		int r;

		done += (uint64_t)n;
		if (done > announced)
			return -EFBIG;
		r = up_take(u, view_of(chunk, (size_t)n));
		if (r < 0)
			return r;
	}
	if (n < 0)
		return (int)n;
	if (announced != UINT64_MAX && done != announced)
		return -EIO;
	return ustar_reader_end(&u->reader, &err);
}

int
tree_up(int root, const char *path, uint64_t size_bytes)
{
	/* A link's target is the guest's own affair: it is made as data and never followed here. */
	const struct ustar_bounds bounds = {
		.entries = AGENT_TREE_ENTRIES, .bytes = UINT64_MAX, .links_out = true};
	static struct up up;
	bool made;
	auto_fd int top = file_make_dir(root, path, 0755, &made);
	int r;

	if (top < 0)
		return top;
	up.top = top;
	up.dir = up.file.fd = -1;
	ustar_reader_init(&up.reader, &bounds);
	r = up_all(&up, size_bytes);
	if (r < 0)
		file_new_abandon(&up.file);
	if (up.dir >= 0)
		(void)close(up.dir); /* O_PATH */
	return r;
}
