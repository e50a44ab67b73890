/* SPDX-License-Identifier: Apache-2.0 */
/* A stranger's ustar below a local directory; see tree.h. */
#include "cli/tree.h"

#include "cli/safe.h"
#include "lib/base/fd.h"
#include "lib/ustar/ustar.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

struct unpacker {
	struct ustar_reader reader;
	int top;       /* borrowed */
	int file;      /* owned; the regular file under way, or -1 */
	bool force;    /* replace what is there */
	unsigned left; /* entries that were left out */
};

/* A descriptor below the top, reached without any link. */
static int
open_below(int top, const char *path, int flags)
{
	struct open_how how = {.flags = (unsigned)(flags | O_CLOEXEC | O_NOFOLLOW),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};

	return (int)syscall(SYS_openat2, top, path, &how, sizeof(how));
}

/* The directory in which the entry stands, and its name there. */
static int
open_parent(const struct unpacker *u, const char **ret_name, int *ret_fd, struct err *err)
{
	char parent[USTAR_PATH_MAX + 1];
	const char *path = u->reader.entry.path, *slash = strrchr(path, '/');
	size_t n = slash == NULL ? 0 : (size_t)(slash - path);

	memcpy(parent, path, n);
	parent[n] = '\0';
	*ret_fd = open_below(u->top, n == 0 ? "." : parent, O_RDONLY | O_DIRECTORY);
	*ret_name = slash == NULL ? path : slash + 1;
	if (*ret_fd < 0)
		return err_errno(err, "%.120s", path);
	return 0;
}

/* With force, whatever file or link has the name is removed, never written through. */
static int
make_room(const struct unpacker *u, int dir, const char *name, struct err *err)
{
	if (u->force && unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return err_errno(err, "cannot replace %.120s", u->reader.entry.path);
	return 0;
}

/* Why an entry could not be made; after a system call that failed. */
static int
not_made(const struct unpacker *u, struct err *err)
{
	const char *path = u->reader.entry.path;

	if (errno == EEXIST && !u->force)
		return err_set(err, -EEXIST,
			"%.100s is there already; copy into a new directory, or replace with "
			"--force",
			path);
	return err_errno(err, "cannot make %.120s", path);
}

static int
make_directory(const struct unpacker *u, int dir, const char *name, struct err *err)
{
	struct stat st;

	if (mkdirat(dir, name, 0777) == 0)
		return 0;
	if (errno != EEXIST)
		return not_made(u, err);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
		return 0;
	return err_set(
		err, -ENOTDIR, "%.120s is there already and is no directory", u->reader.entry.path);
}

static int
make_file(struct unpacker *u, int dir, const char *name, struct err *err)
{
	int r = make_room(u, dir, name, err);

	if (r < 0)
		return r;
	u->file = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	return u->file < 0 ? not_made(u, err) : 0;
}

static int
make_link(struct unpacker *u, int dir, const char *name, struct err *err)
{
	const struct ustar_entry *e = &u->reader.entry;
	int r;

	if (!ustar_link_stays(view_str(e->path), view_str(e->target))) {
		auto_buf struct buf safe;

		buf_init(&safe, 8192);
		safe_add(&safe, view_str(e->path), 0);
		buf_add_str(&safe, " -> ");
		safe_add(&safe, view_str(e->target), 0);
		(void)fprintf(stderr, "demilune: left out, it leads out of the tree: %.*s\n",
			(int)safe.n, (const char *)safe.p);
		u->left++;
		return 0;
	}
	r = make_room(u, dir, name, err);
	if (r < 0)
		return r;
	return symlinkat(e->target, dir, name) < 0 ? not_made(u, err) : 0;
}

static int
make_entry(struct unpacker *u, struct err *err)
{
	const struct ustar_entry *e = &u->reader.entry;
	int dir auto_fd = -1;
	const char *name;
	int r;

	if (e->path[0] == '\0')
		return 0; /* the top itself */
	r = open_parent(u, &name, &dir, err);
	if (r < 0)
		return r;
	switch (e->kind) {
	case USTAR_REGULAR:
		return make_file(u, dir, name, err);
	case USTAR_DIRECTORY:
		return make_directory(u, dir, name, err);
	case USTAR_SYMLINK:
		return make_link(u, dir, name, err);
	}
	must(false);
}

static int
take_piece(struct unpacker *u, struct view piece, struct err *err)
{
	for (;;) {
		struct view data;
		int r = ustar_next(&u->reader, &piece, &data, err);

		if (r == USTAR_MORE)
			return 0;
		if (r == USTAR_ENTRY)
			r = make_entry(u, err);
		else if (r == USTAR_DATA)
			r = fd_write_all(u->file, data.p, data.n, err);
		else if (r == USTAR_CLOSE && close(take_fd(&u->file)) < 0)
			r = err_errno(err, "cannot write %.120s", u->reader.entry.path);
		if (r < 0)
			return r;
	}
}

int
tree_receive(struct exchange *x, int dir, bool force, unsigned *ret_left, struct err *err)
{
	const struct ustar_bounds bounds = {
		.entries = LIMIT_TREE_ENTRIES, .bytes = LIMIT_COPY_BYTES, .links_out = true};
	struct unpacker u = {.top = dir, .file = -1, .force = force};
	struct view piece;
	int r;

	ustar_reader_init(&u.reader, &bounds);
	while ((r = exchange_next(x, &piece, err)) == 1) {
		r = take_piece(&u, piece, err);
		if (r < 0)
			break;
	}
	fd_cleanup(&u.file);
	if (r == 0)
		r = ustar_reader_end(&u.reader, err);
	if (r == 0)
		*ret_left = u.left;
	return r;
}
