/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The archive's entries as files; unpack_main.c calls this inside the jail. What an archive may
 * say at all is lib/ustar's part. Here: each entry is made new below a parent that is resolved
 * without any link, so neither a link of the archive nor a second entry of the same name leads
 * anywhere else.
 */
#include "template/unpack.h"
#include "template/limits.h"

#include "lib/base/fd.h"
#include "lib/ustar/ustar.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* A directory whose owner may not read, write or enter it gets its mode when all is in it. */
struct closed_dir {
	mode_t mode;
	char path[USTAR_PATH_MAX + 1];
};

struct unpack {
	struct ustar_reader reader;
	int top;  /* borrowed; -1: the archive is only looked at */
	int file; /* owned; the regular file that is being written, or -1 */
	uint64_t stripped;
	struct closed_dir *closed; /* owned; LIMIT_CLOSED_DIRS */
	size_t closed_n;
};

static void
unpack_cleanup(struct unpack *u)
{
	fd_cleanup(&u->file);
	free(u->closed);
}
#define auto_unpack __attribute__((cleanup(unpack_cleanup)))

static int
open_below(int dir, const char *path, uint64_t flags, uint64_t mode)
{
	struct open_how how = {
		.flags = flags | O_CLOEXEC,
		.mode = mode,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

static const char *
last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* The directory that `path` stands in. */
static int
parent_open(const struct unpack *u, const char *path, int *ret_dir, struct err *err)
{
	const char *slash = strrchr(path, '/');
	char parent[USTAR_PATH_MAX + 1] = ".";
	int dir;

	if (slash != NULL)
		(void)snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
	dir = open_below(u->top, parent, O_PATH | O_DIRECTORY, 0);
	if (dir < 0 && errno == ENOENT)
		return err_set(err, -ENOENT, "its directory does not stand in front of it");
	if (dir < 0 && (errno == ELOOP || errno == ENOTDIR || errno == EXDEV))
		return err_set(err, -ENOTDIR, "it stands below a link or file of the archive");
	if (dir < 0)
		return err_errno(err, "open its directory");
	*ret_dir = dir;
	return 0;
}

static int
not_made(struct err *err)
{
	if (errno == EEXIST)
		return err_set(err, -EEXIST, "this name stands twice in the archive");
	return err_errno(err, "cannot be made");
}

static int
dir_close_later(struct unpack *u, const struct ustar_entry *e, struct err *err)
{
	struct closed_dir *c;

	if (u->closed_n == LIMIT_CLOSED_DIRS)
		return err_set(err, -E2BIG,
			"more than %zu directories that their owner may not use",
			(size_t)LIMIT_CLOSED_DIRS);
	c = &u->closed[u->closed_n++];
	c->mode = e->mode & 01777;
	memcpy(c->path, e->path, sizeof(c->path));
	return 0;
}

static int
dir_make(struct unpack *u, int dir, const char *name, struct err *err)
{
	const struct ustar_entry *e = &u->reader.entry;

	if (mkdirat(dir, name, 0700) < 0)
		return not_made(err);
	if (fchmodat(dir, name, (e->mode & 01777) | 0700, 0) < 0)
		return err_errno(err, "its mode");
	return (e->mode & 0700) != 0700 ? dir_close_later(u, e, err) : 0;
}

/* In reverse, so that what is inside comes before its directory cannot be entered any more. */
static int
dirs_close(struct unpack *u, struct err *err)
{
	while (u->closed_n > 0) {
		const struct closed_dir *c = &u->closed[--u->closed_n];
		int dir auto_fd = -1;
		int r = parent_open(u, c->path, &dir, err);

		if (r < 0)
			return r;
		if (fchmodat(dir, last_part(c->path), c->mode, 0) < 0)
			return err_errno(err, "the mode of %.100s", c->path);
	}
	return 0;
}

static int
entry_make(struct unpack *u, struct err *err)
{
	const struct ustar_entry *e = &u->reader.entry;
	const char *name = last_part(e->path);
	int dir auto_fd = -1;
	int r = parent_open(u, e->path, &dir, err);

	if (r < 0)
		return r;
	switch (e->kind) {
	case USTAR_DIRECTORY:
		return dir_make(u, dir, name, err);
	case USTAR_SYMLINK:
		return symlinkat(e->target, dir, name) < 0 ? not_made(err) : 0;
	case USTAR_REGULAR:
		break;
	}
	if ((e->mode & (S_ISUID | S_ISGID)) != 0)
		u->stripped++;
	u->file = open_below(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	return u->file < 0 ? not_made(err) : 0;
}

static int
on_entry(struct unpack *u, struct err *err)
{
	const struct ustar_entry *e = &u->reader.entry;
	size_t depth = 2; /* as tree.c counts what a directory is read at; the top is 1 */

	if (e->path[0] == '\0')
		return 0;
	for (const char *p = e->path; *p != '\0'; p++)
		depth += *p == '/';
	if (e->kind == USTAR_DIRECTORY && depth > LIMIT_TREE_DEPTH)
		return err_set(err, -ELOOP, "more than %zu directories inside each other",
			(size_t)LIMIT_TREE_DEPTH - 1);
	return u->top >= 0 ? entry_make(u, err) : 0;
}

static int
on_event(struct unpack *u, int event, struct view data, struct err *err)
{
	int file;

	if (event == USTAR_ENTRY)
		return on_entry(u, err);
	if (u->top < 0)
		return 0;
	if (event == USTAR_DATA)
		return fd_write_all(u->file, data.p, data.n, err);
	if (event != USTAR_CLOSE)
		return 0;
	file = u->file;
	u->file = -1;
	if (fchmod(file, u->reader.entry.mode & 0777) < 0 || close(file) < 0)
		return err_errno(err, "its mode");
	return 0;
}

static int
on_bytes(struct unpack *u, struct view in, struct err *err)
{
	for (;;) {
		struct view data = view_of(NULL, 0);
		int event = ustar_next(&u->reader, &in, &data, err);

		if (event == USTAR_MORE)
			return 0;
		if (event <
			0) /* the entry is not there yet: the one in front of it helps to find it */
			return u->reader.entries == 0 ? event
						      : err_context(err, "behind \"%.100s\"",
								u->reader.entry.path);
		event = on_event(u, event, data, err);
		if (event < 0)
			return err_context(err, "\"%.100s\"", u->reader.entry.path);
	}
}

static int
pass(struct unpack *u, int archive, struct err *err)
{
	const struct ustar_bounds bounds = {
		.entries = (uint32_t)LIMIT_TREE_ENTRIES,
		.bytes = LIMIT_TREE_BYTES,
		.links_out =
			true, /* a root file system is full of them; nobody follows them here */
	};
	static const size_t size = 65536;
	uint8_t *chunk auto_free = malloc(size);
	size_t n;
	int r;

	if (chunk == NULL)
		return err_set(err, -ENOMEM, "no memory");
	if (lseek(archive, 0, SEEK_SET) < 0)
		return err_errno(err, "the archive");
	ustar_reader_init(&u->reader, &bounds);
	do {
		r = fd_read_upto(archive, chunk, size, &n, err);
		if (r == 0)
			r = on_bytes(u, view_of(chunk, n), err);
		if (r < 0)
			return r;
	} while (n == size);
	return ustar_reader_end(&u->reader, err);
}

int
unpack(int archive, int top, uint64_t *ret_stripped, struct err *err)
{
	struct unpack u auto_unpack = {.top = -1, .file = -1};
	int r;

	u.closed = calloc(LIMIT_CLOSED_DIRS, sizeof(*u.closed));
	if (u.closed == NULL)
		return err_set(err, -ENOMEM, "no memory");
	r = pass(&u, archive, err);
	if (r < 0)
		return r;
	u.top = top;
	r = pass(&u, archive, err);
	if (r == 0)
		r = dirs_close(&u, err);
	if (r == 0)
		*ret_stripped = u.stripped;
	return r;
}
